"""The default protocol: no row is trained on and tested on, no window crosses a recording's border."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tsadbench import DataError
from tsadbench.base import Dataset, Episode, Judgement, Labels, Place, Protocol, Scored, Threshold
from tsadbench_protocols import pot
from tsadbench_protocols.judging import evaluated_rows, find_threshold, judge, only_episode, require_integer
from tsadbench_protocols.metrics import METRICS
from tsadbench_protocols.overlap import without_shared_rows


class Strict(Protocol):
    """The default protocol. It is not the paper's: that one is `published`.

    1. *Training.* On the training recordings, less every row that also occurs in a test recording: same time and same
       values (SKAB has such rows). What remains keeps its order and is cut into recordings at the gaps. A row without
       time is never taken for another one: a system at rest repeats its values honestly.
    2. *Scoring.* Each test recording by itself.
    3. *Evaluated rows.* ``warm_up`` to ``n - 1`` of each test recording, whatever the detector. A recording that is no
       longer than the warm-up contributes none.
    4. *Threshold.* Peaks-over-Threshold on the training scores of the same rows of each training recording, pooled:
       one threshold for the one fitted detector.
    5. *Metrics.* Point-wise, no point adjustment, over all evaluated rows of a split.

    Parameters
    ----------
    warm_up
        Rows at the start of each recording that are not evaluated.
    level
        Quantile level of the initial threshold.
    q
        Risk: the share of normal rows that the threshold lets be flagged.
    """

    metrics = METRICS
    summary = "the default, not the paper's: each recording by itself, no training row that recurs in the test"

    def __init__(self, *, warm_up: int = 30, level: float = 0.98, q: float = 1e-3) -> None:
        self.warm_up = warm_up
        self.level = level
        self.q = q

    def check(self) -> None:
        """Raise a UsageError where a parameter is out of range."""
        require_integer("strict", "warm_up", self.warm_up, least=0)
        pot.check_options(self.level, self.q)

    def episodes(self, dataset: Dataset) -> Iterator[Episode]:
        """Yield the one fit: training recordings without shared rows, all test recordings.

        Raises
        ------
        DataError
            If every training row also occurs in a test recording.
        """
        self.check()
        train = without_shared_rows(dataset.train, dataset.test)
        if not train:
            raise DataError(
                f"data set {dataset.name!r}: every training row also occurs in a test recording (same time, same "
                f"values), so nothing is left to train on; the protocol 'published' keeps such rows"
            )
        yield Episode(id="all", train=train, test=dataset.test)

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Return the threshold, and the metrics of every split.

        Raises
        ------
        ContractError
            If no evaluated row has a score, or no training row that the threshold needs.
        DataError
            If the labels are not those of the scored rows.
        """
        self.check()
        one = only_episode(scored)
        found = {recording.id: len(rows) for recording, rows in zip(one.episode.test, one.test, strict=True)}
        labelled = {name: len(rows) for name, rows in labels.rows.items()}
        if labelled != found:
            raise DataError(f"expected one label for each scored row, {found}, found labels for {labelled}")
        evaluated = evaluated_rows(self.places(one.episode, labelled), one, labels)
        return judge(one, evaluated, labels, self.threshold)

    def threshold(self, one: Scored) -> Threshold:
        """Return the threshold of the one fit: Peaks-over-Threshold on the rows that `calibration` names."""
        return find_threshold(one, self.calibration, self.level, self.q)

    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:  # noqa: ARG002 - each by itself
        """Yield every test recording, which is scored by itself; all its rows count but for the warm-up."""
        for position, recording in enumerate(episode.test):
            yield Place(recording.id, position, 0, slice(self.warm_up, recording.n_rows))

    def calibration(self, n_rows: int) -> slice:
        """Return the rows after the warm-up."""
        return slice(self.warm_up, n_rows)
