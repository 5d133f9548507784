"""A regular grid: what pandas' own resample gives, and labels counted by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsadbench.datasets.reading.resampling import grid_fault, grid_of

# Milliseconds between rows, and what each row holds; None is a missing value.
STEPS = st.lists(st.integers(0, 4_000), min_size=1, max_size=40)
CELLS = st.one_of(st.none(), st.floats(-1e6, 1e6))


def _rows(data, steps):
    milliseconds = 1_500_000_000_000 + np.cumsum([0, *steps[1:]])
    values = np.array(data.draw(st.lists(CELLS, min_size=len(steps), max_size=len(steps))), dtype=np.float64)
    return milliseconds, values


@settings(deadline=None)
@given(
    data=st.data(),
    steps=STEPS,
    every=st.sampled_from([250, 1_000, 3_000]),
    by=st.sampled_from(["median", "mean", "last"]),
)
def test_values_are_those_of_pandas(data, steps, every, by):
    milliseconds, values = _rows(data, steps)
    series = pd.Series(values, pd.to_datetime(milliseconds, unit="ms"))
    expected = getattr(series.resample(f"{every}ms", origin="start"), by)()
    grid = grid_of(milliseconds / 1000.0, every / 1000.0)
    found = grid.values(values[:, np.newaxis], by)[:, 0]
    np.testing.assert_allclose(
        found, (expected.ffill() if by == "last" else expected).to_numpy(), rtol=1e-12, atol=1e-6
    )
    seconds = (expected.index - pd.Timestamp(0)) / pd.Timedelta(seconds=1)
    np.testing.assert_allclose(grid.time, seconds, rtol=0, atol=1e-6)


@given(data=st.data(), steps=STEPS, every=st.sampled_from([250, 1_000, 3_000]))
def test_a_row_is_anomalous_if_any_of_its_rows_is_and_an_empty_one_if_the_last_before_it_is(data, steps, every):
    milliseconds, _ = _rows(data, steps)
    labels = np.array(data.draw(st.lists(st.booleans(), min_size=len(steps), max_size=len(steps))))
    expected: list[bool] = []
    for start in range(int(milliseconds[0]), int(milliseconds[-1]) + 1, every):
        own = [bool(label) for at, label in zip(milliseconds, labels, strict=True) if start <= at < start + every]
        last = bool(labels[milliseconds < start + every][-1])
        expected.append(any(own) if own else last)
    assert grid_of(milliseconds / 1000.0, every / 1000.0).labels(labels).tolist() == expected


@given(data=st.data(), steps=STEPS, every=st.sampled_from([250, 1_000, 3_000]))
def test_each_row_names_the_first_of_its_rows(data, steps, every):
    milliseconds, _ = _rows(data, steps)
    grid = grid_of(milliseconds / 1000.0, every / 1000.0)
    starts = milliseconds[0] + every * np.arange(grid.n_rows)
    assert grid.first_rows.tolist() == [next(i for i, at in enumerate(milliseconds) if at >= start) for start in starts]


def test_a_row_on_a_border_belongs_behind_it_in_seconds_since_1970_too():
    # 0.1 s has no exact float64, nor have most times of day in seconds since 1970.
    time = 1_763_800_000.3 + np.arange(5_000) * 0.1
    assert grid_of(time, 0.1).bins.tolist() == list(range(5_000))
    assert grid_of(time, 1.0).bins.tolist() == [row // 10 for row in range(5_000)]


@pytest.mark.parametrize(("every", "fits"), [(0.5, False), (0.9, False), (1.0, True), (10.0, True)])
def test_a_step_finer_than_the_data_is_refused_unless_values_hold(every, fits):
    time = np.array([0.0, 1.0, 2.0, 2.5, 3.5, 60.0])
    fault = grid_fault(time, every, held=False)
    assert (fault is None) == fits
    assert fits or "resample.every is" in fault
    assert grid_fault(time, every, held=True) is None


def test_a_time_far_from_the_others_is_refused_before_memory_is_taken():
    fault = grid_fault(np.array([0.0, 1.0, 1.7e9]), 1.0, held=True)
    assert "1,700,000,001 rows of its 3" in fault
