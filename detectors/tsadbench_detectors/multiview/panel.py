"""The views of a plant, fitted together, and their training rows judged by views that did not see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self, TypeAlias

import numpy as np

from tsadbench.base import BoolArray, FloatArray, Recording
from tsadbench_detectors.multiview.views import VIEWS, View
from tsadbench_detectors.standardise import Standardiser

# Fits a view to series of z-scores [n_rows, n_varying], given which of the sensors vary [n_sensors].
Learner: TypeAlias = Callable[[Sequence[FloatArray], BoolArray], View]

# The z-score of a sensor that has moved for the first time.
_FIRST_MOVE = 10.0
# Of rows that tails are learned from, if not from all: so many in a row.
_STRETCH = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Fitted views by their names, and the scale that rows have for them.

    Parameters
    ----------
    standardiser
        Mean and standard deviation of the rows that the views are fitted to. A panel that has not seen some rows does
        not know their scale either.
    views
        By name.
    """

    standardiser: Standardiser
    views: dict[str, View]

    @classmethod
    def of(cls, learners: Mapping[str, Learner], series: Sequence[FloatArray]) -> Self:
        """Fit views, each by its learner, to series of raw values [n_rows, n_sensors]; at least one sensor varies."""
        standardiser = standardiser_of(series)
        z = [z_scores(standardiser, values) for values in series]
        varying = [np.ascontiguousarray(rows[:, standardiser.varies]) for rows in z]
        views = {
            name: learn(z if VIEWS[name].looks_at_constant_sensors else varying, standardiser.varies)
            for name, learn in learners.items()
        }
        return cls(standardiser, views)

    def statistics(self, values: FloatArray) -> Iterator[FloatArray]:
        """Yield each view's statistics of a recording's raw values, [n_rows, n_statistics].

        A sensor that is constant for the panel has zeros, so that the statistics of two panels have the same columns.
        """
        for view, z in self.seen(values):
            found = view.statistics(z)
            if view.looks_at_constant_sensors or view.per_sensor == 0:
                yield found
                continue
            whole = np.zeros((len(z), view.per_sensor, len(self.standardiser.varies)))
            whole[:, :, self.standardiser.varies] = found.reshape(len(z), view.per_sensor, -1)
            yield whole.reshape(len(z), -1)

    def seen(self, values: FloatArray) -> Iterator[tuple[View, FloatArray]]:
        """Yield each view with the z-scores that it looks at."""
        z = z_scores(self.standardiser, values)
        varying = np.ascontiguousarray(z[:, self.standardiser.varies])
        for view in self.views.values():
            yield view, z if view.looks_at_constant_sensors else varying


def standardiser_of(series: Sequence[FloatArray]) -> Standardiser:
    """Return mean and standard deviation of series of raw values [n_rows, n_sensors]."""
    names = tuple(map(str, range(series[0].shape[1])))
    return Standardiser.of([Recording("series", values, names) for values in series])


def z_scores(standardiser: Standardiser, values: FloatArray) -> FloatArray:
    """Return z-scores; a sensor that is constant over the training rows has 0 there, and 10 wherever it is not."""
    z = standardiser.z_scores(values)
    constant = ~standardiser.varies
    if constant.any():
        # A comparison with the mean to the last bit would call rounding a move.
        still = np.isclose(values[:, constant], standardiser.mean[constant], rtol=1e-9, atol=0.0)
        z[:, constant] = np.where(still, 0.0, _FIRST_MOVE * np.sign(z[:, constant]))
    return z


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a training recording that one panel judges.

    Parameters
    ----------
    recording
        Number of the recording.
    panel
        Number of the panel that did not see the rows.
    first, start, stop
        The rows from ``start`` to ``stop - 1`` are judged; those from ``first`` on are context.
    """

    recording: int
    panel: int
    first: int
    start: int
    stop: int


def blocks_of(lengths: Sequence[int], n_blocks: int) -> list[int]:
    """Return the borders of equal blocks of rows, counted through all recordings: ``n_blocks + 1`` row numbers."""
    n_rows = sum(lengths)
    return [n_rows * number // n_blocks for number in range(n_blocks + 1)]


def pieces(lengths: Sequence[int], n_blocks: int, memory: int, at_most: int | None = None) -> Iterator[Piece]:
    """Yield pieces that cover all rows of recordings, each once, or at most so many rows in evenly spaced stretches.

    Parameters
    ----------
    lengths
        Rows of each recording.
    n_blocks
        One panel a block judges the block's rows.
    memory
        How many rows of context a piece has, if its recording has them.
    at_most
        None for all rows.
    """
    borders = blocks_of(lengths, n_blocks)
    first_rows = np.cumsum([0, *lengths]).tolist()
    n_stretches = -(-first_rows[-1] // _STRETCH)
    n_kept = n_stretches if at_most is None else max(1, at_most // _STRETCH)
    thinned = n_kept < n_stretches
    kept = {number * n_stretches // n_kept for number in range(n_kept)}
    cuts = set(borders) | set(first_rows)
    if thinned:
        cuts |= set(range(0, first_rows[-1], _STRETCH))
    for start, stop in pairwise(sorted(cuts)):
        if thinned and start // _STRETCH not in kept:
            continue
        recording = int(np.searchsorted(first_rows, start, side="right")) - 1
        panel = int(np.searchsorted(borders, start, side="right")) - 1
        origin = first_rows[recording]
        yield Piece(recording, panel, max(0, start - origin - memory), start - origin, stop - origin)


def others(series: Sequence[FloatArray], borders: Sequence[int], block: int, gap: int) -> list[FloatArray]:
    """Return the rows that are neither of a block nor nearer to it than a gap, as series of their own."""
    kept, origin = [], 0
    for values in series:
        before, after = borders[block] - gap - origin, borders[block + 1] + gap - origin
        kept += [values[: max(0, before)], values[max(0, after) :]] if after > 0 else [values]
        origin += len(values)
    return [values for values in kept if len(values) > 1]
