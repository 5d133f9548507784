"""README.md and other pages: their generated parts are current, their commands exist, their links lead somewhere."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.main import get_command

from tests.helpers.scripts import load_script
from tsadbench.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "leaderboards/README.md",
    *(
        str(path.relative_to(ROOT))
        for folder in ("docs", "docs/concepts", "docs/reference/commands", "docs/systems", "docs/tutorials")
        for path in sorted((ROOT / folder).glob("*.md"))
    ),
]


def readme(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "docs/readme.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def commands_of(page: str) -> list[str]:
    """The page's lines that call tsadbench, without comments and pipes."""
    blocks = re.findall(r"^```(?:console|sh|bash)?\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?tsadbench ", line)]


def test_generated_parts_are_current():
    checked = readme("--check")
    assert checked.returncode == 0, checked.stderr


def test_a_changed_figure_and_a_changed_row_are_found_and_mended(tmp_path):
    """An independent look at one cell of a committed table, in a sentence and in the table."""
    with (ROOT / "leaderboards/skab/published/overall.csv").open() as file:
        mean = next(row["auroc_mean"] for row in csv.DictReader(file) if row["detector"] == "dprgm")
    figure = f"{float(mean):.4f}".removeprefix("0")
    text = (ROOT / "docs/results.md").read_text()
    assert text.count(figure) == 2
    file = tmp_path / "docs/results.md"
    file.parent.mkdir()
    file.write_text(text.replace(figure, ".9999"))
    checked = readme("--check", "--file", file)
    assert checked.returncode == 1
    assert checked.stderr.count(f"{figure}(") == checked.stderr.count(".9999(") == 2
    assert readme("--write", "--file", file).returncode == 0
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("page", "line"),
    [
        ("README.md", "[a](docs/systems/tep.md) [b](leaderboards/README.md#x) [c](https://docs/a)"),
        ("docs/results.md", "[a](systems/tep.md) [b](../leaderboards/README.md#x) [c](https://docs/a)"),
        ("docs/systems/README.md", "[a](tep.md) [b](../../leaderboards/README.md#x) [c](https://docs/a)"),
    ],
)
def test_a_block_can_stand_on_any_page(page, line):
    """Its links lead from the page's folder."""
    script = load_script(ROOT / "docs/readme.py")
    rooted = "[a](docs/systems/tep.md) [b](leaderboards/README.md#x) [c](https://docs/a)"
    assert script.seen_from(page, rooted) == line
    assert script.page_of(ROOT / page) == script.page_of(Path("/elsewhere") / page) == page


@pytest.mark.parametrize("table", ["skab/strict/overall", "skab/skab/overall", "tep/strict/detectable"])
@pytest.mark.parametrize("metric", ["auroc", "auprc", "mcc"])
def test_who_is_above_the_floors_is_what_the_committed_table_says(table, metric):
    script = load_script(ROOT / "docs/readme.py")
    frame = pd.read_csv(ROOT / f"leaderboards/{table}.csv").set_index("detector")
    floors, others = (frame[(frame.family == "floor") == kind][f"{metric}_mean"] for kind in (True, False))
    above = sorted(others.index[others > floors.max()])
    assert re.findall(r"`(.+?)`", script.above_floors(table, metric)) == above
    assert script.best(table, metric, "floor").startswith(f"`{floors.idxmax()}` (")
    assert script.best(table, metric, "detector").startswith(f"`{others.idxmax()}` (")
    flagging = frame[frame.family != "floor"].flagged_mean
    assert script.flagging(table, "0.9") == f"{(flagging > 0.9).sum()} of {len(flagging)}"


def test_floors_of_a_page_are_those_of_the_committed_table():
    script = load_script(ROOT / "docs/readme.py")
    frame = pd.read_csv(ROOT / "leaderboards/tep/strict/overall.csv")
    frame = frame[frame.family == "floor"].set_index("detector")
    header, _, *lines = [[part.strip() for part in line.strip("|").split("|")] for line in script.floors_of("tep")[:-2]]
    assert header == ["floor", "AUROC", "AUPRC", "BF-F1*", "MCC"]
    assert [line[0].strip("`") for line in lines] == [*frame.index]
    for label, *cells in lines:
        means = frame.loc[label.strip("`"), ["auroc_mean", "auprc_mean", "bf_f1_mean", "mcc_mean"]]
        assert [float(cell.partition("(")[0]) for cell in cells] == pytest.approx([*means], abs=5.1e-5)


def test_a_page_can_be_made_before_the_table_the_audit_and_the_counts():
    script = load_script(ROOT / "docs/readme.py")
    assert script.floors_of("nothing") == ["No table is committed yet: `make leaderboards-nothing` makes it."]
    assert script.findings("nothing") == ["Not audited yet: `make audits` does."]
    (line,) = script.contents_table("nothing")
    assert line.startswith("Not counted yet")
    assert script.count("nothing", "train", "rows") == "?"


def test_findings_of_a_page_are_the_faults_and_notes_of_the_audit():
    audited = (ROOT / "docs/audits/skab.md").read_text().splitlines()
    found = load_script(ROOT / "docs/readme.py").findings("skab")
    assert {line.partition("**")[2].partition("**")[0] for line in found if line.startswith("- ")} == {
        line.partition("**")[2].partition("**")[0] for line in audited if line.startswith(("- ✗", "- ·"))
    }


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_exist(page):
    for line in commands_of(page):
        command = get_command(app)
        words = shlex.split(line, comments=True)[1:]
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
            options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert used <= {*options, "--help"}, line


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), target


def test_the_changelog_says_nothing_twice():
    """Branches that both append to it are merged by union, which can double it."""
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    starts = [line for line in lines if line.startswith(("# ", "## ", "### ", "- "))]
    assert [line for line in starts if starts.count(line) > 1] == []
