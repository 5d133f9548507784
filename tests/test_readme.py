"""README.md and other pages: links lead somewhere, commands and options exist. README's Python is a doctest."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from tsadbench.cli.app import app

ROOT = Path(__file__).parent.parent
# Of docs/ only commands are checked: mkdocs checks its links.
OUTSIDE = ["README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "leaderboards/README.md"]
DOCS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


def commands_of(page: str) -> list[str]:
    """The page's lines that call tsadbench, without comments and pipes."""
    blocks = re.findall(r"^```(?:console|sh|bash)?\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?tsadbench ", line)]


@pytest.mark.parametrize("page", OUTSIDE)
def test_links_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("page", [page for page in (*OUTSIDE, *DOCS) if commands_of(page)])
def test_commands_and_options_exist(page):
    top = get_command(app)
    for line in commands_of(page):
        command, words = top, shlex.split(line, comments=True)[1:]
        while words and hasattr(command, "resolve_command") and not words[0].startswith("-"):
            _, command, words = command.resolve_command(top.make_context("", [], resilient_parsing=True), words)
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert used <= {*options, "--help"}, line
