"""A window for every row; the first windows are padded with the recording's first row."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tsadbench.base import trailing_windows


@given(st.integers(1, 12), st.integers(1, 3), st.integers(1, 15))
def test_windows_equal_those_cut_by_a_loop(n_rows, n_sensors, length):
    rows = np.random.default_rng(n_rows).normal(size=(n_rows, n_sensors))
    windows = trailing_windows(rows, length)
    expected = [[rows[max(0, last - back)] for back in range(length - 1, -1, -1)] for last in range(n_rows)]
    np.testing.assert_array_equal(windows, np.array(expected))
