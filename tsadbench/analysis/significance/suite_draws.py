"""Ranks and wins over data sets, and over resamples of them: a bootstrap of data sets and, within each, of sessions.

Gains are values of a metric with the sign that makes the higher one the better: -inf for a row that failed, which is
worse than any value; NaN for one that is missing. The first column is the data set as it is, the others resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray

# Of a 90 % interval.
TAILS = (0.05, 0.95)


def wins(gains: FloatArray) -> FloatArray:
    """Return whether each row beats each other one, [n_rows, n_rows, n_columns]: 1, 0, or .5 for a tie.

    Parameters
    ----------
    gains
        [n_rows, n_columns].

    Returns
    -------
    ndarray
        NaN where one of the two is missing, and between a row and itself.
    """
    first, second = gains[:, None, :], gains[None, :, :]
    won: FloatArray = (first > second) + 0.5 * (first == second)
    won[np.isnan(first) | np.isnan(second)] = np.nan
    won[np.arange(len(gains)), np.arange(len(gains))] = np.nan
    return won


def ranks(won: FloatArray, complete: BoolArray) -> FloatArray:
    """Return the rank of each row among the complete ones and itself, [n_rows, n_columns]; NaN if it is missing.

    1 is the best; equal gains share their mean rank. A row that other data sets lack moves no other one.

    Parameters
    ----------
    won
        [n_rows, n_rows, n_columns], as `wins` returns it.
    complete
        [n_rows], the rows that no data set lacks; all of one that has them are compared.
    """
    lost = 1.0 - won[:, complete]
    present = ~np.isnan(lost).all(axis=1)
    found: FloatArray = np.where(present, 1.0 + np.nansum(lost, axis=1), np.nan)
    return found


def above_floors(gains: FloatArray, floors: BoolArray) -> FloatArray:
    """Return whether each row is better than the best floor, [n_rows, n_columns], 1 or 0.

    NaN for floors, for missing rows, and if no floor takes part.

    Parameters
    ----------
    gains
        [n_rows, n_columns].
    floors
        [n_rows], which rows are floors.
    """
    of_floors = gains[floors]
    best = np.where(np.isnan(of_floors), -np.inf, of_floors).max(axis=0, initial=-np.inf)
    above: FloatArray = (gains > best).astype(np.float64)
    above[np.isnan(gains) | floors[:, None] | np.isnan(of_floors).all(axis=0)] = np.nan
    return above


@dataclass(frozen=True, slots=True)
class Draws:
    """Resamples of data sets.

    Parameters
    ----------
    datasets
        [n_data sets, n_draws], which data set was drawn in each place.
    columns
        [n_data sets, n_draws], which of its columns: 0 if there is no other, else a resample.
    """

    datasets: IntArray
    columns: IntArray

    @classmethod
    def of(cls, n_columns: Sequence[int], n_draws: int, seed: int) -> Draws:
        """Draw as many data sets as there are, with replacement, and for each drawn one a resample of its sessions."""
        generator = np.random.default_rng((seed, len(n_columns)))
        datasets = generator.integers(len(n_columns), size=(len(n_columns), n_draws))
        n_resamples = np.array(n_columns)[datasets] - 1
        columns = 1 + np.floor(generator.random(datasets.shape) * n_resamples).astype(np.int64)
        return cls(datasets, np.where(n_resamples > 0, columns, 0))

    def means(self, values: Sequence[FloatArray]) -> FloatArray:
        """Return means over the drawn data sets of what is defined there, [..., n_draws]; NaN if nothing is."""
        shape = (*values[0].shape[:-1], self.datasets.shape[1])
        total, count = np.zeros(shape), np.zeros(shape)
        for datasets, columns in zip(self.datasets, self.columns, strict=True):
            for number, of_dataset in enumerate(values):
                here = datasets == number
                drawn = of_dataset[..., columns[here]]
                defined = ~np.isnan(drawn)
                total[..., here] += np.where(defined, drawn, 0.0)
                count[..., here] += defined
        found: FloatArray = np.divide(total, count, out=np.full(shape, np.nan), where=count > 0)
        return found


def mean_over_datasets(values: Sequence[FloatArray]) -> FloatArray:
    """Return the mean over data sets, each as it is, of what is defined there; NaN if nothing is."""
    first = np.stack([of_dataset[..., 0] for of_dataset in values])
    count = np.count_nonzero(~np.isnan(first), axis=0)
    found: FloatArray = np.divide(np.nansum(first, axis=0), count, out=np.full(count.shape, np.nan), where=count > 0)
    return found


def interval(drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the 5 % and 95 % quantiles over draws, along the last axis, of what is defined; NaN if nothing is."""
    defined = ~np.isnan(drawn)
    some = defined.any(axis=-1)
    low, high = np.full(some.shape, np.nan), np.full(some.shape, np.nan)
    if some.any():
        low[some], high[some] = np.nanquantile(drawn[some], TAILS, axis=-1)
    return low, high
