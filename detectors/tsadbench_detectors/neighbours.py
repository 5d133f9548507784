"""The nearest of many remembered rows, exactly: by a tree for few columns, by blocked products for many."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from tsadbench.base import BoolArray, Float32Array, FloatArray, IntArray

# In so few dimensions a tree looks at few rows; in 12 and more it looks at nearly all of them, one at a time. Measured
# with 20,000 remembered rows: 15 microseconds a row at 8 columns of noise and 70 at 12; products take 7 and 8.
MOST_COLUMNS_FOR_A_TREE = 8
# 128 x 1,024 products in single precision are 512 KiB: they stay in the cache until their largest is found.
_REMEMBERED_AT_ONCE = 128
_QUERIES_AT_ONCE = 1_024
# A row with near ties in more blocks of remembered rows than this is left to the tree.
_MOST_BLOCKS = 8
_PAIRS_AT_ONCE = 8_192
# Products beyond this might overflow single precision.
_LARGEST_PRODUCT = 1e36


class Neighbours:
    """Remembered rows, ready to be asked which of them is the nearest to another row (Euclidean distance).

    Up to 8 columns, SciPy's `cKDTree` answers. With more, it would look at nearly every row, so blocked matrix
    products in single precision find the few candidates, and only their distances are computed, in double precision
    and in the tree's order of summation: both ways give the same distances, to the bit on x86-64.

    The squared distance of rows x and m is ``|x|^2 - 2 (x m - |m|^2 / 2)``: the nearest row has the largest
    ``x m - |m|^2 / 2``. A rigorous bound on the rounding error of that product says which rows may be the nearest. A
    row for which there are very many (equal rows; a distance beside which the differences vanish), or whose products
    might overflow, is left to the tree.

    Parameters
    ----------
    rows
        [n_remembered, n_columns], finite.

    Examples
    --------
    >>> neighbours = Neighbours(np.array([[0.0, 0.0], [3.0, 4.0]]))
    >>> distances, indices = neighbours.nearest(np.array([[0.0, 1.0], [3.0, 4.0]]))
    >>> distances.tolist(), indices.tolist()
    ([1.0, 0.0], [0, 1])
    >>> excluded = np.array([[0, 1], [1, 2]])
    >>> neighbours.nearest(np.array([[0.0, 1.0], [3.0, 4.0]]), excluded)[1].tolist()
    [1, 0]
    """

    def __init__(self, rows: FloatArray) -> None:
        self.rows = rows
        # Unbalanced, because a balanced tree is slow to build if many rows are equal.
        self._tree = cKDTree(rows, balanced_tree=False)
        with np.errstate(over="ignore", invalid="ignore"):
            # A column that is the same in all remembered rows takes no part in the choice, but would loosen the bound.
            self._chosen: BoolArray = np.ptp(rows, axis=0) > 0
            chosen = rows[:, self._chosen]
            halves = (chosen**2).sum(axis=1) / 2
            self._largest_half = float(halves.max())
            self._longest = float(np.sqrt((rows**2).sum(axis=1).max()))
        usable = 0 < self._largest_half < _LARGEST_PRODUCT and self._longest < _LARGEST_PRODUCT
        self._operand: Float32Array | None = None
        if rows.shape[1] > MOST_COLUMNS_FOR_A_TREE and usable:
            self._operand = np.column_stack([chosen, -halves]).astype(np.float32)

    def nearest(self, queries: FloatArray, excluded: IntArray | None = None) -> tuple[FloatArray, IntArray]:
        """Return the distance to the nearest remembered row, and the index of that row, [n_queries] each.

        Parameters
        ----------
        queries
            [n_queries, n_columns]. Memory grows with their number: ask for some ten thousand at once.
        excluded
            [n_queries, 2]: first and stop of the remembered rows that a query leaves out (equal: none). It must leave
            at least one.
        """
        if self._operand is None:
            return self._by_tree(queries, excluded)
        return self._by_products(queries, excluded, self._operand)

    def _by_tree(self, queries: FloatArray, excluded: IntArray | None) -> tuple[FloatArray, IntArray]:
        if excluded is None or not len(queries):
            distances, indices = self._tree.query(queries)
            return np.asarray(distances, dtype=np.float64), np.asarray(indices, dtype=np.int64)
        first, stop = excluded.T
        several = 1 + np.arange(int((stop - first).max()) + 1)
        distances, indices = map(np.asarray, self._tree.query(queries, k=several))
        # The first neighbour that is not left out: argmax finds the first True.
        place = ((indices < first[:, None]) | (indices >= stop[:, None])).argmax(axis=1)[:, None]
        return np.take_along_axis(distances, place, axis=1)[:, 0], np.take_along_axis(indices, place, axis=1)[:, 0]

    def _by_products(
        self, queries: FloatArray, excluded: IntArray | None, operand: Float32Array
    ) -> tuple[FloatArray, IntArray]:
        factors, tolerance, safe = self._prepared(queries)
        excluded = np.zeros((len(queries), 2), dtype=np.int64) if excluded is None else excluded
        largest = _largest_by_block(operand, factors, excluded)
        best = largest.max(axis=0).astype(np.float64)
        with np.errstate(over="ignore"):  # to -infinity: everything is a candidate
            # Rounded downwards: a candidate must not be lost to the rounding of the limit itself.
            limit = np.nextafter((best - tolerance).astype(np.float32), np.float32(-np.inf))
        hit = largest >= limit
        by_tree = ~safe | (np.count_nonzero(hit, axis=0) > _MOST_BLOCKS)
        hit &= ~by_tree

        squares = np.full(len(queries), np.inf)
        indices = np.zeros(len(queries), dtype=np.int64)
        for number in np.flatnonzero(hit.any(axis=1)):
            start = int(number) * _REMEMBERED_AT_ONCE
            asked = np.flatnonzero(hit[number])
            products = factors[asked] @ operand[start : start + _REMEMBERED_AT_ONCE].T
            _leave_out(products.T, start, excluded[asked])
            place, candidate = np.nonzero(products >= limit[asked, None])
            self._keep_nearest(queries, asked[place], candidate + start, squares, indices)
        distances = np.sqrt(squares)
        if by_tree.any():
            distances[by_tree], indices[by_tree] = self._by_tree(queries[by_tree], excluded[by_tree])
        return distances, indices

    def _prepared(self, queries: FloatArray) -> tuple[Float32Array, FloatArray, BoolArray]:
        """Return the queries' factors [n, n_chosen + 1], how far below the best candidates may lie, who is safe."""
        chosen = queries[:, self._chosen]
        with np.errstate(over="ignore", invalid="ignore"):
            length = np.sqrt((chosen**2).sum(axis=1))
            magnitude = length * np.sqrt(2 * self._largest_half) + self._largest_half
            # The candidates' own distances are rounded too, all columns of them.
            farthest = np.sqrt((queries**2).sum(axis=1)) + self._longest
            safe = (magnitude < _LARGEST_PRODUCT) & (length < _LARGEST_PRODUCT) & (farthest < _LARGEST_PRODUCT)
        n_terms = chosen.shape[1] + 8  # the sum's terms, and some for the rounding of both factors and of this bound
        single, double = (n_terms * np.finfo(kind).eps / 2 for kind in (np.float32, np.float64))
        # |computed - exact| <= n u / (1 - n u) sum |terms|, in whatever order they are summed; what is too small for a
        # normal single-precision number may be lost altogether.
        lost = n_terms * float(np.finfo(np.float32).tiny) * (1 + length + np.sqrt(2 * self._largest_half))
        error = single / (1 - single) * magnitude + lost
        rounding = (len(self._chosen) + 8) * np.finfo(np.float64).eps * farthest**2
        factors = np.ones((len(queries), chosen.shape[1] + 1), dtype=np.float32)
        factors[:, :-1] = np.where(safe[:, None], chosen, 0.0)
        return factors, 2 * error + rounding + double * magnitude, safe

    def _keep_nearest(
        self, queries: FloatArray, asked: IntArray, candidates: IntArray, squares: FloatArray, indices: IntArray
    ) -> None:
        """Replace a query's smallest square, and its index, by those of a nearer candidate; pairs [n_pairs] each."""
        found = np.concatenate(
            [
                _squared_distances(queries[asked[part]], self.rows[candidates[part]])
                for part in (slice(i, i + _PAIRS_AT_ONCE) for i in range(0, max(len(asked), 1), _PAIRS_AT_ONCE))
            ]
        )
        # The nearest candidate of each query comes first, and the first of equally near ones.
        order = np.lexsort((candidates, found, asked))
        leading = order[np.flatnonzero(np.diff(asked[order], prepend=-1))]
        nearer = leading[found[leading] < squares[asked[leading]]]
        squares[asked[nearer]], indices[asked[nearer]] = found[nearer], candidates[nearer]


def _largest_by_block(operand: Float32Array, factors: Float32Array, excluded: IntArray) -> Float32Array:
    """Return the largest product of each query with each block of remembered rows, [n_blocks, n_queries]."""
    starts = range(0, len(operand), _REMEMBERED_AT_ONCE)
    largest = np.empty((len(starts), len(factors)), dtype=np.float32)
    for begin in range(0, len(factors), _QUERIES_AT_ONCE):
        part = slice(begin, begin + _QUERIES_AT_ONCE)
        transposed = np.ascontiguousarray(factors[part].T)
        products = np.empty((_REMEMBERED_AT_ONCE, transposed.shape[1]), dtype=np.float32)
        for number, start in enumerate(starts):
            block = operand[start : start + _REMEMBERED_AT_ONCE]
            of_block = np.matmul(block, transposed, out=products[: len(block)])
            _leave_out(of_block, start, excluded[part])
            np.maximum.reduce(of_block, axis=0, out=largest[number, part])
    return largest


def _leave_out(products: Float32Array, start: int, excluded: IntArray) -> None:
    """Lower the products [n_remembered, n_queries] of rows from ``start`` on that a query leaves out to -infinity."""
    first, stop = excluded.T
    concerned = np.flatnonzero((first < start + len(products)) & (stop > start) & (first < stop))
    if len(concerned):
        rows = np.arange(start, start + len(products))[:, None]
        out = (rows >= first[concerned]) & (rows < stop[concerned])
        products[:, concerned] = np.where(out, -np.inf, products[:, concerned])


def _squared_distances(some: FloatArray, others: FloatArray) -> FloatArray:
    """Return the squared distance of each pair of rows, [n_pairs], summed in `cKDTree`'s order.

    It has four running sums, of every fourth column each, and adds the columns that are left over at the end.
    """
    squares = np.ascontiguousarray((some - others).T)
    squares *= squares
    in_fours = len(squares) - len(squares) % 4
    sums = [np.zeros(len(some)) for _ in range(4)]
    for column in range(in_fours):
        sums[column % 4] += squares[column]
    total: FloatArray = sums[0] + sums[1] + sums[2] + sums[3]
    for column in range(in_fours, len(squares)):
        total += squares[column]
    return total
