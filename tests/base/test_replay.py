"""How several replay audits are combined, and when they mark a table row."""

from __future__ import annotations

import pytest

from tsadbench.base.replay import Replay
from tsadbench.execution.replays import weakest


@pytest.mark.parametrize(
    ("found", "marks"),
    [
        ({}, ()),
        ({"correlation": 0.9, "median_ratio": 10.0, "tail_ratio": 0.1}, ()),
        ({"correlation": 0.899}, ("unforgetting",)),
        ({"unbounded": True}, ("unforgetting",)),
        ({"unbounded": True, "correlation": 0.9}, ()),
        ({"correlation": float("nan")}, ("unforgetting",)),
        ({"median_ratio": 10.01}, ("uncalibrated",)),
        ({"tail_ratio": 0.0999}, ("uncalibrated",)),
        ({"tail_ratio": float("inf"), "correlation": -1.0}, ("unforgetting", "uncalibrated")),
        ({"median_ratio": 0.0}, ("uncalibrated",)),
    ],
)
def test_what_marks_a_row(found, marks):
    assert Replay(copy="restored", rows=200, **found).marks == marks


def test_the_weakest_of_several():
    found = weakest(
        [
            Replay(copy="restored", rows=900, correlation=0.99, median_ratio=1.5, tail_ratio=0.5),
            None,
            Replay(copy="same process", rows=200, median_ratio=0.5, tail_ratio=1.9),
            Replay(copy="forked", rows=300, correlation=0.3, median_ratio=1.9),
        ]
    )
    assert found == Replay(copy="same process", rows=200, correlation=0.3, median_ratio=0.5, tail_ratio=0.5)
