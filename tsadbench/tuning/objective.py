"""The value of a point of the search, measured on training rows alone, fold by fold.

``heldout``: the loss of a forecaster or reconstructor on the held-out block of each fold. ``injection``: for each fold
and each kind of fault, the AUPRC with which the scores find such faults in the held-out block.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from tsadbench.analysis.curves import average_precision
from tsadbench.base.recording import Recording
from tsadbench.sandbox import Box, BoxFailure, Construction, Crossing, Limits
from tsadbench.tuning.faults import KINDS, Plant, with_faults
from tsadbench.tuning.folds import Fold
from tsadbench.utils.arrays import BoolArray, FloatArray

ObjectiveName: TypeAlias = Literal["injection", "heldout"]


class Objective:
    """Measures detectors in boxes.

    The faults of ``injection`` are drawn once by ``seed``, so that all points of a search meet the same ones.
    ``threads`` are those of a detector's libraries; in ``forbidden`` folders it may open nothing.
    """

    def __init__(
        self, name: ObjectiveName, folds: Sequence[Fold], *, seed: int, threads: int, forbidden: Sequence[Path] = ()
    ) -> None:
        self.maximise = name == "injection"
        self.n_folds = len(folds)
        self._folds = tuple(folds)
        self._threads, self._forbidden = threads, tuple(forbidden)
        self._planted = tuple(
            _planted(fold, number, seed) if self.maximise else {} for number, fold in enumerate(folds)
        )

    def fold(self, number: int, construction: Construction, limits: Limits) -> dict[str, float]:
        """Return what a detector reaches on a fold: its "loss", or its AUPRC for each kind of fault.

        A BoxFailure if the detector fails, or exceeds a limit.
        """
        fold = self._folds[number]
        box = Box(
            construction,
            threads=self._threads,
            crossing=Crossing(fold.train[0].sensors),
            limits=limits,
            forbidden=self._forbidden,
        )
        with box:
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

    A BoxFailure if no row has a score.
    """
    if np.isnan(scores).all():
        raise BoxFailure("invalid", "none of the held-out rows has a score")
    return average_precision(scores, faulty) or 0.0


def _planted(fold: Fold, number: int, seed: int) -> dict[str, list[tuple[Recording, BoolArray]]]:
    """Return for each kind of fault the fold's held-out recordings with such faults, and their faulty rows."""
    plant = Plant.of(fold.train)
    return {
        kind.name: [
            with_faults(recording, fold.context, kind, plant, np.random.default_rng([seed, number, k, i]))
            for i, recording in enumerate(fold.held_out)
        ]
        for k, kind in enumerate(KINDS)
    }
