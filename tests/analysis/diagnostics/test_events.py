"""Events, delays and false alarms against what can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tsadbench.analysis.events import Delay, Event, delays_of, events_of, false_alarms_of, row_seconds

unhurried = settings(deadline=None, max_examples=60)


def rows(text: str) -> np.ndarray:
    return np.array([character == "x" for character in text])


@pytest.mark.parametrize(
    ("anomalous", "evaluated", "flagged", "events", "false_alarms"),
    [
        pytest.param("..xxx..", "xxxxxxx", "...x...", [(2, 5, True, False, 3)], [], id="found one row late"),
        pytest.param("..xxx..", "xxxxxxx", ".......", [(2, 5, True, False, None)], [], id="missed"),
        pytest.param("..xxx..", "xxxxxxx", ".xx....", [(2, 5, True, True, 2)], [[1, 2]], id="on before it began"),
        pytest.param("..xxx..", "xxxxxxx", "....xx.", [(2, 5, True, False, 4)], [[5, 6]], id="outlasts its event"),
        pytest.param("..xxx..", "xxxxxxx", "x.....x", [(2, 5, True, False, None)], [[0, 1], [6, 7]], id="elsewhere"),
        pytest.param("xx...", "xxxxx", "x....", [(0, 2, False, False, 0)], [], id="began before the recording"),
        pytest.param("...xx", "xxxxx", "....x", [(3, 5, True, False, 4)], [], id="at the end"),
        pytest.param("xxxx..", "..xxxx", "..x..x", [(2, 4, False, False, 2)], [[5, 6]], id="began in the warm-up"),
        pytest.param("..xx..", "..xxxx", ".xx...", [(2, 4, True, True, 2)], [], id="begins with the evaluated rows"),
        pytest.param("..xx..", "...xxx", "xxx...", [(3, 4, False, False, None)], [], id="flagged in the warm-up only"),
        pytest.param("x.x", "xxx", "xxx", [(0, 1, False, False, 0), (2, 3, True, True, 2)], [[1, 2]], id="all flagged"),
        pytest.param("xxx", "xxx", "...", [(0, 3, False, False, None)], [], id="all anomalous"),
        pytest.param("...", "xxx", "xxx", [], [[0, 3]], id="no event"),
        pytest.param("x", "x", "x", [(0, 1, False, False, 0)], [], id="one row"),
        pytest.param(".x", "..", "xx", [], [], id="nothing evaluated"),
    ],
)
def test_by_hand(anomalous, evaluated, flagged, events, false_alarms):
    given_rows = rows(anomalous), rows(evaluated), rows(flagged)
    assert events_of(*given_rows) == tuple(Event(*event) for event in events)
    assert false_alarms_of(*given_rows).tolist() == false_alarms


@pytest.mark.parametrize(
    ("first_flagged", "look_ahead", "expected"),
    [(5, 0, 0), (7, 0, 2), (7, 9, 11), (7, 100, 14), (None, 0, None)],
    ids=["at once", "late", "known only after the look-ahead", "the recording ends before", "missed"],
)
def test_delay(first_flagged, look_ahead, expected):
    event = Event(5, 10, onset_seen=True, already_on=False, first_flagged=first_flagged)
    (delay,) = delays_of([event], n_rows=20, look_ahead=look_ahead)
    assert delay == (None if expected is None else Delay(expected, None))


def test_seconds_are_those_of_the_clock_gaps_included():
    event = Event(1, 4, onset_seen=True, already_on=False, first_flagged=2)
    time = np.array([0.0, 1.0, 2.0, 100.0, 101.0])
    assert delays_of([event, event], 5, time, look_ahead=1) == (Delay(2, 99.0),) * 2
    assert delays_of([event], 5, time[[0, 2, 1, 3, 4]]) == (Delay(1, None),), "time that runs back"


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (None, None),
        ([3.0], None),
        ([0.0, 1.0, 2.0, 250.0, 251.0], 1.0),
        ([0.0, 180.0, 360.0], 180.0),
        ([0.0, 1.0, 0.5, 2.0, 3.0], None),
        ([5.0, 5.0, 5.0], None),
    ],
)
def test_the_seconds_of_a_row_leave_gaps_out(time, expected):
    assert row_seconds(None if time is None else np.array(time)) == expected


masks = st.integers(0, 30).flatmap(lambda n: st.tuples(*[arrays(bool, n)] * 3))


@unhurried
@given(masks)
def test_events_and_false_alarms_cover_the_evaluated_rows_once(given_masks):
    anomalous, evaluated, flagged = given_masks
    of_events = np.zeros(len(anomalous), dtype=int)
    for event in events_of(*given_masks):
        of_events[event.start : event.stop] += 1
        assert event.found == bool((flagged & evaluated)[event.start : event.stop].any())
        if event.found:
            assert event.start <= event.first_flagged < event.stop
            assert not flagged[event.start : event.first_flagged].any()
    assert of_events.tolist() == (anomalous & evaluated).astype(int).tolist()
    of_alarms = np.zeros(len(anomalous), dtype=int)
    for start, stop in false_alarms_of(*given_masks):
        of_alarms[start:stop] += 1
    assert of_alarms.tolist() == (flagged & evaluated & ~anomalous).astype(int).tolist()
