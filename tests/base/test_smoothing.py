"""The trailing mean, against a mean taken row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tsadbench.base import trailing_mean
from tsadbench.utils.arrays import FloatArray

VALUES = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6))


def test_an_extreme_value_leaves_no_trace_in_the_mean_once_it_is_gone() -> None:
    values = np.array([1e300, 0.1, 0.2, 0.3])
    assert trailing_mean(values, 2)[3] == (0.3 + 0.2) / 2


@given(VALUES, st.integers(1, 50), st.sets(st.integers(0, 39)))
def test_missing_values_anywhere_stay_and_take_no_part_in_the_mean(
    values: FloatArray, rows: int, missing: set[int]
) -> None:
    values = values.copy()
    values[[row for row in missing if row < len(values)]] = np.nan
    windows = [values[max(0, row - rows + 1) : row + 1] for row in range(len(values))]
    expected = [
        np.nan if np.isnan(window[-1]) else np.mean([value for value in window if not np.isnan(value)])
        for window in windows
    ]
    np.testing.assert_allclose(trailing_mean(values, rows), expected, rtol=1e-12, atol=1e-9)
