"""A trial's scores as named arrays: ``<role>/<episode>/<recording>``, the role "train", "calibration" or "test"."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tsadbench.base.protocol import Episode, Scored
from tsadbench.base.recording import Recording
from tsadbench.base.smoothing import trailing_mean
from tsadbench.errors import BrokenTrialError, DataError
from tsadbench.execution.stored_files import Shapes
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.names import label_fault


def contribution_name(episode: Episode, recording: Recording) -> str:
    """Return the name of the array that holds the contributions to the scores of a test recording."""
    return f"{episode.id}/{recording.id}"


def named_scores(scored: Iterable[Scored]) -> dict[str, FloatArray]:
    """Return the scores of all episodes by name, [n_rows] each."""
    return {
        name: scores
        for episode in scored
        for (name, _), scores in zip(_names(episode.episode), _all_scores(episode), strict=True)
    }


def arrays_hash(arrays: Mapping[str, NDArray[np.floating]]) -> str:
    """Return the hash of arrays, their names, types and shapes, whatever their order."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def rows_scored(scored: Iterable[Scored]) -> int:
    """Return how many training, calibration and test rows the episodes have scores of."""
    return sum(len(scores) for episode in scored for scores in _all_scores(episode))


def score_shapes(episodes: Iterable[Episode]) -> Shapes:
    """Return the shapes that the scores of episodes have, by name.

    Raises
    ------
    DataError
        If two arrays would have one name, or one a name that cannot be printed: an entity may be called anything.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for episode in episodes:
        for name, n_rows in _names(episode):
            if fault := "two arrays have it" if name in shapes else label_fault(episode.id) or label_fault(name):
                raise DataError(
                    f"the scores of {name!r:.200} cannot be kept under this name: {fault}; rename its entity"
                )
            shapes[name] = (n_rows,)
    return shapes


def contribution_shapes(episodes: Iterable[Episode]) -> Shapes:
    """Return the shapes that the contributions to the scores of test recordings have, by name."""
    return {
        contribution_name(episode, one): (one.n_rows, one.n_sensors) for episode in episodes for one in episode.test
    }


def scored_episodes(
    arrays: Mapping[str, FloatArray],
    episodes: Iterable[Episode],
    fixed_threshold: float | None,
    smoothing: int = 1,
) -> tuple[Scored, ...]:
    """Return named scores as a protocol's judge takes them.

    Parameters
    ----------
    arrays
        By name, [n_rows] each.
    episodes
        The protocol's, for the data set that was scored.
    fixed_threshold
        The threshold that the detector, a floor, brings; None for all others.
    smoothing
        Over how many rows they are averaged: each row's score and those before it in the same recording. A row without
        a score stays without one, and takes no part in the means of others; a fixed threshold stays.

    Raises
    ------
    BrokenTrialError
        If an array is missing or has not the length of its recording.
    """
    scored = []
    for episode in episodes:
        scores = []
        for name, n_rows in _names(episode):
            if name not in arrays or arrays[name].shape != (n_rows,):
                shape = list(arrays[name].shape) if name in arrays else "none"
                raise BrokenTrialError(f"scores {name}: expected [{n_rows}], found {shape}")
            scores.append(arrays[name] if smoothing == 1 else trailing_mean(arrays[name], smoothing))
        n_train, n_calibration = len(episode.train), len(episode.calibration)
        train, calibration = scores[:n_train], scores[n_train : n_train + n_calibration]
        test = scores[n_train + n_calibration :]
        scored.append(Scored(episode, tuple(train), tuple(test), fixed_threshold, tuple(calibration)))
    return tuple(scored)


def _all_scores(scored: Scored) -> tuple[FloatArray, ...]:
    """Return the arrays of one episode in the order of `_names`."""
    return *scored.train, *scored.calibration, *scored.test


def _names(episode: Episode) -> Iterator[tuple[str, int]]:
    """Yield the name and the length of each array: training, calibration, then test recordings."""
    roles = ("train", episode.train), ("calibration", episode.calibration), ("test", episode.test)
    for role, recordings in roles:
        for recording in recordings:
            yield f"{role}/{episode.id}/{recording.id}", recording.n_rows
