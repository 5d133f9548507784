from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsadbench.utils.deviation import sample_deviation


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=9))
def test_it_is_the_float_that_the_standard_library_finds(values):
    try:
        expected = statistics.stdev(values)
    except OverflowError:  # beyond the largest float
        with pytest.raises(OverflowError):
            sample_deviation(values)
        return
    assert sample_deviation(values) == expected


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.integers(0, 40))
def test_neighbouring_floats(values, n_steps):
    shifted = [math.nextafter(value, 2.0) if place < n_steps else value for place, value in enumerate(values * 2)]
    assert sample_deviation(shifted) == statistics.stdev(shifted)


def test_by_hand():
    assert sample_deviation([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) == math.sqrt(32 / 7)
    assert sample_deviation([0.1, 0.1, 0.1]) == 0.0
    assert sample_deviation([1, 2]) == math.sqrt(0.5)


def test_what_is_not_finite_is_what_the_standard_library_makes_of_it():
    for odd in (math.inf, math.nan):
        try:
            expected = statistics.stdev([0.0, odd])
        except Exception as error:
            with pytest.raises(type(error)):
                sample_deviation([0.0, odd])
        else:
            assert math.isnan(sample_deviation([0.0, odd])) == math.isnan(expected)
