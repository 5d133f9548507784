"""Affiliation precision and recall against integrals by hand and sums over fine steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tsadbench.analysis.diagnostics.measures import zones_of

unhurried = settings(deadline=None, max_examples=60)


def rows(text: str) -> np.ndarray:
    return np.array([character == "x" for character in text])


@pytest.mark.parametrize(
    ("anomalous", "flagged", "expected"),
    [
        pytest.param("..xx..", "......", [(None, 0)], id="nothing flagged"),
        # Precision at distance d of 0 to 1: nearer are 2 + 2d of 6, so 1 - 3/6. Recall: from 2 and 3 to the flag's
        # border at 4 the distance falls from 2 to 0; nearer are 2d of 6, on average 2 of 6.
        pytest.param("..xx..", "....x.", [(1 / 2, 2 / 3)], id="the row after it"),
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
        pytest.param("....", "xx..", [], id="no event"),
        # The outer rows lie up to a row from the flag in a zone of 3; the middle one is flagged.
        pytest.param("xxx", ".x.", [(1, 1 - 2 * (0.75 / 3) / 3)], id="all anomalous"),
    ],
)
def test_by_hand(anomalous, flagged, expected):
    found = zones_of(rows(flagged), rows(anomalous))
    assert len(found) == len(expected)
    for zone, (precision, recall) in zip(found, expected, strict=True):
        assert zone[0] == (None if precision is None else pytest.approx(precision, abs=1e-12))
        assert zone[1] == pytest.approx(recall, abs=1e-12)


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
