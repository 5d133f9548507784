"""Measures the value of a search point on training rows only, fold by fold.

Each recording is cut into blocks. A fold holds out one block and trains on the others, with a gap between them.
``heldout``: the loss of a forecaster or reconstructor on the held-out block of each fold. ``injection``: for each fold
and each kind of fault, the AUPRC with which the scores find such faults in the held-out block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from tsadbench.analysis.curves import average_precision
from tsadbench.base.recording import Recording
from tsadbench.errors import DataError
from tsadbench.sandbox import Box, BoxFailure, Construction, Crossing, Limits
from tsadbench.tuning.faults import KINDS, Plant, with_faults
from tsadbench.utils.arrays import BoolArray, FloatArray

ObjectiveName: TypeAlias = Literal["injection", "heldout"]
# The smallest gap: neighbouring rows are nearly equal, even for detectors of single rows.
SMALLEST_GAP = 30
# Gap for detectors with unbounded memory.
GAP_WITHOUT_END = 100
# The fewest evaluated rows of a held-out block; with fewer, its value is mostly noise.
_FEWEST_ROWS = 50
_ADVICE = "give longer recordings, or fix the window: NAME[window=...]"


@dataclass(frozen=True, slots=True)
class Reach:
    """The largest memory and look-ahead of a detector over all points of a search, in rows."""

    before: int
    after: int

    @property
    def gap(self) -> int:
        """Number of rows between training rows and held-out rows."""
        return max(self.before + self.after, SMALLEST_GAP)


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """One division of the training recordings; no recording of ``train`` crosses a gap."""

    train: tuple[Recording, ...]
    held_out: tuple[Recording, ...]
    context: int  # first rows of each held-out recording, from the gap before it, which are not evaluated


def make_folds(recordings: Sequence[Recording], n_folds: int, reach: Reach) -> tuple[Fold, ...]:
    """Return the folds; fold k holds out the k-th of ``n_folds`` equal blocks of each recording.

    ``reach.gap`` rows between the held-out block and the training rows are left out. Recordings with short blocks are
    used for training as a whole. Raises a DataError if none is long enough, or a fold would have too few training rows.
    """
    shortest = reach.before + _FEWEST_ROWS
    long_enough = {recording.id for recording in recordings if recording.n_rows // n_folds >= shortest}
    if not long_enough:
        found = f"the longest recording has {max(recording.n_rows for recording in recordings)} rows in all"
        expected = f"{n_folds} blocks of a training recording with {shortest} rows or more ({reach.before} are context)"
        raise DataError(f"expected {expected}, {found}; {_ADVICE}")
    folds = tuple(_fold(recordings, number, n_folds, reach, long_enough) for number in range(n_folds))
    longest = min(max((recording.n_rows for recording in fold.train), default=0) for fold in folds)
    if longest <= reach.gap:
        left = f"one of {n_folds} folds leaves at most {longest} consecutive rows to train on"
        raise DataError(f"{left}, expected more than {reach.gap}; {_ADVICE}")
    return folds


def _fold(recordings: Sequence[Recording], number: int, n_folds: int, reach: Reach, long_enough: set[str]) -> Fold:
    train: list[Recording] = []
    held_out: list[Recording] = []
    for recording in recordings:
        if recording.id not in long_enough:
            train.append(recording)
            continue
        start, stop = (recording.n_rows * border // n_folds for border in (number, number + 1))
        # The context comes from the gap before the block; the first block has none and gives up its own first rows.
        held_out.append(_part(recording, max(0, start - reach.before), stop))
        before, after = start - reach.gap, stop + reach.gap
        train += [_part(recording, 0, before)] if before > 0 else []
        train += [_part(recording, after, recording.n_rows)] if after < recording.n_rows else []
    return Fold(tuple(train), tuple(held_out), reach.before)


def _part(of: Recording, start: int, stop: int) -> Recording:
    return of.rows(start, stop, id=f"{of.id}[{start}:{stop}]")


class Objective:
    """Measures detectors in boxes.

    The faults of ``injection`` are drawn once by ``seed``, so that all points of a search get the same ones. A
    detector may open nothing in ``forbidden`` folders.
    """

    def __init__(
        self, name: ObjectiveName, folds: Sequence[Fold], *, seed: int, forbidden: Sequence[Path] = ()
    ) -> None:
        self.maximise, self.n_folds = name == "injection", len(folds)
        self._folds, self._forbidden = tuple(folds), tuple(forbidden)
        plants = [Plant.of(fold.train) for fold in folds] if self.maximise else []
        self._planted = [
            {
                kind.name: [
                    with_faults(recording, fold.context, kind, plant, np.random.default_rng([seed, number, k, i]))
                    for i, recording in enumerate(fold.held_out)
                ]
                for k, kind in enumerate(KINDS)
            }
            for number, (fold, plant) in enumerate(zip(folds, plants, strict=self.maximise))
        ]

    def fold(self, number: int, construction: Construction, limits: Limits) -> dict[str, float]:
        """Return a detector's result on a fold: its "loss", or its AUPRC for each kind of fault.

        Raises a BoxFailure if the detector fails, or exceeds a limit.
        """
        fold = self._folds[number]
        crossing = Crossing(fold.train[0].sensors)
        with Box(construction, crossing=crossing, limits=limits, forbidden=self._forbidden) as box:
            box.fit(fold.train)
            if not self.maximise:
                return {"loss": box.held_out_loss(fold.held_out, fold.context)}
            found = {}
            for kind, recordings in self._planted[number].items():
                scores = [box.score(recording)[fold.context :] for recording, _ in recordings]
                faulty = [rows[fold.context :] for _, rows in recordings]
                found[kind] = auprc(np.concatenate(scores), np.concatenate(faulty))
            return found


def auprc(scores: FloatArray, faulty: BoolArray) -> float:
    """Return the average precision; a row without a score counts as the worst case, as under the protocols.

    Raises a BoxFailure if no row has a score.
    """
    if np.isnan(scores).all():
        raise BoxFailure("invalid", "none of the held-out rows has a score")
    return average_precision(scores, faulty) or 0.0
