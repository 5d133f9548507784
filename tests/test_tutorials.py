"""docs/tutorials: every file of the pages is written, every command run in order, every shown line looked up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
BLOCK = re.compile(
    r"(?:^Save this as `(?P<file>[\w.]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE
)


def run(script: str, folder: Path) -> str:
    """Run commands as a reader's shell would, ended by the first that fails; return what they print."""
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.parametrize("page", ["researcher", "engineer", "reviewer"])
def test_a_reader_who_copies_everything_sees_what_the_page_shows(page, tmp_path):
    printed, n_commands, n_shown = "", 0, 0
    for block in BLOCK.finditer((FOLDER / f"{page}.md").read_text(encoding="utf-8")):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "console":
            printed = run(block["text"], tmp_path)
            n_commands += len(block["text"].splitlines())
        else:
            assert block["kind"] == "text", block["kind"]
            for line in block["text"].splitlines():
                assert words(line) in words(printed), f"{line!r} is not in:\n{printed}"
                n_shown += 1
    assert n_commands > 4
    assert n_shown > 4
