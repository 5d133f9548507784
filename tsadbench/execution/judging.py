"""Convert a trial's scores between named arrays and what a protocol's judge takes, and judge them.

Scores are named ``<role>/<episode>/<recording>``, where the role is "train", "calibration" or "test"; contributions, of
test recordings only, ``<episode>/<recording>``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Episode, Judgement, Protocol, Scored
from tsadbench.base.recording import Recording
from tsadbench.errors import BrokenTrialError, ContractError, DataError
from tsadbench.execution.record import Record
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.source_digest import source_of
from tsadbench.utils.text import label_fault

# Name of an array -> its shape.
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


def contribution_name(episode: Episode, recording: Recording) -> str:
    """Return the name of the array with a test recording's contributions."""
    return f"{episode.id}/{recording.id}"


def named_scores(scored: Iterable[Scored]) -> dict[str, FloatArray]:
    """Return the scores of all episodes by name, [n_rows] each."""
    return {
        name: scores
        for one in scored
        for (name, _), scores in zip(_names(one.episode), (*one.train, *one.calibration, *one.test), strict=True)
    }


def arrays_hash(arrays: Mapping[str, NDArray[np.floating]]) -> str:
    """Return the hash of arrays, their names, types and shapes, regardless of order."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def score_shapes(episodes: Iterable[Episode]) -> Shapes:
    """Return the shapes of episodes' scores by name; a DataError if a name occurs twice or is not printable."""
    shapes: dict[str, tuple[int, ...]] = {}
    for episode in episodes:
        for name, n_rows in _names(episode):
            if fault := "the name is taken" if name in shapes else label_fault(episode.id) or label_fault(name):
                raise DataError(
                    f"the scores of {name!r:.200} cannot be stored under this name: {fault}; rename its entity"
                )
            shapes[name] = (n_rows,)
    return shapes


def contribution_shapes(episodes: Iterable[Episode]) -> Shapes:
    """Return the shapes of the contributions to the scores of episodes' test recordings, by name."""
    return {
        contribution_name(episode, one): (one.n_rows, one.n_sensors) for episode in episodes for one in episode.test
    }


def scored_episodes(
    arrays: Mapping[str, FloatArray], episodes: Iterable[Episode], fixed_threshold: float | None
) -> tuple[Scored, ...]:
    """Return named scores as a protocol's judge takes them; a BrokenTrialError if one is missing or of another length.

    ``fixed_threshold`` is a floor's own.
    """
    scored = []
    for episode in episodes:
        scores = []
        for name, n_rows in _names(episode):
            if name not in arrays or arrays[name].shape != (n_rows,):
                shape = list(arrays[name].shape) if name in arrays else "none"
                raise BrokenTrialError(f"scores {name}: expected [{n_rows}], found {shape}")
            scores.append(arrays[name])
        first, last = len(episode.train), len(episode.train) + len(episode.calibration)
        train, calibration, test = tuple(scores[:first]), tuple(scores[first:last]), tuple(scores[last:])
        scored.append(Scored(episode, train, test, fixed_threshold, calibration))
    return tuple(scored)


def judge_again(
    record: Record, scored: Sequence[Scored], protocol: Protocol, data: LabelledDataset, judging: str
) -> Record:
    """Return the record of scores, judged by today's rules, whose identity is ``judging``."""
    judgement, reason = Judgement((), {}), None
    try:
        judgement = protocol.judge(scored, data.labels)
    except ContractError as error:
        reason = str(error)
    return replace(
        record,
        status="ok" if reason is None else "invalid",
        reason=reason,
        splits=judgement.splits,
        thresholds=judgement.thresholds,
        protocol_notes=judgement.notes,
        protocol_version=protocol.version,
        judging=judging,
        rows_scored=sum(len(rows) for one in scored for rows in (*one.train, *one.calibration, *one.test)),
        notes=data.dataset.notes,
        dataset_version=data.dataset.version,
        manifest={
            **record.manifest,
            "labels_hash": data.labels.content_hash,
            "rules": dict(source_of(type(protocol)).modules),
            "judged": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )


def _names(episode: Episode) -> Iterator[tuple[str, int]]:
    """Yield the name and the length of each array: training, calibration, then test recordings."""
    roles = ("train", episode.train), ("calibration", episode.calibration), ("test", episode.test)
    for role, recordings in roles:
        for recording in recordings:
            yield f"{role}/{episode.id}/{recording.id}", recording.n_rows
