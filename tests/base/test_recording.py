from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from tsadbench import DataError, Recording
from tsadbench.base.recording import as_recordings


def test_values_are_float64_read_only_and_independent_of_the_callers_array():
    values = np.ones((3, 2), dtype=np.float32)
    recording = Recording("r", values, ("a", "b"))
    values[0, 0] = 5.0
    assert recording.values.dtype == np.float64
    assert recording.values[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        recording.values[0, 0] = 2.0


def test_a_read_only_array_is_not_copied():
    values = np.ones((3, 2))
    values.flags.writeable = False
    assert Recording("r", values, ("a", "b")).values is values


@pytest.mark.parametrize(
    ("shape", "sensors", "time", "message"),
    [
        *((shape, ("a", "b"), None, "row") for shape in ((3,), (0, 2), (3, 0), (2, 2, 2))),
        ((3, 2), ("a",), None, "2 .* 1 "),
        ((3, 2), ("a", "a"), None, r"\['a'\]"),
        ((3, 2), ("a", "b"), np.arange(2.0), "time"),
    ],
)
def test_wrong_shapes_sensors_and_times_are_refused(shape, sensors, time, message):
    with pytest.raises(DataError, match=message):
        Recording("r", np.ones(shape), sensors, time=time)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_must_be_finite_and_the_message_names_the_place(value):
    values = np.ones((4, 2))
    values[2, 1] = value
    with pytest.raises(DataError, match="row 2, sensor 'b'"):
        Recording("r", values, ("a", "b"))


def test_rows_are_views_with_their_time():
    recording = Recording("r", np.arange(10.0).reshape(5, 2), ("a", "b"), time=np.arange(5.0))
    part = recording.rows(1, 3, id="part")
    assert part.id == "part"
    assert_array_equal(part.values, [[2, 3], [4, 5]])
    assert_array_equal(part.time, [1, 2])
    assert np.shares_memory(part.values, recording.values)


def test_from_frame_takes_seconds_from_a_date_index_whatever_its_unit():
    for unit in ("s", "ns"):
        index = pd.date_range("2020-01-01", periods=3, freq="2s", unit=unit)
        recording = Recording.from_frame(pd.DataFrame({"a": [1, 2, 3]}, index=index))
        assert_array_equal(np.diff(recording.time), [2.0, 2.0])
        assert recording.time[0] == 1577836800.0


def test_from_frame_reads_time_zones_and_time_deltas():
    zone = pd.date_range("2020-01-01", periods=2, freq="s", tz="Europe/Berlin")
    assert Recording.from_frame(pd.DataFrame({"a": [1.0, 2.0]}, index=zone)).time[0] == 1577836800.0 - 3600
    delta = pd.to_timedelta([0.5, 1.5], unit="s")
    assert_array_equal(Recording.from_frame(pd.DataFrame({"a": [1.0, 2.0]}, index=delta)).time, [0.5, 1.5])


def test_from_frame_names_text_columns_and_missing_values():
    with pytest.raises(DataError, match=r"\['b'\]"):
        Recording.from_frame(pd.DataFrame({"a": [1.0], "b": ["x"]}))
    with pytest.raises(DataError, match="row 1, sensor 'a'"):
        Recording.from_frame(pd.DataFrame({"a": [1.0, None]}))


def test_as_recordings_takes_frames_arrays_and_sequences_of_them():
    assert as_recordings(np.ones((3, 2)))[0].sensors == ("x0", "x1")
    assert [one.n_rows for one in as_recordings([np.ones((3, 2)), np.ones((4, 2))])] == [3, 4]
    with pytest.raises(DataError, match="recording"):
        as_recordings([])
    with pytest.raises(DataError, match="sensors"):
        as_recordings([np.ones((3, 2)), np.ones((3, 3))])
    with pytest.raises(DataError, match="str"):
        as_recordings(["text"])
