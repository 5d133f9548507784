"""The protocol of the SKAB repository's own leaderboard: one detector a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tsadbench import DataError
from tsadbench.base import (
    BoolArray,
    Dataset,
    Episode,
    EpisodeThreshold,
    Ge,
    Judgement,
    Labels,
    Metric,
    Place,
    Scored,
    SplitJudgement,
    flagged_rows,
)
from tsadbench_protocols.judging import PotProtocol, Rows, mean
from tsadbench_protocols.metrics import METRICS, counts, events, ranking, rates


@dataclass(kw_only=True, eq=False)
class Skab(PotProtocol):
    """The SKAB repository's own leaderboard: the beginning of every file trains a detector. Not the paper's.

    1. *Training.* One fit per test recording, on its first ``train_rows`` rows; the training recordings are not used.
    2. *Scoring.* The whole recording, so that windows reach back into the training rows.
    3. *Evaluated rows.* ``train_rows`` to ``n - 1`` of each recording; a recording that has no more takes no part. On
       SKAB: 23,801 rows.
    4. *Threshold.* Peaks-over-Threshold on the episode's training scores: one threshold per recording. The first 100
       training rows are left out, or the first quarter (rounded down) if that is less: a detector with a window has
       padded the windows of these. The repository sets a threshold by hand for each method, with factors that no
       validation set explains.
    5. *Metrics.* Point-wise, no point adjustment. Metrics at a threshold are counted over all rows of a split, each
       recording flagged by its own threshold; all others are means over the split's recordings that have rows of both
       classes, because scores of two fits share no scale. A row without a score counts as the worst case: a false
       alarm if it is normal, a miss if it is anomalous.

    A recording whose first rows are anomalous trains on what it holds; the tables say so.

    ``level`` and ``q`` are the options of Peaks-over-Threshold: see `PotProtocol`.

    Parameters
    ----------
    train_rows
        Rows at the start of each recording that train, and are not evaluated.
    """

    metrics = (
        Metric("f1", "F1"),
        Metric("far", "FAR", better="lower"),
        Metric("mar", "MAR", better="lower"),
        *METRICS,
    )
    version = 2
    summary = "the SKAB repository's: each file trains on its first 400 rows and is tested on the rest"

    train_rows: Annotated[int, Ge(1)] = 400
    level: float = 0.98
    q: float = 1e-3

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
        """Return every recording's threshold, and the metrics of every split.

        A ContractError if no evaluated row of a recording has a score, or too few of the rows that set its threshold. A
        DataError if the labels are not those of the scored rows.
        """
        rows = {fit.episode.id: self.evaluated(fit, labels)[fit.episode.id] for fit in scored}
        thresholds = {fit.episode.id: self.threshold(fit) for fit in scored}
        flagged = {name: flagged_rows(*rows[name], thresholds[name].value) for name in rows}
        splits = {
            split: self._judge_split([(rows[name], flagged[name]) for name in ids if name in rows])
            for split, ids in labels.splits.items()
        }
        contaminated = {name: int(np.count_nonzero(labels.rows[name][: self.train_rows])) for name in rows}
        notes = (
            f"{name} trains on anomalous rows: {count} of its first {self.train_rows}"
            for name, count in contaminated.items()
            if count
        )
        return Judgement(tuple(EpisodeThreshold(*one) for one in thresholds.items()), splits, tuple(notes))

    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:  # noqa: ARG002 - by itself
        """Yield the one recording that an episode scores; its rows after the first ``train_rows`` count."""
        (whole,) = episode.test
        yield Place(whole.id, 0, 0, slice(self.train_rows, whole.n_rows))

    def calibration_rows(self, n_rows: int) -> slice:
        """Return all rows but the first 100, or the first quarter if that is less."""
        return slice(min(100, n_rows // 4), n_rows)

    def _judge_split(self, recordings: Sequence[tuple[Rows, BoolArray]]) -> SplitJudgement:
        """Count over all rows of some recordings, given which are flagged; average what a ranking gives."""
        pooled = Rows.pooled([rows for rows, _ in recordings])
        flagged = np.concatenate([np.empty(0, dtype=np.bool_), *(flagged for _, flagged in recordings)])
        found = rates(*counts(flagged, pooled.anomalous))
        rankings = [ranking(*rows) | events(*rows) for rows, _ in recordings]
        names = ("auroc", "auprc", "bf_f1", "events_at_1", "events_at_01")
        found |= {name: mean(one[name] for one in rankings) for name in names}
        # The repository's F1 is the one that other protocols call prac_f1.
        return pooled.judgement({one.name: found["prac_f1" if one.name == "f1" else one.name] for one in self.metrics})
