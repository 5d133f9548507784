"""The trailing median and mean, against a median and a mean taken row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.smoothing import trailing_mean, trailing_median

VALUES = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6))


@given(VALUES, st.integers(1, 50))
def test_is_the_median_of_the_last_rows_that_exist(values: FloatArray, rows: int) -> None:
    expected = [np.median(values[max(0, row - rows + 1) : row + 1]) for row in range(len(values))]
    np.testing.assert_allclose(trailing_median(values, rows), expected, rtol=1e-15)


@given(VALUES, st.integers(1, 10), st.integers(1, 40))
def test_does_not_look_ahead(values: FloatArray, rows: int, stop: int) -> None:
    np.testing.assert_array_equal(trailing_median(values[:stop], rows), trailing_median(values, rows)[:stop])


def test_takes_out_a_spike() -> None:
    np.testing.assert_array_equal(trailing_median(np.array([0.0, 0.0, 100.0, 0.0, 0.0]), 3), 0.0)


@given(VALUES, st.integers(1, 50), st.integers(0, 5))
def test_the_mean_is_that_of_the_last_rows_that_exist(values: FloatArray, rows: int, missing: int) -> None:
    padded = np.concatenate([np.full(missing, np.nan), values])
    expected = [
        np.nan if row < missing else np.mean(padded[max(missing, row - rows + 1) : row + 1])
        for row in range(len(padded))
    ]
    np.testing.assert_allclose(trailing_mean(padded, rows), expected, rtol=1e-12, atol=1e-9)


def test_an_extreme_value_leaves_no_trace_in_the_mean_once_it_is_gone() -> None:
    values = np.array([1e300, 0.1, 0.2, 0.3])
    assert trailing_mean(values, 2)[3] == (0.3 + 0.2) / 2
