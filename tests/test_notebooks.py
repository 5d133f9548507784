"""The tutorials as notebooks run from top to bottom, and print what the pages show.

``make test-long`` runs them.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from nbclient import NotebookClient

from tests.helpers.scripts import load_script

ROOT = Path(__file__).parents[1]
_NUMBER = re.compile(r"[-+]?\.?\d[\d.,]*")


def pinned() -> bool:
    """Whether scores are computed with the versions whose digits the pages show."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line and line[:1] != "#")
    return all(version(name) == pins[name] for name in ("numpy", "scipy", "scikit-learn", "pandas"))


def words(text: str) -> str:
    text = " ".join(text.split())
    return text if pinned() else _NUMBER.sub("#", text)


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.parametrize("page", ["researcher", "engineer", "reviewer"])
def test_a_notebook_prints_what_its_page_shows(page, tmp_path):
    text = (ROOT / f"docs/tutorials/{page}.md").read_text(encoding="utf-8")
    notebook = load_script(ROOT / "docs/site/notebooks.py").notebook(text)
    NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed, n_commands, n_shown = "", 0, 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            printed = words("".join(output.get("text", "") for output in cell.outputs))
            n_commands += cell.source.startswith("%%bash")
        elif "shown" in cell.metadata.get("tags", []):
            for line in cell.source.splitlines()[1:-1]:
                assert words(line) in printed, f"{line!r} is not in:\n{printed}"
                n_shown += 1
    assert n_commands > 4
    assert n_shown > 4
    assert not list(tmp_path.iterdir()), "a notebook writes into its own folder"
