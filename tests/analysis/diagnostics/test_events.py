"""Events and delays, counted by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.flags import rows
from tsadbench.analysis.events import recording_events


def events_of(anomalous, evaluated, flagged, time=None, look_ahead=0):
    recording = SimpleNamespace(time=time)
    scored = SimpleNamespace(anomalous=anomalous, evaluated=evaluated, flagged=flagged, recording=recording)
    return recording_events(scored, look_ahead)


@pytest.mark.parametrize(
    ("anomalous", "evaluated", "flagged", "events"),
    [
        pytest.param("..xxx..", "xxxxxxx", "...x...", [(2, 5, True, False, 3)], id="found one row late"),
        pytest.param("..xxx..", "xxxxxxx", ".xx....", [(2, 5, True, True, 2)], id="on before it began"),
        pytest.param("xx...", "xxxxx", "x....", [(0, 2, False, False, 0)], id="began before the recording"),
        pytest.param("xxxx..", "..xxxx", "..x..x", [(2, 4, False, False, 2)], id="began in the warm-up"),
        pytest.param("..xx..", "..xxxx", ".xx...", [(2, 4, True, True, 2)], id="begins with the evaluated rows"),
        pytest.param("..xx..", "...xxx", "xxx...", [(3, 4, False, False, None)], id="flagged in the warm-up only"),
        pytest.param("x.x", "xxx", "xxx", [(0, 1, False, False, 0), (2, 3, True, True, 2)], id="all flagged"),
        pytest.param("...", "xxx", "xxx", [], id="no event"),
        pytest.param(".x", "..", "xx", [], id="nothing evaluated"),
    ],
)
def test_by_hand(anomalous, evaluated, flagged, events):
    found = events_of(rows(anomalous), rows(evaluated), rows(flagged))
    assert [event[:5] for event in found] == events


@pytest.mark.parametrize(
    ("first_flagged", "look_ahead", "expected"),
    [(5, 0, 0), (7, 0, 2), (7, 9, 11), (7, 100, 14), (None, 0, None)],
    ids=["at once", "late", "known only after the look-ahead", "the recording ends before", "missed"],
)
def test_delay(first_flagged, look_ahead, expected):
    at = np.arange(20)
    (event,) = events_of((at >= 5) & (at < 10), at >= 0, at == first_flagged, look_ahead=look_ahead)
    assert (event.delay_rows, event.delay_seconds) == (expected, None)


def test_seconds_come_from_the_clock_and_include_gaps():
    time = np.array([0.0, 1.0, 2.0, 100.0, 101.0])
    (event,) = events_of(rows(".xxx."), rows("xxxxx"), rows("..x.."), time, look_ahead=1)
    assert (event.delay_rows, event.delay_seconds) == (2, 99.0)
    (event,) = events_of(rows(".xxx."), rows("xxxxx"), rows("..x.."), time[[0, 2, 1, 3, 4]])
    assert (event.delay_rows, event.delay_seconds) == (1, None), "time that runs back"
