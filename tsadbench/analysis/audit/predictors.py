"""How well predictors without knowledge of faults predict the labels: a row's position, time alone, one-liners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from sklearn.metrics import roc_auc_score

from tsadbench.analysis.audit.parts import Part
from tsadbench.analysis.curves import average_precision
from tsadbench.analysis.events import elapsed
from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.base.detector import Traits
from tsadbench.base.scores import worst_case
from tsadbench.datasets.sessions import sessions_of
from tsadbench.registry import floors, locate
from tsadbench.sandbox import Box, BoxFailure, Construction, describe
from tsadbench.utils.arrays import BoolArray, FloatArray, mean_defined

# By name, and by the test recording's id: scores [n_rows].
OneLiners: TypeAlias = Mapping[str, Mapping[str, FloatArray]]


@dataclass(frozen=True, slots=True)
class Ranking:
    """How well scores rank rows; None if the rows are of one class."""

    auroc: float | None
    auprc: float | None


@dataclass(frozen=True, slots=True)
class Predictor:
    """A way to score rows, and how well it ranks the test rows.

    Parameters
    ----------
    name
        "position", "time", or a one-liner.
    auroc, auprc
        Over all test rows together; of several entities, each with fits of its own, the mean over those for which it
        is defined. None if it is defined for none.
    entities
        By entity, if the data set has several.
    """

    name: str
    auroc: float | None
    auprc: float | None
    entities: Mapping[str, Ranking]


def predictors(data: LabelledDataset, parts: Sequence[Part], one_liners: Sequence[OneLiners]) -> tuple[Predictor, ...]:
    """Return position, time alone, and the one-liners, by what `one_liner_scores` returns for each part."""
    position = dict(zip(data.labels.rows, position_scores(data.labels.rows, _sessions(data.dataset)), strict=True))
    every: list[OneLiners] = [
        {
            "position": {recording.id: position[recording.id] for recording in part.test},
            "time": {recording.id: elapsed(recording) for recording in part.test},
            **scores,
        }
        for part, scores in zip(parts, one_liners, strict=True)
    ]
    names = dict.fromkeys(name for scores in every for name in scores)
    return tuple(_predictor(name, parts, every) for name in names)


def _predictor(name: str, parts: Sequence[Part], every: Sequence[OneLiners]) -> Predictor:
    rankings = {
        part.entity: _ranking(np.concatenate(list(scores[name].values())), part.anomalous)
        for part, scores in zip(parts, every, strict=True)
        if name in scores
    }
    auroc = mean_defined(one.auroc for one in rankings.values())
    auprc = mean_defined(one.auprc for one in rankings.values())
    return Predictor(name, auroc, auprc, {} if len(parts) == 1 else rankings)


def _ranking(scores: FloatArray, anomalous: BoolArray) -> Ranking:
    if anomalous.all() or not anomalous.any():
        return Ranking(None, None)
    auroc = float(roc_auc_score(anomalous, worst_case(scores, anomalous)))
    return Ranking(auroc, average_precision(scores, anomalous))


def one_liner_scores(parts: Sequence[Part], folder: Path | None = None) -> tuple[OneLiners, ...]:
    """Return for each part the scores of its test recordings by every one-liner among the floors, fitted to it alone.

    A floor that fails, for instance because it needs longer training recordings than there are, is left out.
    """
    names = [name for name in floors() if _looks_at_values(describe(name).traits)]
    return tuple(
        {
            name: scores
            for name in names
            if part.train and (scores := _scores(name, part, () if folder is None else (folder,))) is not None
        }
        for part in parts
    )


def _looks_at_values(traits: Traits) -> bool:
    """Return whether a floor predicts anything: those that draw lots or flag every row do not."""
    return traits.fixed_threshold is None and not traits.stochastic


def _scores(name: str, part: Part, forbidden: tuple[Path, ...]) -> dict[str, FloatArray] | None:
    with suppress(BoxFailure), Box(Construction(locate(name)), threads=1, forbidden=forbidden) as box:
        box.fit(part.train)
        return {recording.id: box.score(recording) for recording in part.test}
    return None


def position_scores(truth: Mapping[str, BoolArray], sessions: Mapping[str, str]) -> list[FloatArray]:
    """Return for each row i of each recording the share of recordings of *other sessions* that are anomalous at row i.

    Only recordings that have a row i count; 0 where no other session has.

    Parameters
    ----------
    truth
        For each recording's id: its labels [n_rows].
    sessions
        For each recording's id: its session.
    """
    longest = max(len(rows) for rows in truth.values())
    # For each session: how many recordings have a row i, how many are anomalous there.
    counts = {sessions[name]: np.zeros((2, longest)) for name in truth}
    for name, rows in truth.items():
        counts[sessions[name]][:, : len(rows)] += np.stack([np.ones(len(rows)), rows])
    total = sum(counts.values())
    scores = []
    for name, rows in truth.items():
        present, anomalous = (total - counts[sessions[name]])[:, : len(rows)]
        scores.append(np.where(present > 0, anomalous / np.maximum(present, 1), 0.0))
    return scores


def _sessions(dataset: Dataset) -> Mapping[str, str]:
    """Return the session of each test recording; if there is only one, each recording is one of its own."""
    names = [recording.id for recording in dataset.test]
    sessions = sessions_of(dataset)
    return sessions if len({sessions[name] for name in names}) > 1 else {name: name for name in names}
