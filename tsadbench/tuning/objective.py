"""What a point of the search is worth, judged by training rows alone: a series of numbers that can be cut short.

``heldout``: the loss of a forecaster or reconstructor on the held-out block of each fold. ``injection``: for each fold
and each kind of fault, the AUPRC with which the scores find such faults in the held-out block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from tsadbench.analysis.curves import average_precision
from tsadbench.sandbox import Box, BoxFailure, Construction, Crossing, Limits
from tsadbench.tuning.faults import KINDS, Faulty, Plant, with_faults
from tsadbench.tuning.folds import Fold
from tsadbench.utils.arrays import BoolArray, FloatArray

Objective: TypeAlias = Literal["injection", "heldout"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


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


class SearchObjective(ABC):
    """Measures detectors in boxes, fold by fold.

    Parameters
    ----------
    folds
        The folds.
    threads
        Number of threads of a detector's libraries.
    forbidden
        Folders of which nothing may be opened inside a box.
    """

    maximise: ClassVar[bool]
    steps_per_fold: ClassVar[int]

    def __init__(self, folds: Sequence[Fold], *, threads: int = 1, forbidden: Sequence[Path] = ()) -> None:
        self._folds = tuple(folds)
        self._threads = threads
        self._forbidden = tuple(forbidden)
        self.n_steps = len(self._folds) * self.steps_per_fold

    def steps(self, construction: Construction, limits: Limits) -> Generator[Step, None, None]:
        """Yield the numbers of a point, `steps_per_fold` per fold.

        A BoxFailure if the detector fails, or exceeds a limit.
        """
        for number, fold in enumerate(self._folds):
            box = Box(
                construction,
                threads=self._threads,
                crossing=Crossing(fold.train[0].sensors),
                limits=limits,
                forbidden=self._forbidden,
            )
            with box:
                box.fit(fold.train)
                for name, value in self._measured(box, number):
                    yield Step(name, number, value)

    @abstractmethod
    def _measured(self, box: Box, number: int) -> Iterator[tuple[str, float]]:
        """Yield name and value of each number that a fitted detector gives on a fold."""


class HeldOut(SearchObjective):
    """The mean over folds of the loss on held-out blocks; smaller is better. Parameters as `SearchObjective`'s."""

    maximise = False
    steps_per_fold = 1

    def _measured(self, box: Box, number: int) -> Iterator[tuple[str, float]]:
        fold = self._folds[number]
        yield "loss", box.held_out_loss(fold.held_out, fold.context)


class Injection(SearchObjective):
    """The mean over folds and kinds of fault of the AUPRC; larger is better.

    The faults are drawn once, so that all points of a search are measured on the same ones.

    Parameters
    ----------
    folds, threads, forbidden
        As `SearchObjective`'s.
    seed
        Seed of the faults.
    """

    maximise = True
    steps_per_fold = len(KINDS)

    def __init__(self, folds: Sequence[Fold], *, seed: int, threads: int = 1, forbidden: Sequence[Path] = ()) -> None:
        super().__init__(folds, threads=threads, forbidden=forbidden)
        self._planted = tuple(_planted(fold, number, seed) for number, fold in enumerate(folds))

    def _measured(self, box: Box, number: int) -> Iterator[tuple[str, float]]:
        context = self._folds[number].context
        for kind, recordings in zip(KINDS, self._planted[number], strict=True):
            scores = [box.score(faulty.recording)[context:] for faulty in recordings]
            rows = [faulty.rows[context:] for faulty in recordings]
            yield kind.name, auprc(np.concatenate(scores), np.concatenate(rows))


def auprc(scores: FloatArray, faulty: BoolArray) -> float:
    """Return the average precision; a row without a score counts as the worst case, as under the protocols.

    A BoxFailure if no row has a score.
    """
    if np.isnan(scores).all():
        raise BoxFailure("invalid", "none of the held-out rows has a score")
    return average_precision(scores, faulty) or 0.0


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
