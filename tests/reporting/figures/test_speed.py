"""Quality against speed: compares drawn points, fronts and names with hand-made records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.records import record
from tests.helpers.trials import drawn
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.reporting.figures import draw_trials, trial_frame


def made(label, seed=0, *, fit=1.0, rows=1000, auprc=0.5, **changes):
    floor = changes.pop("floor", False)
    status = changes.pop("status", "ok")
    made = record(label, seed, floor=floor, status=status, auprc=auprc)
    return replace(made, fit_seconds=fit, rows_scored=rows, score_seconds=1.0, **changes)


# By AUPRC: good > cheat > sound > quick > simple > poor. "poor" is slower than "quick" and worse.
RECORDS = [
    made("good", 0, fit=90.0, rows=1000, auprc=0.85),
    made("good", 1, fit=110.0, rows=3000, auprc=0.95),
    made("sound", fit=10.0, rows=20_000, auprc=0.7),
    made("poor", fit=2.0, rows=10_000, auprc=0.3),
    made("quick", fit=1.0, rows=500_000, auprc=0.6),
    made("cheat", fit=0.5, rows=9_000_000, auprc=0.8, leaky="the test rows"),
    made("simple", fit=0.01, rows=1_000_000, auprc=0.5, floor=True),
    made("broken", status="error", fit=0.001),
]


def panels(figure, *metrics, records=RECORDS, split="overall"):
    return draw_trials("speed", trial_frame(Leaderboard.from_records(records, [split])), metrics, figure)


def points(axes):
    """The markers by label, without the fronts."""
    return {
        bars.get_label(): tuple(bars.lines[0].get_xydata()[0]) for bars in axes.containers if hasattr(bars, "has_yerr")
    }


def line(axes, name):
    (found,) = (one for one in axes.lines if one.get_label() == name)
    return found


def test_points_are_means_over_seeds_on_logarithmic_axes(figure):
    fits, rates = panels(figure)
    quality = {"good": 0.9, "sound": 0.7, "poor": 0.3, "quick": 0.6, "cheat": 0.8, "simple": 0.5}
    seconds = {"good": 100.0, "sound": 10.0, "poor": 2.0, "quick": 1.0, "cheat": 0.5, "simple": 0.01}
    speeds = {"good": 2e3, "sound": 2e4, "poor": 1e4, "quick": 5e5, "cheat": 9e6, "simple": 1e6}
    for axes, expected in ((fits, seconds), (rates, speeds)):
        assert axes.get_xscale() == "log"
        found = points(axes)
        assert set(found) == set(quality), "what failed is left out"
        for label, value in expected.items():
            assert found[label] == pytest.approx((value, quality[label])), label
    assert fits.get_xlabel().startswith("seconds ")
    assert "per second" in rates.get_xlabel()
    assert drawn(figure).std() > 0


def test_fronts_join_what_nothing_beats(figure):
    fits, rates = panels(figure)
    np.testing.assert_allclose(line(fits, "front").get_xydata(), [(0.01, 0.5), (1.0, 0.6), (10.0, 0.7), (100.0, 0.9)])
    assert {text.get_text() for text in fits.texts} == set(points(fits)), "so few are all named"
    np.testing.assert_allclose(line(rates, "front").get_xydata(), [(2e3, 0.9), (2e4, 0.7), (5e5, 0.6), (1e6, 0.5)])
    without = line(rates, "front of the detectors").get_xydata()
    np.testing.assert_allclose(without, [(2e3, 0.9), (2e4, 0.7), (5e5, 0.6)])
    # Within a limit of seconds, the last corner counts; for a required rate, the next faster corner.
    assert line(fits, "front").get_drawstyle() == "steps-post"
    assert line(rates, "front").get_drawstyle() == "steps-pre"
