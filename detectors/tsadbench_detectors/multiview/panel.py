"""The views of a plant, fitted together, and which of them judges which rows of the training recordings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from tsadbench.base import BoolArray, FloatArray
from tsadbench_detectors.multiview.views import VIEWS, Graph, View
from tsadbench_detectors.standardise import Standardiser

# The z-score of a sensor that has moved for the first time.
_FIRST_MOVE = 10.0
# Rows of a piece: a few arrays of so many rows of 50 sensors fit the cache.
_STRETCH = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Fitted views by their names, and mean and standard deviation of the rows that they are fitted to."""

    standardiser: Standardiser
    views: dict[str, View]

    @classmethod
    def of(cls, names: Sequence[str], series: Sequence[FloatArray], neighbours: BoolArray) -> Self:
        """Fit views to series of raw values [n_rows, n_sensors], of which at least one sensor varies.

        ``neighbours`` [n_sensors, n_sensors] are those of the view *graph*.
        """
        panel = cls(Standardiser.of_rows(np.concatenate(series)), {})
        varies = panel.standardiser.varies
        z = [z_scores(panel.standardiser, values) for values in series]
        varying = [np.ascontiguousarray(rows[:, varies]) for rows in z]
        for name in names:
            if name == "graph":
                panel.views[name] = Graph.over(neighbours[varies][:, varies], varying)
            else:
                panel.views[name] = VIEWS[name].of(z if VIEWS[name].sees_constant_sensors else varying)
        return panel

    def statistics(self, values: FloatArray) -> Iterator[FloatArray]:
        """Yield each view's statistics of a recording's raw values, [n_rows, n_statistics].

        A sensor that is constant for the panel has zeros, so that the statistics of two panels have the same columns.
        """
        varies = self.standardiser.varies
        for view, z in self.seen(values):
            found = view.statistics(z)
            if not view.sees_constant_sensors:
                found = found.reshape(len(z), -1, z.shape[1])
                whole = np.zeros((*found.shape[:2], len(varies)))
                whole[:, :, varies] = found
                found = whole.reshape(len(z), -1)
            yield found

    def seen(self, values: FloatArray) -> Iterator[tuple[View, FloatArray]]:
        """Yield each view with the z-scores that it looks at."""
        z = z_scores(self.standardiser, values)
        varying = np.ascontiguousarray(z[:, self.standardiser.varies])
        for view in self.views.values():
            yield view, z if view.sees_constant_sensors else varying


def z_scores(standardiser: Standardiser, values: FloatArray) -> FloatArray:
    """Return z-scores; a sensor that is constant over the training rows has 0 there, and 10 wherever it is not."""
    z = standardiser.z_scores(values)
    constant = ~standardiser.varies
    # A comparison with the mean to the last bit would call rounding a move.
    still = np.isclose(values[:, constant], standardiser.mean[constant], rtol=1e-9, atol=0.0)
    z[:, constant] = np.where(still, 0.0, _FIRST_MOVE * np.sign(z[:, constant]))
    return z


class Piece(NamedTuple):
    """Some consecutive rows of a recording, and the number of the panel that judges them.

    The rows from ``start`` to ``stop - 1`` are judged; those from ``first`` on are context.
    """

    recording: int
    panel: int
    first: int
    start: int
    stop: int


def pieces(lengths: Sequence[int], n_panels: int, memory: int, at_most: int | None = None) -> Iterator[Piece]:
    """Yield pieces of recordings of these lengths: all rows, or at most so many in evenly spaced stretches.

    The rows, counted through all recordings, are cut into as many equal blocks as there are panels, one for each. A
    piece has ``memory`` rows of context if its recording has them.
    """
    origins, borders = np.cumsum([0, *lengths]).tolist(), blocks_of(sum(lengths), n_panels)
    n_stretches = -(-origins[-1] // _STRETCH)
    n_kept = n_stretches if at_most is None else min(n_stretches, at_most // _STRETCH)
    kept = {number * n_stretches // n_kept for number in range(n_kept)}
    for start, stop in pairwise(sorted({*origins, *borders, *range(0, origins[-1], _STRETCH)})):
        if start // _STRETCH in kept:
            recording = int(np.searchsorted(origins, start, side="right")) - 1
            panel = int(np.searchsorted(borders, start, side="right")) - 1
            origin = origins[recording]
            yield Piece(recording, panel, max(0, start - origin - memory), start - origin, stop - origin)


def blocks_of(n_rows: int, n_blocks: int) -> list[int]:
    """Return the borders of equal blocks of rows: ``n_blocks + 1`` row numbers."""
    return [n_rows * number // n_blocks for number in range(n_blocks + 1)]


def others(series: Sequence[FloatArray], n_blocks: int, block: int, gap: int) -> list[FloatArray]:
    """Return the rows that are neither in a block nor nearer to it than ``gap`` rows, as separate series."""
    borders = blocks_of(sum(map(len, series)), n_blocks)
    kept, origin = [], 0
    for values in series:
        before, after = borders[block] - gap - origin, borders[block + 1] + gap - origin
        kept += [values[: max(0, before)], values[max(0, after) :]] if after > 0 else [values]
        origin += len(values)
    return [values for values in kept if len(values) > 1]
