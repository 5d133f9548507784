"""README's table is the emitted leaderboard's: nobody types a number."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COLUMNS = ("auroc", "auprc", "bf_f1", "prac_f1", "mcc", "flagged")


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


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))])
def test_links_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), target
