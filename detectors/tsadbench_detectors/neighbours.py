"""The nearest of many remembered rows."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from tsadbench.base import FloatArray, IntArray

# In more dimensions a tree looks at nearly all rows, one at a time.
_MOST_COLUMNS_FOR_A_TREE = 8
# The products of this many rows with each other take 2 MiB, and stay in the cache until the largest is found.
_QUERIES_AT_ONCE, _REMEMBERED_AT_ONCE = 1_024, 256
_CANDIDATES = 4


class Neighbours:
    """Finds the nearest of some remembered rows (Euclidean distance).

    Matrix products find a few candidates: the row m nearest to x has the largest ``x m - |m|^2 / 2``. Only the
    candidates' distances are computed directly, because the product loses digits. Up to 8 columns, a tree is faster
    unless rows are excluded.

    Parameters
    ----------
    rows
        [n_remembered, n_columns], finite.

    Examples
    --------
    >>> neighbours = Neighbours(np.array([[0.0, 0.0], [3.0, 4.0]]))
    >>> distances, indices = neighbours.nearest(np.array([[0.0, 1.0], [3.0, 4.0]]), np.array([[0, 1], [1, 2]]))
    >>> distances.round(3).tolist(), indices.tolist()
    ([4.243, 5.0], [1, 0])
    """

    def __init__(self, rows: FloatArray) -> None:
        self.rows = rows
        self._tree = cKDTree(rows, balanced_tree=False)  # balanced, it is slow to build if many rows are equal
        self._mean = rows.mean(axis=0)  # far from 0, the product would lose more digits
        self._columns = np.ascontiguousarray((rows - self._mean).T)
        self._half_squares = (self._columns**2).sum(axis=0) / 2

    def nearest(self, queries: FloatArray, excluded: IntArray | None = None) -> tuple[FloatArray, IntArray]:
        """Return the distance to the nearest remembered row, and its index, [n_queries] each.

        ``excluded`` [n_queries, 2] is the half-open range of remembered rows that a query ignores; at least one row
        must remain.
        """
        if excluded is None and self.rows.shape[1] <= _MOST_COLUMNS_FOR_A_TREE:
            distances, indices = self._tree.query(queries)
            return np.asarray(distances, dtype=np.float64), np.asarray(indices, dtype=np.int64)
        excluded = np.zeros((len(queries), 2), dtype=np.int64) if excluded is None else excluded
        found = np.empty(len(queries), dtype=np.int64)
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            part = slice(start, start + _QUERIES_AT_ONCE)
            found[part] = self._nearest_of_block(queries[part], excluded[part])
        return np.asarray(np.linalg.norm(queries - self.rows[found], axis=1)), found

    def _nearest_of_block(self, queries: FloatArray, excluded: IntArray) -> IntArray:
        centred = queries - self._mean
        first, stop = excluded[:, :1], excluded[:, 1:]
        best, candidates = [], []  # of each block of remembered rows, [n_queries]
        for start in range(0, len(self.rows), _REMEMBERED_AT_ONCE):
            block = slice(start, start + _REMEMBERED_AT_ONCE)
            products = centred @ self._columns[:, block] - self._half_squares[block]
            numbers = np.arange(start, start + products.shape[1])
            if ((first <= numbers[-1]) & (stop > start)).any():
                products[(numbers >= first) & (numbers < stop)] = -np.inf
            largest = products.argmax(axis=1)
            best.append(np.take_along_axis(products, largest[:, None], axis=1)[:, 0])
            candidates.append(largest + start)
        order = np.argsort(-np.array(best), axis=0, kind="stable")[:_CANDIDATES]
        few = np.take_along_axis(np.array(candidates), order, axis=0)
        squares = ((queries - self.rows[few]) ** 2).sum(axis=2)
        # Every row of a block may be excluded.
        squares[np.isneginf(np.take_along_axis(np.array(best), order, axis=0))] = np.inf
        return np.asarray(np.take_along_axis(few, squares.argmin(axis=0)[None], axis=0)[0])
