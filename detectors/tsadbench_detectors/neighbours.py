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
_MOST_BLOCKS = 16
_PAIRS_AT_ONCE = 8_192
# Products beyond this might overflow single precision.
_LARGEST_PRODUCT = 1e36


class Neighbours:
    """Remembered rows, ready to be asked which of them is the nearest to another row (Euclidean distance).

    Up to 8 columns, SciPy's `cKDTree` answers. With more, it would look at nearly every row; if rows are left out, at
    all that are nearer than the answer. Then matrix products in single precision find the few blocks of remembered rows
    that may hold the nearest, and products in double precision the candidates in a block. Only the candidates'
    distances are computed, in the tree's order of summation: both ways give the same distances, to the bit on x86-64.
    Of rows that are equally near, products choose the first.

    The squared distance of rows x and m is ``|x|^2 - 2 (x m - |m|^2 / 2)``: the nearest row has the largest
    ``x m - |m|^2 / 2``. A rigorous bound on the rounding error of that product decides what may be the nearest. A row
    for which many blocks may hold it (equal rows; a distance beside which the differences vanish), or whose products
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
        self._operand: FloatArray | None = None
        if usable:
            self._operand = np.column_stack([chosen, -halves])
            self._single = self._operand.astype(np.float32)
            starts = np.arange(0, len(rows), _REMEMBERED_AT_ONCE)
            self._longest_of_block = np.sqrt(2 * np.maximum.reduceat(halves, starts))

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
        # A tree finds a row that is not left out only after all nearer ones.
        prefers_tree = excluded is None and self.rows.shape[1] <= MOST_COLUMNS_FOR_A_TREE
        if self._operand is None or prefers_tree:
            return self._by_tree(queries, excluded)
        return self._by_products(queries, excluded, self._operand)

    def _by_tree(self, queries: FloatArray, excluded: IntArray | None) -> tuple[FloatArray, IntArray]:
        if excluded is None or not len(queries):
            distances, indices = self._tree.query(queries)
            return np.asarray(distances, dtype=np.float64), np.asarray(indices, dtype=np.int64)
        # Of a query whose distance to every row overflows, the tree names none, however many it is asked for.
        nearest, of_nearest = np.full(len(queries), np.inf), np.full(len(queries), len(self.rows), dtype=np.int64)
        asked, n_asked = np.arange(len(queries)), 0
        while len(asked) and n_asked < len(self.rows):
            n_asked = min(max(8, 4 * n_asked), len(self.rows))
            distances, indices = map(np.asarray, self._tree.query(queries[asked], k=1 + np.arange(n_asked)))
            first, stop = excluded[asked, :1], excluded[asked, 1:]
            allowed = ((indices < first) | (indices >= stop)) & (indices < len(self.rows))
            place = allowed.argmax(axis=1)  # the first True
            found = np.flatnonzero(allowed.any(axis=1))
            nearest[asked[found]] = distances[found, place[found]]
            of_nearest[asked[found]] = indices[found, place[found]]
            asked = np.delete(asked, found)
        return nearest, of_nearest

    def _by_products(
        self, queries: FloatArray, excluded: IntArray | None, operand: FloatArray
    ) -> tuple[FloatArray, IntArray]:
        excluded = np.zeros((len(queries), 2), dtype=np.int64) if excluded is None else excluded
        factors, lengths, rounding, safe = self._prepared(queries)
        largest = _largest_by_block(self._single, factors.astype(np.float32), excluded)
        errors = _errors(self._longest_of_block[:, None], lengths, factors.shape[1], np.float32)
        hit = largest + errors >= (largest - errors).max(axis=0) - rounding
        by_tree = ~safe | (np.count_nonzero(hit, axis=0) > _MOST_BLOCKS)
        hit &= ~by_tree

        # Within a block, double precision leaves a row or two, and those that are equal to them.
        longest = self._longest_of_block.max()
        tolerance = 2 * _errors(longest, lengths, factors.shape[1], np.float64) + rounding
        squares = np.full(len(queries), np.inf)
        indices = np.zeros(len(queries), dtype=np.int64)
        for number in np.flatnonzero(hit.any(axis=1)):
            start = int(number) * _REMEMBERED_AT_ONCE
            asked = np.flatnonzero(hit[number])
            products = factors[asked] @ operand[start : start + _REMEMBERED_AT_ONCE].T
            _leave_out(products.T, start, excluded[asked])
            place, candidate = np.nonzero(products >= (products.max(axis=1) - tolerance[asked])[:, None])
            self._keep_nearest(queries, asked[place], candidate + start, squares, indices)
        distances = np.sqrt(squares)
        if by_tree.any():
            distances[by_tree], indices[by_tree] = self._by_tree(queries[by_tree], excluded[by_tree])
        return distances, indices

    def _prepared(self, queries: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
        """Return what the products need of each query.

        Returns
        -------
        factors
            [n_queries, n_chosen + 1], the last column 1.
        lengths
            [n_queries], of the factors without their last column.
        rounding
            [n_queries]: how much of the product the rounding of two rows' distances may hide.
        safe
            [n_queries]: whether no product can overflow; if not, the factors are 0.
        """
        chosen = queries[:, self._chosen]
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.sqrt((chosen**2).sum(axis=1))
            farthest = np.sqrt((queries**2).sum(axis=1)) + self._longest
            magnitude = lengths * np.sqrt(2 * self._largest_half) + self._largest_half
            safe = (magnitude < _LARGEST_PRODUCT) & (farthest < _LARGEST_PRODUCT)
        factors = np.ones((len(queries), chosen.shape[1] + 1))
        factors[:, :-1] = np.where(safe[:, None], chosen, 0.0)
        lengths, farthest = np.where(safe, lengths, 0.0), np.where(safe, farthest, 0.0)
        return factors, lengths, (len(self._chosen) + 8) * np.finfo(np.float64).eps * farthest**2, safe

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


def _errors(longest: FloatArray, lengths: FloatArray, n_terms: int, kind: type[np.floating]) -> FloatArray:
    """Return how far a computed product may lie from the exact one, for factors and remembered rows of these lengths.

    ``|computed - exact| <= n u / (1 - n u) sum |terms|``, in whatever order the n terms are summed; eight more terms
    stand for the rounding of both factors and of this bound. What is too small for a normal number may be lost.
    """
    n = n_terms + 8
    relative = n * float(np.finfo(kind).eps) / 2
    magnitude = longest * lengths + longest**2  # not half of it: the sum of squares is rounded as well
    return relative / (1 - relative) * magnitude + n * float(np.finfo(kind).tiny) * (1 + lengths + longest)


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


def _leave_out(products: Float32Array | FloatArray, start: int, excluded: IntArray) -> None:
    """Lower the products [n_remembered, n_queries] of rows from ``start`` on that a query leaves out to -infinity."""
    first, stop = excluded.T
    concerned = np.flatnonzero((first < start + len(products)) & (stop > start) & (first < stop))
    if len(concerned):
        # Queries mostly come in order of time, so those concerned are neighbours: a slice of them needs no copy.
        span = slice(concerned[0], concerned[-1] + 1)
        rows = np.arange(start, start + len(products))[:, None]
        np.copyto(products[:, span], -np.inf, where=(rows >= first[span]) & (rows < stop[span]))


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
