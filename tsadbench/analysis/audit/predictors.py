"""How well predictors without knowledge of faults predict the labels: a row's position, time alone, one-liners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import sqrt
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from tsadbench.analysis.audit.findings import Finding, Grade
from tsadbench.analysis.audit.parts import Part
from tsadbench.analysis.curves import average_precision
from tsadbench.analysis.events import elapsed
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.detector import Traits
from tsadbench.base.scores import worst_case
from tsadbench.datasets.sessions import sessions_of
from tsadbench.leaderboard.render import Table
from tsadbench.registry import floors, locate
from tsadbench.sandbox import Box, BoxFailure, Construction, describe
from tsadbench.utils.arrays import BoolArray, FloatArray

# By name, and by the test recording's id: scores [n_rows].
OneLiners: TypeAlias = Mapping[str, Mapping[str, FloatArray]]

# An uninformative predictor has an AUROC of .5; beyond these it is a weak or a strong one.
_WEAK, _STRONG = 0.55, 0.75
# Position and time see no data: they should not predict at all, in either direction. A one-liner may.
_BLIND = {
    "position": "A row's place in its recording, without its values,",
    "time": "The time since a row's recording began, without its values,",
}


def predictors(data: LabelledDataset, parts: Sequence[Part], one_liners: Sequence[OneLiners]) -> Iterator[Finding]:
    """Say how well position, time alone, and the one-liners predict the labels.

    Of several entities, each with one-liners of its own, figures are means over those for which they are defined. The
    tables stand with the first finding.
    """
    values = pd.DataFrame(_rankings(data, parts, one_liners), columns=["entity", "predictor", "AUROC", "AUPRC"])
    means = values.groupby("predictor", sort=False)[["AUROC", "AUPRC"]].mean()
    tables = [Table("What predicts the label", means.reset_index())]
    if len(parts) > 1:
        auroc = values.set_index(["entity", "predictor"])["AUROC"].unstack()
        by_entity = auroc.reindex(index=[part.entity for part in parts], columns=means.index).reset_index()
        tables = [Table(f"What predicts the label (mean over {len(parts)} entities)", tables[0].frame)]
        tables.append(Table("AUROC by entity", by_entity))
    # Of the one-liners, summaries name the strongest alone.
    strongest = means["AUROC"].drop(list(_BLIND)).max()
    for name, auroc in means["AUROC"].items():
        behind, tables = tuple(tables), []
        if np.isnan(auroc):
            yield Finding(str(name), "note", f"{name}: no AUROC, because the test rows are of one class.", "", behind)
            continue
        of_each = (
            values.loc[values["predictor"] == name, "AUROC"].dropna() if len(parts) > 1 else pd.Series(dtype=float)
        )
        blind = name in _BLIND
        strength, limit = (_strength(auroc, of_each), _WEAK) if blind else (auroc, _STRONG)
        tells = "tells anomalous rows from normal ones" if strength > limit else "does not give the labels away"
        grade: Grade = "good" if strength <= limit else "fault" if strength > _STRONG else "note"
        brief = f"{name} alone has AUROC {auroc:.3f}" if strength > limit and (blind or auroc == strongest) else ""
        sentence = f"{_BLIND.get(str(name), f'The one-liner {name}')} {tells}: AUROC {auroc:.3f}{_spread(of_each)}."
        yield Finding(str(name), grade, sentence, brief, behind)


def _spread(of_each: pd.Series[float]) -> str:
    if of_each.empty:
        return ""
    deviation = f", deviation {of_each.std():.3f}" if len(of_each) > 1 else ""
    return f", mean over {len(of_each)} entities{deviation}, {of_each.min():.3f} to {of_each.max():.3f}"


def _strength(auroc: float, of_each: pd.Series[float]) -> float:
    """Return how well a predictor ranks whose direction is unknown; over entities, chance points in some direction."""
    if len(of_each) > 1 and abs(auroc - 0.5) < 2 * of_each.std() / sqrt(len(of_each)):
        return 0.5
    return 0.5 + abs(auroc - 0.5)


def _rankings(
    data: LabelledDataset, parts: Sequence[Part], one_liners: Sequence[OneLiners]
) -> Iterator[tuple[str, str, float, float]]:
    """Yield the AUROC and AUPRC of each predictor on each entity's test rows, NaN if these are of one class."""
    truth, sessions = data.labels.rows, sessions_of(data.dataset)
    if len({sessions[name] for name in truth}) < 2:
        sessions = {name: name for name in truth}
    position = dict(zip(truth, position_scores(truth, sessions), strict=True))
    for part, scores in zip(parts, one_liners, strict=True):
        blind = {"position": position, "time": {recording.id: elapsed(recording) for recording in part.test}}
        for name, of_recordings in {**blind, **scores}.items():
            auroc, auprc = _ranking(np.concatenate([of_recordings[one.id] for one in part.test]), part.anomalous)
            yield part.entity, name, auroc, auprc


def _ranking(scores: FloatArray, anomalous: BoolArray) -> tuple[float, float]:
    auprc = average_precision(scores, anomalous)
    if auprc is None:
        return np.nan, np.nan
    return float(roc_auc_score(anomalous, worst_case(scores, anomalous))), auprc


def one_liner_scores(parts: Sequence[Part], folder: Path | None = None) -> tuple[OneLiners, ...]:
    """Return for each part the scores of its test recordings by every one-liner among the floors, fitted to it alone.

    A floor that fails, for instance because it needs longer training recordings than there are, is left out.
    """
    names = [name for name in floors() if _looks_at_values(describe(name).traits)]
    forbidden = () if folder is None else (folder,)
    return tuple(
        {name: scores for name in names if part.train and (scores := _scores(name, part, forbidden)) is not None}
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

    Only recordings that have a row i count; 0 where no other session has. ``truth`` [n_rows] and ``sessions`` are by
    the recordings' ids.
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
