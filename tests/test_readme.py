"""README's table is the emitted leaderboard's: nobody types a number."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COLUMNS = ("auroc", "auprc", "bf_f1", "prac_f1", "mcc", "flagged")


PARAGRAPH = r"^\* \*\*No detector of PyOD or scikit-learn.*?(?=^\* )"


def text(value: str) -> str:
    return re.sub(r"^(-?)0\.", r"\1.", f"{float(value):.4f}")


def test_the_table_is_the_leaderboards():
    shown = {
        found[1]: [cell.strip() for cell in found[2].split("|")]
        for found in re.finditer(r"^\| `([^`]+)`(?: \(floor\))? \| (.+) \|$", (ROOT / "README.md").read_text(), re.M)
    }
    with (ROOT / "leaderboards/skab/published/overall.csv").open() as file:
        rows = {row["detector"]: row for row in csv.DictReader(file)}
    assert list(shown) == list(rows)
    for label, row in rows.items():
        cells = [
            text(row[f"{name}_mean"]) + (f"({text(row[f'{name}_std'])})" if row[f"{name}_std"] else "")
            for name in COLUMNS
        ]
        assert shown[label] == cells, label


def test_what_it_says_of_pyods_and_scikit_learns_detectors():
    with (ROOT / "leaderboards/pyod/skab/strict/overall.csv").open() as file:
        rows = {row["detector"]: row for row in csv.DictReader(file)}
    theirs = {label: row for label, row in rows.items() if ":" in label}
    floors = [row for label, row in rows.items() if label not in theirs]

    def better(metric: str) -> list[str]:
        best = max(float(row[f"{metric}_mean"]) for row in floors)
        return sorted(label for label, row in theirs.items() if float(row[f"{metric}_mean"]) > best)

    assert better("auroc") == better("auprc") == []
    best = max(theirs, key=lambda label: float(theirs[label]["auprc_mean"]))
    (said,) = re.findall(PARAGRAPH, (ROOT / "README.md").read_text(), re.M | re.S)
    assert f"{len(theirs)} rows" in said
    assert f"the best, `{best}`, has an AUPRC of {text(theirs[best]['auprc_mean'])}" in said
    for floor in ("max-z", "sensor-range"):
        assert re.search(rf"`{floor}`\s+{re.escape(text(rows[floor]['auprc_mean']))}", said), floor
    assert better("prac_f1") == sorted(re.findall(r"`([^`]+)`", said.partition("Robust")[2]))


def test_what_it_says_of_tuning():
    page = (ROOT / "docs/tuning.md").read_text()
    found = {
        objective: (better, cases, worse)
        for objective, cases, better, worse in re.findall(
            r"^- `(\w+)`: of (\d+) cases better than the defaults in (\d+), worse in (\d+)", page, re.M
        )
    }
    said = (ROOT / "README.md").read_text().partition("**Tuning without labels**")[2]
    told = re.findall(
        r"better\s+(?:on the test than the defaults\s+)?in (\d+) of (\d+)(?: cases)? and worse in (\d+)", said
    )
    assert told == [found["injection"], found["heldout"]]


def test_what_it_says_of_dprgm_tuned():
    page = (ROOT / "docs/tuning-dprgm.md").read_text()
    assert "`injection`: of 3 cases better than the defaults in 3," in page
    rows = [line.split(" | ") for line in page.partition("## skab")[2].partition("## tep")[0].splitlines()]
    defaults, tuned = (next(row for row in rows if len(row) > 1 and row[1] == by) for by in ("defaults", "injection"))
    with (ROOT / "leaderboards/skab/strict/overall.csv").open() as file:
        floor = next(row["auprc_mean"] for row in csv.DictReader(file) if row["detector"] == "sensor-range")
    before, after = (row[5].partition("(")[0] for row in (defaults, tuned))
    assert float(after) > float(floor)
    said = " ".join((ROOT / "README.md").read_text().split())
    assert f"its AUPRC goes from {before} to {after}, which is above `sensor-range` ({text(floor)})" in said
    assert f"(rank correlation {tuned[3]})" in said


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))])
def test_links_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), target
