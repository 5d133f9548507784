"""What a point of the search is worth, judged by training rows alone: a series of numbers that can be cut short.

``heldout``: the loss of a forecaster or reconstructor on the held-out block of each fold. ``injection``: for each fold
and each kind of fault, the AUPRC with which the scores find such faults in the held-out block.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
from sklearn.metrics import average_precision_score

from tsadbench.base.scores import comparable
from tsadbench.sandbox import Box, BoxFailure, Construction, Limits
from tsadbench.tuning.faults import KINDS, Faulty, Plant, with_faults
from tsadbench.tuning.folds import Fold
from tsadbench.utils.arrays import BoolArray, FloatArray

Objective: TypeAlias = Literal["injection", "heldout"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """How to make the boxes in which detectors are measured.

    Parameters
    ----------
    threads
        Number of threads of a detector's libraries.
    forbidden
        Folders of which nothing may be opened inside.
    """

    threads: int = 1
    forbidden: tuple[Path, ...] = ()

    @contextmanager
    def fitted(self, construction: Construction, fold: Fold, limits: Limits) -> Iterator[Box]:
        """Yield a box whose detector is fitted on the fold's training recordings."""
        with Box(construction, threads=self.threads, limits=limits, forbidden=self.forbidden) as box:
            box.fit(fold.train)
            yield box


@dataclass(frozen=True, slots=True)
class Step:
    """One of the numbers whose mean is a point's value.

    Parameters
    ----------
    name
        "loss", or the kind of fault.
    fold
        Number of the fold.
    value
        The number.
    """

    name: str
    fold: int
    value: float


class HeldOut:
    """The mean over folds of the loss on held-out blocks; smaller is better.

    Parameters
    ----------
    folds
        The folds.
    boxes
        Where detectors are measured.
    """

    def __init__(self, folds: Sequence[Fold], boxes: Boxes) -> None:
        self._folds = tuple(folds)
        self._boxes = boxes
        self.n_steps = len(self._folds)

    def steps(self, construction: Construction, limits: Limits) -> Generator[Step, None, None]:
        """Yield one number per fold.

        Raises
        ------
        BoxFailure
            If the detector fails, or exceeds a limit.
        """
        for number, fold in enumerate(self._folds):
            with self._boxes.fitted(construction, fold, limits) as box:
                yield Step("loss", number, box.held_out_loss(fold.held_out, fold.context))


class Injection:
    """The mean over folds and kinds of fault of the AUPRC; larger is better.

    The faults are drawn once, so that all points of a search are measured on the same ones.

    Parameters
    ----------
    folds, boxes
        As for `HeldOut`.
    seed
        Seed of the faults.
    """

    def __init__(self, folds: Sequence[Fold], boxes: Boxes, seed: int) -> None:
        self._boxes = boxes
        self._folds = tuple((fold, _planted(fold, number, seed)) for number, fold in enumerate(folds))
        self.n_steps = len(self._folds) * len(KINDS)

    def steps(self, construction: Construction, limits: Limits) -> Generator[Step, None, None]:
        """Yield one number per fold and kind; errors as in `HeldOut.steps`."""
        for number, (fold, planted) in enumerate(self._folds):
            with self._boxes.fitted(construction, fold, limits) as box:
                for kind, recordings in zip(KINDS, planted, strict=True):
                    scores = [box.score(faulty.recording)[fold.context :] for faulty in recordings]
                    rows = [faulty.rows[fold.context :] for faulty in recordings]
                    yield Step(kind.name, number, auprc(np.concatenate(scores), np.concatenate(rows)))


def auprc(scores: FloatArray, faulty: BoolArray) -> float:
    """Return the average precision; a row without a score ranks below all others.

    Raises
    ------
    BoxFailure
        If no row has a score.
    """
    if np.isnan(scores).all():
        raise BoxFailure("invalid", "none of the held-out rows has a score")
    return float(average_precision_score(faulty, comparable(scores)))


def _planted(fold: Fold, number: int, seed: int) -> tuple[tuple[Faulty, ...], ...]:
    """Return for each kind of fault the fold's held-out recordings with such faults."""
    plant = Plant.of(fold.train)
    return tuple(
        tuple(
            with_faults(recording, fold.context, kind, plant, np.random.default_rng([seed, number, k, i]))
            for i, recording in enumerate(fold.held_out)
        )
        for k, kind in enumerate(KINDS)
    )
