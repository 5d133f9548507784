"""Compares drawn differences, sessions, critical differences and mean ranks with hand-made frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.helpers.trials import drawn
from tsadbench.reporting.figures import critical_differences, differences, mean_ranks, sessions

UNITS = pd.DataFrame({"a": [0.9, 0.5, 0.7], "b": [0.4, 0.6, 0.7]}, index=["one", "two", "three"])


def test_differences_are_sorted_and_ties_are_grey(figure):
    ax = differences(UNITS, figure.add_subplot(), rope=0.01, interval=(-0.2, 0.5))
    points = ax.collections[1].get_offsets()
    np.testing.assert_allclose(points, [(-0.1, 0), (0.0, 1), (0.5, 2)], atol=1e-12)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["two", "three", "one"]
    assert len({tuple(colour) for colour in ax.collections[1].get_facecolors()}) == 3
    (mean,) = (line for line in ax.lines if line.get_label() == "mean")
    assert set(np.round(mean.get_xdata(), 12)) == {round(0.4 / 3, 12)}
    rope, interval = (patch.get_bbox() for patch in ax.patches)
    assert (rope.x0, rope.x1, interval.x0, interval.x1) == pytest.approx((-0.01, 0.01, -0.2, 0.5))


@pytest.mark.parametrize(("lower", "first"), [(False, "a"), (True, "b")])
def test_sessions_with_the_best_mean_on_top(figure, lower, first):
    ax = sessions(UNITS, figure.add_subplot(), lower=lower)
    assert ax.get_yticklabels()[-1].get_text() == first, "on top"
    *each, mean = ax.collections
    np.testing.assert_allclose(mean.get_offsets()[:, 0], UNITS.mean().sort_values(ascending=not lower))
    assert [one.get_label() for one in each] == list(UNITS.index)


def test_critical_differences_join_what_p_values_do_not_tell_apart(figure):
    pytest.importorskip("scikit_posthocs")
    ranks = pd.Series({"a": 1.2, "b": 1.9, "c": 2.9})
    p = pd.DataFrame([[1, 0.4, 0.01], [0.4, 1, 0.02], [0.01, 0.02, 1]], index=ranks.index, columns=ranks.index)
    ax = critical_differences(ranks, p, figure.add_subplot())
    bars = [line.get_xdata() for line in ax.lines if line.get_marker() == "o"]
    assert [sorted(bar) for bar in bars] == [[1.2, 1.9]]


def test_mean_ranks_with_the_band_of_the_informative_floors(figure):
    frame = pd.DataFrame(
        {
            "detector": ["good", "max-z", "poor", "ridge", "random"],
            "floor": [False, True, False, True, True],
            "rank": [1.0, 2.0, 3.0, 4.0, 5.0],
            "rank_low": [1.0, 1.5, 2.5, 3.5, 4.5],
            "rank_high": [2.0, 2.5, 3.5, 4.5, 5.0],
        }
    )
    ax = mean_ranks(frame, figure.add_subplot(), {"good": "good.html"})
    (band,) = (patch.get_bbox() for patch in ax.patches if patch.get_gid() == "floors")
    assert (band.x0, band.x1) == (2.0, 4.0)
    drawn_points = [tuple(map(float, at)) for one in ax.collections[1::2] for at in one.get_offsets()]
    assert sorted(drawn_points) == [(rank, place) for place, rank in enumerate(frame["rank"])]
    intervals = [segment[:, 0].tolist() for one in ax.collections[::2] for segment in one.get_segments()]
    assert sorted(intervals) == frame[["rank_low", "rank_high"]].to_numpy().tolist()
    names = ax.get_yticklabels()
    assert [text.get_text() for text in names] == list(frame["detector"])
    assert [text.get_url() for text in names] == ["good.html", None, None, None, None]
    assert drawn(figure).std() > 0
