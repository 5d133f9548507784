"""A window for every row: full ones are those of the recording, the first are filled up with its first row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsadbench import UsageError
from tsadbench.base import trailing_windows


@given(st.integers(1, 12), st.integers(1, 3), st.integers(1, 15))
def test_each_row_ends_the_window_that_a_loop_cuts_out(n_rows, n_sensors, length):
    rows = np.random.default_rng(n_rows).normal(size=(n_rows, n_sensors))
    windows = trailing_windows(rows, length)
    expected = [[rows[max(0, last - back)] for back in range(length - 1, -1, -1)] for last in range(n_rows)]
    np.testing.assert_array_equal(windows, np.array(expected))


def test_the_windows_are_a_view():
    windows = trailing_windows(np.zeros((1000, 4)), 100)
    assert windows.base is not None
    assert not windows.flags.writeable


def test_a_window_without_rows_is_refused():
    with pytest.raises(UsageError, match="0"):
        trailing_windows(np.zeros((3, 2)), 0)
