"""docs/tutorials: every file of the pages is written, every command run in order, every shown line looked up.

`TSADBENCH_FAST` keeps the budgets of training small, and all commands share the imports of libraries; ``make ci-slow``
runs the pages without either.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.warm import warm_command

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
BLOCK = re.compile(
    r"(?:^Save this as `(?P<file>[\w.]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Iterator[str]:
    """The folders in which the shell finds `tsadbench` and `python`."""
    installed = str(Path(sys.executable).parent)
    if os.environ.get("TSADBENCH_FAST") == "0":
        yield installed
        return
    with warm_command(tmp_path_factory.mktemp("warm")) as warm:
        yield f"{warm}:{installed}"


def run(script: str, folder: Path, programs: str) -> str:
    """Run commands as a reader's shell would, ended by the first that fails; return what they print."""
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={"TSADBENCH_FAST": "1", **os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow(20)
@pytest.mark.processes
@pytest.mark.parametrize("page", ["researcher", "engineer", "reviewer"])
def test_a_reader_who_copies_everything_sees_what_the_page_shows(page, programs, tmp_path):
    printed, n_commands, n_shown = "", 0, 0
    for block in BLOCK.finditer((FOLDER / f"{page}.md").read_text(encoding="utf-8")):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "console":
            printed = run(block["text"], tmp_path, programs)
            n_commands += len(block["text"].splitlines())
        else:
            assert block["kind"] == "text", block["kind"]
            for line in block["text"].splitlines():
                assert words(line) in words(printed), f"{line!r} is not in:\n{printed}"
                n_shown += 1
    assert n_commands > 4
    assert n_shown > 4
