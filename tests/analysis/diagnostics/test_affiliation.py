"""Affiliation precision and recall, against integrals by hand."""

from __future__ import annotations

import pytest

from tests.helpers.flags import rows
from tsadbench.analysis.diagnostics.measures import zones_of


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
        # The outer rows are up to one row from the flag in a zone of 3; the middle one is flagged.
        pytest.param("xxx", ".x.", [(1, 1 - 2 * (0.75 / 3) / 3)], id="all anomalous"),
    ],
)
def test_by_hand(anomalous, flagged, expected):
    found = zones_of(rows(flagged), rows(anomalous))
    assert len(found) == len(expected)
    for zone, (precision, recall) in zip(found, expected, strict=True):
        assert zone[0] == (None if precision is None else pytest.approx(precision, abs=1e-12))
        assert zone[1] == pytest.approx(recall, abs=1e-12)
