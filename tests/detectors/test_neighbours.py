"""The nearest remembered row: against SciPy's tree to the bit, and against all distances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from tsadbench.utils.arrays import FloatArray, IntArray
from tsadbench_detectors.neighbours import Neighbours

RNG = np.random.default_rng(0)
# Numbers of columns that four divides or not (the tree has four running sums); one block of remembered rows or several.
SHAPES = [(2, 9), (127, 10), (128, 11), (129, 12), (1500, 50), (1500, 53)]


def _nearest_by_tree(rows: FloatArray, queries: FloatArray) -> FloatArray:
    distances, _ = cKDTree(rows).query(queries)
    return np.asarray(distances)


def _excluded(n_queries: int, n_rows: int, widest: int, seed: int = 0) -> IntArray:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_rows, size=n_queries)
    return np.column_stack([first, np.minimum(first + rng.integers(0, widest + 1, size=n_queries), n_rows)])


def _brute_force(rows: FloatArray, queries: FloatArray, excluded: IntArray) -> FloatArray:
    distances = cdist(queries, rows)
    numbers = np.arange(len(rows))
    distances[(numbers >= excluded[:, :1]) & (numbers < excluded[:, 1:])] = np.inf
    nearest: FloatArray = distances.min(axis=1)
    return nearest


@pytest.mark.parametrize("shape", [(1, 1), (50, 3), (300, 8), *SHAPES])
def test_distances_are_the_trees_to_the_bit(shape: tuple[int, int]) -> None:
    rows, queries = RNG.normal(size=shape), RNG.normal(size=(2500, shape[1]))
    distances, indices = Neighbours(rows).nearest(queries)
    np.testing.assert_array_equal(distances, _nearest_by_tree(rows, queries))
    np.testing.assert_array_equal(indices, cdist(queries, rows).argmin(axis=1))


@pytest.mark.parametrize("shape", [(300, 8), *SHAPES])
@pytest.mark.parametrize("widest", [1, 400])
def test_rows_are_left_out_by_their_index(shape: tuple[int, int], widest: int) -> None:
    rows = RNG.normal(size=shape)
    queries = np.concatenate([rows, RNG.normal(size=(1100, shape[1]))])
    excluded = _excluded(len(queries), len(rows), min(widest, len(rows) - 1))
    distances, indices = Neighbours(rows).nearest(queries, excluded)
    np.testing.assert_allclose(distances, _brute_force(rows, queries, excluded), rtol=1e-12)
    assert not ((indices >= excluded[:, 0]) & (indices < excluded[:, 1])).any()
    np.testing.assert_allclose(np.linalg.norm(queries - rows[indices], axis=1), distances, rtol=1e-12)


def test_the_tree_looks_further_until_it_finds_a_row_that_is_not_left_out() -> None:
    # Equal rows leave products too many candidates, so the tree is asked.
    rows = np.repeat(np.arange(3.0), 2000)[:, None] * np.ones(9)
    queries = rows[[0, 2500, 5999]] + 0.1
    excluded = np.array([[0, 2000], [0, 4000], [3, 6000]])
    distances, indices = Neighbours(rows).nearest(queries, excluded)
    np.testing.assert_allclose(distances, _brute_force(rows, queries, excluded))
    assert indices[0] in range(2000, 4000)
    assert indices[1] in range(4000, 6000)
    assert indices[2] in range(3)


# So many equal or nearly equal rows that all of them, or a share, are candidates: 20 blocks, or 2.
@pytest.mark.parametrize("n_rows", [2560, 256])
@pytest.mark.parametrize("closeness", [0.0, 1e-14, 1e-9, 1e-7, 1e-5, 1e-3])
def test_rows_closer_together_than_single_precision_can_tell(n_rows: int, closeness: float) -> None:
    rows = RNG.normal(size=12) + closeness * RNG.normal(size=(n_rows, 12))
    rows[::7] = rows[3]
    queries = rows[RNG.integers(0, n_rows, size=700)] + closeness * RNG.normal(size=(700, 12))
    distances, indices = Neighbours(rows).nearest(queries)
    np.testing.assert_array_equal(distances, _nearest_by_tree(rows, queries))
    np.testing.assert_allclose(np.linalg.norm(queries - rows[indices], axis=1), distances, rtol=1e-9)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(2, 400),
    n_columns=st.integers(9, 14),
    values=st.sampled_from([2, 3, 10]),
)
def test_ties_duplicates_and_zeros(seed: int, n_rows: int, n_columns: int, values: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, values, size=(n_rows, n_columns)).astype(np.float64)
    queries = np.concatenate([rows, rng.integers(0, values + 2, size=(30, n_columns))]).astype(np.float64)
    excluded = _excluded(len(queries), n_rows, n_rows - 1, seed)
    neighbours = Neighbours(rows)
    np.testing.assert_array_equal(neighbours.nearest(queries)[0], _nearest_by_tree(rows, queries))
    np.testing.assert_allclose(
        neighbours.nearest(queries, excluded)[0], _brute_force(rows, queries, excluded), rtol=1e-12
    )


@pytest.mark.parametrize("scale", [1e-200, 1e-45, 1e-30, 1e-19, 1.0, 1e15, 1e18, 1e19, 1e30, 1e150])
def test_any_scale(scale: float) -> None:
    rows, queries = scale * RNG.normal(size=(600, 12)), scale * RNG.normal(size=(300, 12))
    np.testing.assert_array_equal(Neighbours(rows).nearest(queries)[0], _nearest_by_tree(rows, queries))


@pytest.mark.parametrize("far", [1e4, 1e9, 1e17, 1e30, 1e100, 1e300])
def test_a_query_far_away_in_a_column_that_varies_and_in_one_that_does_not(far: float) -> None:
    rows, queries = RNG.normal(size=(600, 12)), RNG.normal(size=(40, 12))
    rows[:, 5] = 0.25
    queries[::4, 5] += far
    queries[1::4, 2] -= far
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(Neighbours(rows).nearest(queries)[0], _nearest_by_tree(rows, queries))


def test_rows_that_are_all_equal() -> None:
    rows = np.full((600, 12), 0.1)
    distances, _ = Neighbours(rows).nearest(np.concatenate([rows[:3], rows[:3] + 1]))
    np.testing.assert_allclose(distances, [0, 0, 0, *[np.sqrt(12)] * 3])


@pytest.mark.parametrize("n_columns", [3, 20])
def test_a_rows_answer_does_not_depend_on_the_other_queries(n_columns: int) -> None:
    neighbours = Neighbours(RNG.normal(size=(500, n_columns)))
    queries = RNG.normal(size=(1300, n_columns))
    distances, indices = neighbours.nearest(queries)
    for part in (slice(0, 1), slice(5, 40), slice(900, 1300)):
        found = neighbours.nearest(queries[part])
        np.testing.assert_array_equal(found[0], distances[part])
        np.testing.assert_array_equal(found[1], indices[part])
