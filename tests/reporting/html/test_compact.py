"""Long series made small: no peak is lost, no row is moved."""

from __future__ import annotations

import base64

import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from numpy.testing import assert_array_equal

from tsadbench.reporting.html.compact import Buckets, packed, packed_shares, thinned

# A byte draws a value: that is much cheaper than to draw a float, and equal neighbours are frequent.
LEVELS = np.append(np.random.default_rng(0).uniform(-1e6, 1e6, 223), [np.nan] * 32 + [0.0])


def series(at_least: int, at_most: int) -> st.SearchStrategy[np.ndarray]:
    return st.binary(min_size=at_least, max_size=at_most).map(lambda drawn: np.frombuffer(drawn, dtype=np.uint8))


@given(series(1, 300).map(LEVELS.__getitem__), st.integers(1, 120))
def test_each_bucket_keeps_its_lowest_and_highest_value_in_their_order(values, n_points):
    buckets = Buckets.at_most(n_points, len(values))
    points = buckets.envelope(values)
    assert len(points) == len(buckets.rows()) <= max(2, n_points, 1)
    if buckets.whole:
        assert_array_equal(points, values)
        return
    for bucket, pair in zip(np.split(values, buckets.starts[1:]), points.reshape(-1, 2), strict=True):
        present = [value for value in bucket if not np.isnan(value)]
        if not present:
            assert np.isnan(pair).all()
            continue
        assert sorted(pair) == [min(present), max(present)]
        assert present.index(pair[0]) <= present.index(pair[1])


@given(series(1, 200).map(lambda drawn: drawn % 3 == 0), st.integers(1, 80))
def test_runs_cover_every_true_row_and_nothing_but_their_buckets(rows, n_points):
    buckets = Buckets.at_most(n_points, len(rows))
    covered = np.zeros(len(rows), dtype=bool)
    for first, end in buckets.runs(rows):
        assert first in buckets.starts
        covered[first:end] = True
    for bucket, shown in zip(np.split(rows, buckets.starts[1:]), np.split(covered, buckets.starts[1:]), strict=True):
        assert shown.all() == shown.any() == bucket.any()


def test_runs_by_hand():
    rows = np.array([0, 1, 1, 0, 0, 1], dtype=bool)
    assert Buckets.at_most(10, 6).runs(rows) == [[1, 3], [5, 6]]
    assert Buckets.at_most(10, 6).runs(~rows) == [[0, 1], [3, 5]]
    assert Buckets(np.array([0, 2, 4]), 6).runs(rows) == [[0, 6]]
    assert Buckets(np.array([0, 3]), 6).runs(np.zeros(6, dtype=bool)) == []


def test_the_highest_of_each_bucket_by_column():
    values = np.array([[1.0, 9.0], [3.0, np.nan], [2.0, 5.0]])
    assert_array_equal(Buckets(np.array([0, 2]), 3).highest(values), [[3.0, 9.0], [2.0, 5.0]])


def test_numbers_come_back():
    values = np.array([0.0, -1.5, np.nan, 1e300])
    found = np.frombuffer(base64.b64decode(packed(values)), dtype="<f4")
    assert_array_equal(found, np.array([0.0, -1.5, np.nan, np.finfo(np.float32).max], dtype=np.float32))
    assert list(base64.b64decode(packed_shares(np.array([0.0, 0.5, 1.0, 2.0])))) == [0, 128, 255, 255]


@given(series(2, 500).map(lambda drawn: drawn / 255), st.integers(2, 50))
def test_a_thinned_curve_keeps_its_ends_and_holds_points_of_the_curve_only(heights, n_points):
    x = np.linspace(0, 1, len(heights))
    y = np.sort(heights)
    thin_x, thin_y = thinned(x, y, n_points)
    assert len(thin_x) <= max(n_points, 2)
    assert (thin_x[0], thin_y[0], thin_x[-1], thin_y[-1]) == (x[0], y[0], x[-1], y[-1])
    assert set(zip(thin_x, thin_y, strict=True)) <= set(zip(x, y, strict=True))
