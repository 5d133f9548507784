"""The protocol of the SKAB repository's own leaderboard: one detector a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tsadbench import ContractError, DataError
from tsadbench.base import (
    Dataset,
    Episode,
    EpisodeThreshold,
    Judgement,
    Labels,
    Metric,
    Place,
    Scored,
    SplitJudgement,
    Threshold,
    flagged_rows,
)
from tsadbench_protocols.judging import Evaluated, PotProtocol, nothing_judged, require_whole
from tsadbench_protocols.metrics import METRICS, Confusion, Ranking, by_name, rank


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
       recording flagged by its own threshold; AUROC, AUPRC and best F1 are means over the split's recordings that have
       rows of both classes, because scores of two fits share no scale. A row without a score counts as the worst case:
       a false alarm if it is normal, a miss if it is anomalous.

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

    def __init__(self, *, train_rows: int = 400, level: float = 0.98, q: float = 1e-3) -> None:
        self.train_rows = train_rows
        self.level = level
        self.q = q

    def check(self) -> None:
        """Raise a UsageError if a parameter is out of range."""
        self._require_integer("train_rows", least=1)
        super().check()

    def episodes(self, dataset: Dataset) -> Iterator[Episode]:
        """Yield one fit per test recording: trained on its first rows, scored on the whole of it.

        Raises
        ------
        DataError
            If no test recording is longer than ``train_rows``.
        """
        self.check()
        long_enough = [recording for recording in dataset.test if recording.n_rows > self.train_rows]
        if not long_enough:
            longest = max((recording.n_rows for recording in dataset.test), default=0)
            raise DataError(
                f"data set {dataset.name!r}: expected a test recording of more than {self.train_rows} rows, the "
                f"longest has {longest}; give a smaller skab.train_rows"
            )
        for recording in long_enough:
            beginning = recording.rows(0, self.train_rows, id=f"{recording.id}[0:{self.train_rows}]")
            yield Episode(id=recording.id, train=(beginning,), test=(recording,))

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Return every recording's threshold, and the metrics of every split.

        Raises
        ------
        ContractError
            If no evaluated row of a recording has a score, or too few of the training rows that the threshold needs.
        DataError
            If the labels are not those of the scored rows.
        """
        self.check()
        files = {fit.episode.id: self._judge_file(fit, labels) for fit in scored}
        return Judgement(
            thresholds=tuple(file.threshold for file in files.values()),
            splits={
                split: _judge_split([files[member] for member in ids if member in files])
                for split, ids in labels.splits.items()
            },
            notes=tuple(self._contamination(fit, labels) for fit in scored if self._n_contaminated(fit, labels)),
        )

    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:
        """Yield the one recording that an episode scores; its rows after the first ``train_rows`` count."""
        yield Place(episode.id, 0, 0, slice(self.train_rows, n_rows[episode.id]))

    def calibration_rows(self, n_rows: int) -> slice:
        """Return all rows but the first 100, or the first quarter if that is less."""
        return slice(min(100, n_rows // 4), n_rows)

    def _judge_file(self, fit: Scored, labels: Labels) -> _File:
        require_whole(fit)
        (scores,) = fit.test
        anomalous = labels.rows.get(fit.episode.id)
        if anomalous is None or len(anomalous) != len(scores):
            raise DataError(
                f"expected a label for each of the {len(scores)} scored rows of {fit.episode.id!r}, found "
                f"{'none' if anomalous is None else len(anomalous)}"
            )
        (place,) = self.places(fit.episode, {fit.episode.id: len(scores)})
        rows = Evaluated(scores[place.evaluated], anomalous[place.evaluated])
        if np.isnan(rows.scores).all():
            raise ContractError(f"not one of the {len(rows.scores)} evaluated rows of {fit.episode.id!r} has a score")
        return _File(fit.episode.id, rows, self.threshold(fit))

    def _n_contaminated(self, fit: Scored, labels: Labels) -> int:
        return int(np.count_nonzero(labels.rows[fit.episode.id][: self.train_rows]))

    def _contamination(self, fit: Scored, labels: Labels) -> str:
        return (
            f"{fit.episode.id} trains on anomalous rows: {self._n_contaminated(fit, labels)} of its first "
            f"{self.train_rows}"
        )


class _File:
    """The judgement of one recording's evaluated rows."""

    def __init__(self, name: str, rows: Evaluated, threshold: Threshold) -> None:
        self.threshold = EpisodeThreshold(name, threshold)
        self.confusion = Confusion.of(flagged_rows(rows.scores, rows.anomalous, threshold.value), rows.anomalous)
        self.ranking = rank(rows.scores, rows.anomalous)
        self.n_scored = int(np.count_nonzero(~np.isnan(rows.scores)))


def _judge_split(files: Sequence[_File]) -> SplitJudgement:
    if not files:
        return nothing_judged(Skab.metrics)
    confusion = sum((file.confusion for file in files), start=Confusion(0, 0, 0, 0))
    return SplitJudgement(
        # The repository's names for its three metrics; its F1 is the one that other protocols call prac_f1.
        metrics={
            "f1": confusion.f1,
            "far": confusion.false_alarm_rate,
            "mar": confusion.missed_alarm_rate,
            **by_name(confusion, Ranking.mean([file.ranking for file in files])),
        },
        n_rows=confusion.n_rows,
        n_anomalous=confusion.tp + confusion.fn,
        coverage=sum(file.n_scored for file in files) / confusion.n_rows,
    )
