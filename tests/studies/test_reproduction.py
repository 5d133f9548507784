"""Scripts that state results: verdicts on the paper's cells, false alarms, and intervals of graphs, by hand."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers.scripts import load_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def scripts():
    """The scripts import each other from their folder."""
    sys.path.insert(0, str(ROOT / "leaderboards/paper"))
    yield
    sys.path.remove(str(ROOT / "leaderboards/paper"))


def script(name: str):
    return load_script(ROOT / f"leaderboards/paper/{name}.py")


@pytest.mark.parametrize(
    ("ours", "paper", "verdict"),
    [
        ((0.73, 0.01), (0.70, 0.02), "within 2 sd"),  # pooled .0158, twice that .0316
        ((0.74, 0.01), (0.70, 0.02), "off"),
        ((0.719, math.nan), (0.70, math.nan), "within .02"),
        ((0.679, 0.001), (0.70, 0.001), "off"),
        ((0.34804, 0.0), (0.3480, 0.0), "within 2 sd"),  # the paper rounds to four decimals
        ((0.75, 0.04), (0.70, 0.02), "within 2 sd"),  # pooled .0316, and .05 apart
        ((0.76, 0.04), (0.70, 0.02), "not told apart"),
        ((math.nan, math.nan), (0.70, 0.2), None),
    ],
)
def test_verdicts(ours, paper, verdict):
    assert script("comparison").verdict(ours[0] - paper[0], ours[1], paper[1]) == verdict


def test_false_alarms_of_machines():
    """Of 100 rows, 80 are normal. One machine flags a tenth, half of it wrongly, the other nothing: .025 / .8."""
    machines = {"a": {"flagged": 0.1, "precision": 0.5}, "b": {"flagged": 0.0, "precision": None}}
    judged = SimpleNamespace(entities=machines, n_rows=100, n_anomalous=20)
    alarms = load_script(ROOT / "docs/results.py").false_alarms(SimpleNamespace(splits={"overall": judged}))
    assert alarms == pytest.approx(0.03125)


def test_intervals_against_the_prior():
    """Differences .00, .01, .02: t(1 - .05 / 4, 2) = 6.2053, times .01 / sqrt(3), on either side of .01."""
    low, high = load_script(ROOT / "docs/studies/prior_sensitivity.py").bounds([0.0, 0.01, 0.02], 1 - 0.05 / 2)
    half = 6.2053 * 0.01 / math.sqrt(3)
    assert (low, high) == pytest.approx((0.01 - half, 0.01 + half), rel=1e-4)
