"""Affiliation precision and recall against integrals by hand, the paper's example, and sums over fine steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tsadbench.analysis.diagnostics.measures import affiliation, zones_of

unhurried = settings(deadline=None, max_examples=60)


def rows(text: str) -> np.ndarray:
    return np.array([character == "x" for character in text])


def stretches(n_rows: int, *pairs: tuple[int, int]) -> np.ndarray:
    found = np.zeros(n_rows, dtype=bool)
    for start, stop in pairs:
        found[start:stop] = True
    return found


@pytest.mark.parametrize(
    ("anomalous", "flagged", "expected"),
    [
        pytest.param("..xx..", "..xx..", [(1, 1)], id="the event itself"),
        pytest.param("..xx..", "......", [(None, 0)], id="nothing flagged"),
        # Recall from row 2: to the flag at 3 the distance falls from 1 to 0, and 2 * distance / 6 are nearer: 5/6.
        pytest.param("..xx..", "...x..", [(1, (5 / 6 + 1) / 2)], id="half of it"),
        # Precision at distance d of 0 to 1: nearer are 2 + 2d of 6, so 1 - 3/6. Recall: from 2 and 3 to the flag's
        # border at 4 the distance falls from 2 to 0; nearer are 2d of 6, on average 2 of 6.
        pytest.param("..xx..", "....x.", [(1 / 2, 2 / 3)], id="the row after it"),
        # Distance 1 to 2: nearer are 2 + 2d, on average 5 of 6. Recall: d of 3 to 1 to the border at 5; on the left
        # 2d reaches beyond the zone's start where y < d, that is y < 2.5: there d + y.
        pytest.param("..xx..", ".....x", [(1 / 6, 1 - (0.5 * 5 + 1.5 * 3.5) / 2 / 6)], id="two rows after it"),
        # All flagged: 2 rows at 1, 4 at distances 0 to 2 on average 1/3.
        pytest.param("..xx..", "xxxxxx", [((2 + 4 / 3) / 6, 1)], id="all flagged"),
        # Event at the start, zone of 4: nothing on its left. Precision at distance 0 to 1: nearer are 1 + d of 4.
        # Recall: d of 1 to 0 on the right, on average .5; on the left no more than there is, on average .25.
        pytest.param("x...", ".x..", [(1 - 1.5 / 4, 1 - 0.75 / 4)], id="at the start"),
        pytest.param("...x", "..x.", [(1 - 1.5 / 4, 1 - 0.75 / 4)], id="at the end"),
        # Zones end between the events, at 2.5: row 2 is half in each.
        pytest.param("x...x", "..x..", [(1 - 2.25 / 2.5, 1 - (1.5 + 0.5) / 2.5)] * 2, id="between two events"),
        # The second zone is [2.5, 8), its event [3, 6). Precision: distance d of 0 to 1, nearer are 3, d on the right
        # and d up to .5 on the left. Recall: 6 - y on the right; on the left as well, but no more than y - 2.5, which
        # is less up to y = 4.25.
        pytest.param(
            "xx.xxx..",
            "......x.",
            [(None, 0), (1 - 3.875 / 5.5, 1 - (1.5 + (1.25 * 1.125 + 1.75 * 0.875) / 3) / 5.5)],
            id="a kink on a quarter of a row",
        ),
        pytest.param("x...x", "x....", [(1, 1), (None, 0)], id="one of two"),
        pytest.param("....", "xx..", [], id="no event"),
        # The outer rows as in the last but two, of a zone of 3; the middle one is flagged.
        pytest.param("xxx", ".x.", [(1, 1 - 2 * (0.75 / 3) / 3)], id="all anomalous"),
        pytest.param("x", "x", [(1, 1)], id="one row"),
    ],
)
def test_by_hand(anomalous, flagged, expected):
    found = zones_of(rows(flagged), rows(anomalous))
    assert len(found) == len(expected)
    for zone, (precision, recall) in zip(found, expected, strict=True):
        assert zone[0] == (None if precision is None else pytest.approx(precision, abs=1e-12))
        assert zone[1] == pytest.approx(recall, abs=1e-12)


def test_the_papers_example():
    # 180 rows, a minute each. The middle event's zone is [30, 120); by hand, and as the authors' own tests have it:
    # precision: 40-50 lie 0 to 10 off, on average 60/90; 50-60 inside; 115-120 lie 45 to 50 off, on average 2.5/90.
    # recall: 50-60 flagged; 60-70 are 0 to 10 off, on average 80/90.
    flagged = stretches(180, (5, 6), (7, 10), (11, 12), (40, 60), (115, 130), (135, 140), (165, 170))
    anomalous = stretches(180, (0, 10), (50, 70), (170, 175))
    _, middle, _ = zones_of(flagged, anomalous)
    assert middle[0] == pytest.approx((10 * 60 / 90 + 10 + 5 * 2.5 / 90) / 25)
    assert middle[0] == pytest.approx(0.672222222)
    assert middle[1] == pytest.approx(0.944444444)


def by_fine_steps(flagged: np.ndarray, anomalous: np.ndarray, steps: int = 64) -> list[tuple[float | None, float]]:
    """The definition itself, as sums over many points and chances over many others; slow."""
    n_rows = len(anomalous)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], anomalous.astype(int), [0]))))
    events = list(zip(edges[::2], edges[1::2], strict=True))
    borders = [0.0, *((events[i][1] + events[i + 1][0]) / 2 for i in range(len(events) - 1)), float(n_rows)]
    points = (np.arange(n_rows * steps) + 0.5) / steps
    is_flagged = np.repeat(flagged, steps)
    found: list[tuple[float | None, float]] = []
    for i, (start, stop) in enumerate(events):
        in_zone = (points > borders[i]) & (points < borders[i + 1])
        zone, flags = points[in_zone], points[in_zone & is_flagged]
        event = points[(points > start) & (points < stop)]
        if not len(flags):
            found.append((None, 0.0))
            continue
        away = np.maximum(np.maximum(start - zone, zone - stop), 0)
        of_flags = np.maximum(np.maximum(start - flags, flags - stop), 0)
        precision = np.mean([np.mean(away >= one) for one in of_flags])
        recall = []
        for y in event:
            to_flag = np.abs(flags - y).min()
            recall.append(np.mean(np.abs(zone - y) >= to_flag) if to_flag > 0 else 1.0)
        found.append((float(precision), float(np.mean(recall))))
    return found


@settings(parent=unhurried, max_examples=40)
@given(st.integers(1, 9).flatmap(lambda n: st.tuples(arrays(bool, n), arrays(bool, n))))
def test_it_is_the_definition(case):
    flagged, anomalous = case
    found, expected = zones_of(flagged, anomalous), by_fine_steps(flagged, anomalous)
    assert len(found) == len(expected)
    for zone, (precision, recall) in zip(found, expected, strict=True):
        assert zone[0] == (None if precision is None else pytest.approx(precision, abs=0.03))
        assert zone[1] == pytest.approx(recall, abs=0.03)


def test_means_over_events_leave_undefined_precision_out():
    assert affiliation([(0.5, 0.25), (None, 0.0), (1.0, 0.5)]) == (0.75, 0.25, 0.375)
    assert affiliation([]) == (None, None, None)
    assert affiliation([(0.0, 0.0)]) == (0.0, 0.0, 0.0)
