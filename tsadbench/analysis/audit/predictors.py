"""How well predictors without knowledge of faults predict the labels: a row's position, time alone, one-liners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from tsadbench.analysis.curves import average_precision
from tsadbench.analysis.events import elapsed
from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.base.scores import worst_case
from tsadbench.base.sessions import sessions_of
from tsadbench.registry import floors, locate
from tsadbench.sandbox import Box, BoxFailure, Construction
from tsadbench.sandbox.describing import describe
from tsadbench.utils.arrays import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class Predictor:
    """A way to score rows, and how well it ranks all test rows.

    Parameters
    ----------
    name
        "position", "time", or a one-liner.
    auroc, auprc
        Over all test rows together; None if they are of one class.
    """

    name: str
    auroc: float | None
    auprc: float | None


def predictors(data: LabelledDataset, one_liners: Mapping[str, Sequence[FloatArray]]) -> tuple[Predictor, ...]:
    """Return position, time alone, and the one-liners, whose scores `one_liner_scores` returns."""
    truth = data.labels.rows
    every = {
        "position": position_scores(truth, _sessions(data.dataset)),
        "time": [elapsed(recording) for recording in data.dataset.test],
        **one_liners,
    }
    return tuple(_predictor(name, scores, truth) for name, scores in every.items())


def one_liner_scores(data: LabelledDataset) -> dict[str, list[FloatArray]]:
    """Return the scores [n_rows] of each test recording by every one-liner among the floors.

    A floor that fails, for instance because it needs longer training recordings than there are, is left out.
    """
    scores = {}
    forbidden = () if data.dataset.folder is None else (data.dataset.folder,)
    for name in floors():
        traits = describe(name).traits
        # Floors that draw lots or flag every row do not look at the values: they predict nothing.
        if traits.fixed_threshold is not None or traits.stochastic:
            continue
        with suppress(BoxFailure), Box(Construction(locate(name)), threads=1, forbidden=forbidden) as box:
            box.fit(data.dataset.train)
            scores[name] = [box.score(recording) for recording in data.dataset.test]
    return scores


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


def _predictor(name: str, scores: Sequence[FloatArray], truth: Mapping[str, BoolArray]) -> Predictor:
    pooled, anomalous = np.concatenate(list(scores)), np.concatenate(list(truth.values()))
    if anomalous.all() or not anomalous.any():
        return Predictor(name, None, None)
    auroc = float(roc_auc_score(anomalous, worst_case(pooled, anomalous)))
    return Predictor(name, auroc, average_precision(pooled, anomalous))
