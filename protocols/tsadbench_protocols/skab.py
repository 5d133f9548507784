"""The protocol of the SKAB repository's own leaderboard: one detector a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from tsadbench import DataError
from tsadbench.base import Dataset, Episode, Ge, Judgement, Labels, Metric, Place, Scored, SplitJudgement
from tsadbench_protocols.judging import PotProtocol, Rows
from tsadbench_protocols.metrics import METRICS, counts, rates


@dataclass(kw_only=True, eq=False)
class Skab(PotProtocol):
    """The protocol of the SKAB repository's own leaderboard, not the paper's.

    1. *Training.* One fit per test recording, on its first ``train_rows`` rows. The training recordings are not used.
    2. *Scoring.* The whole recording, so that windows reach back into the training rows.
    3. *Evaluated rows.* ``train_rows`` to ``n - 1`` of each recording. Shorter recordings are left out. On SKAB: 23,801
       rows.
    4. *Threshold.* Peaks-over-Threshold on the training scores, one threshold per recording, less the first 100 rows or
       the first quarter (the smaller), whose windows are padded. The repository sets one by hand for each method.
    5. *Metrics.* Point-wise, no point adjustment. Metrics at a threshold are counted over all rows of a split, all
       others are means over its recordings with rows of both classes, because scores of two fits share no scale. A row
       without a score counts as the worst case: a false alarm if it is normal, a miss if it is anomalous.

    Tables name the recordings that train on anomalous rows.

    Parameters
    ----------
    train_rows
        Rows at the start of each recording that train, and are not evaluated.
    """

    metrics = (Metric("f1", "F1"), *(Metric(name, name.upper(), better="lower") for name in ("far", "mar")), *METRICS)
    version = 2
    summary = "the SKAB repository's: each file trains on its first 400 rows and is tested on the rest"

    train_rows: Annotated[int, Ge(1)] = 400

    def episodes(self, dataset: Dataset) -> Iterator[Episode]:
        """Yield one fit per test recording: trained on its first rows, scored on the whole of it.

        A DataError if no test recording is longer than ``train_rows``.
        """
        longest = max((recording.n_rows for recording in dataset.test), default=0)
        if longest <= self.train_rows:
            raise DataError(
                f"data set {dataset.name!r}: expected a test recording of more than {self.train_rows} rows, the "
                f"longest has {longest}; give a smaller skab.train_rows"
            )
        for recording in dataset.test:
            if recording.n_rows > self.train_rows:
                beginning = recording.rows(0, self.train_rows, id=f"{recording.id}[0:{self.train_rows}]")
                yield Episode(id=recording.id, train=(beginning,), test=(recording,))

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Judge the recordings that are long enough, and note which of them train on anomalous rows."""
        rows = {name: anomalous for name, anomalous in labels.rows.items() if len(anomalous) > self.train_rows}
        splits = {split: tuple(name for name in ids if name in rows) for split, ids in labels.splits.items()}
        judgement = super().judge(scored, Labels(rows, splits))
        contaminated = {name: int(np.count_nonzero(anomalous[: self.train_rows])) for name, anomalous in rows.items()}
        notes = (
            f"{name} trains on anomalous rows: {count} of its first {self.train_rows}"
            for name, count in contaminated.items()
            if count
        )
        return replace(judgement, notes=(*judgement.notes, *notes))

    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:  # noqa: ARG002 - by itself
        """Yield the one recording that an episode scores; its rows after the first ``train_rows`` count."""
        (whole,) = episode.test
        yield Place(whole.id, 0, 0, slice(self.train_rows, whole.n_rows))

    def calibration_rows(self, n_rows: int) -> slice:
        """Return all rows but the first 100, or the first quarter if that is less."""
        return slice(min(100, n_rows // 4), n_rows)

    def _judge_split(self, members: Mapping[str, Sequence[Rows]], fits: Sequence[str]) -> SplitJudgement:
        """Average what a ranking gives over the recordings, and count all else over their rows."""
        # A recording that is listed twice, as in a resample, counts twice.
        each = {f"{number} {fit}": [rows] for fit, some in members.items() for number, rows in enumerate(some)}
        means = super()._judge_split(each, fits)
        counted = [counts(rows.scores, rows.anomalous, rows.limits) for some in members.values() for rows in some]
        found = {**means.metrics, **rates(*np.sum([(0, 0, 0, 0), *counted], axis=0).tolist())}
        # The repository's F1 is the one that other protocols call prac_f1.
        metrics = {one.name: found["prac_f1" if one.name == "f1" else one.name] for one in self.metrics}
        return replace(means, metrics=metrics, entities={})
