"""The trailing median, against a median taken row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.smoothing import trailing_median

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
