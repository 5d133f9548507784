"""Scripts that state results: verdicts beside the paper, what its tables say, and intervals of graphs, by hand."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from tests.helpers.records import record
from tests.helpers.scripts import load_script
from tsadbench import Leaderboard
from tsadbench.registry import is_registered
from tsadbench.utils.parameters import parse_label

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def scripts():
    """The scripts import each other from their folder."""
    sys.path.insert(0, str(ROOT / "leaderboards/paper"))
    yield
    sys.path.remove(str(ROOT / "leaderboards/paper"))


def script(name: str):
    return load_script(ROOT / f"leaderboards/paper/{name}.py")


def rows(*records):
    return {(row.detector, row.split): row for row in Leaderboard.from_records(records).frame.itertuples()}


@pytest.mark.parametrize(
    ("ours", "paper", "verdict"),
    [
        ((0.73, 0.01), (0.70, 0.02), "within 2 sd"),  # pooled .0158, twice that .0316
        ((0.74, 0.01), (0.70, 0.02), "off"),
        ((0.719, None), (0.70, None), "within .02"),
        ((0.679, 0.001), (0.70, 0.001), "off"),
        ((0.34804, 0.0), (0.3480, 0.0), "within 2 sd"),  # the paper rounds to four decimals
        ((None, None), (0.70, 0.2), None),
    ],
)
def test_verdicts(ours, paper, verdict):
    assert (
        script("comparison").Cell("auroc", *(script("paper").Summary(*one) for one in (ours, paper))).verdict == verdict
    )


def test_the_papers_tables_are_complete_and_every_row_of_ours_can_be_run():
    paper = script("paper")
    assert [(table.number, len(paper.published(table.key))) for table in paper.TABLES] == [
        (2, 96), (3, 77), (4, 12), (5, 12), (None, 12),
    ]  # fmt: skip
    assert paper.published("graph_comparison")["DPR-GM", "overall", "auroc"] == (0.7256, 0.0058)
    for table in paper.TABLES:
        assert {name for name, _, _ in paper.published(table.key)} == {one.name for one in table.methods if one.name}
    assert all(is_registered(parse_label(label).target) for label in paper.labels())
    assert [(table.number, mean) for table, mean in dict(paper.contradictions())["auroc"]] == [
        (2, 0.7256), (3, 0.7256), (4, 0.7261), (5, 0.7261), (None, 0.7259),
    ]  # fmt: skip


def test_what_flags_everything_what_beats_the_floors_and_ranks():
    reading = script("reading")
    found = rows(
        record("a", flagged=1.0, auroc=0.9, auprc=0.4),
        record("b", flagged=0.99, auroc=0.6, auprc=0.7),
        record("max-z", floor=True, flagged=1.0, auroc=0.7, auprc=0.6, mcc=0.6),
    )
    assert reading.flags_everything(found, "overall", ["a", "b"]) == ["a"]
    assert reading.best_floors(found, "overall")["auprc"] == ("max-z", 0.6)
    assert "| `a` | **yes** | no | no |" in reading.above_floors(found, "overall", ["a", "b"])
    other = rows(record("a", auprc=0.7), record("b", auprc=0.8), record("c", auprc=0.6))
    first = rows(record("a", auprc=0.9), record("b", auprc=0.8), record("c", auprc=0.7))
    assert reading.rank_agreement(first, other, "overall", ["a", "b", "c"]) == pytest.approx(1 / 3)


def test_intervals_against_the_prior():
    """Differences .00, .01, .02: t(1 - .05 / 4, 2) = 6.2053, times .01 / sqrt(3), on either side of .01."""
    low, high = load_script(ROOT / "docs/studies/prior_sensitivity.py").bounds([0.0, 0.01, 0.02], 1 - 0.05 / 2)
    half = 6.2053 * 0.01 / math.sqrt(3)
    assert (low, high) == pytest.approx((0.01 - half, 0.01 + half), rel=1e-4)
