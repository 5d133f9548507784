"""The default protocol: no row is trained on and tested on, no window crosses a recording's border."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from tsadbench import DataError, UsageError
from tsadbench.base import Dataset, Episode, Judgement, Labels, Place, Recording, Scored
from tsadbench_protocols.held_out import ONE_PART_IN, held_out
from tsadbench_protocols.judging import OneFitProtocol
from tsadbench_protocols.overlap import without_shared_rows

# With fewer, q = 1e-3 is less than one row, and the training rows say more about the tail.
FEWEST_CALIBRATION_ROWS = 1_000


class Strict(OneFitProtocol):
    """The default protocol. It is not the paper's: that one is `published`.

    1. *Training.* On the training recordings without the rows that also occur in a test recording, with the same time
       and values (SKAB has such rows). What remains keeps its order and is cut into recordings at the gaps. A row
       without time equals no other: a system at rest repeats its values.
    2. *Scoring.* Each test recording by itself.
    3. *Evaluated rows.* ``warm_up`` to ``n - 1`` of each test recording, whatever the detector. A recording that is no
       longer than the warm-up contributes none, and tables say so.
    4. *Threshold.* Peaks-over-Threshold on the scores of normal rows, pooled: those after the warm-up of each recording
       that ``calibration`` chooses. One threshold for the one fitted detector.
    5. *Metrics.* Point-wise, no point adjustment, over all evaluated rows of a split. A row without a score counts as
       the worst case: a false alarm if it is normal, a miss if it is anomalous.

    ``level`` and ``q`` are the options of Peaks-over-Threshold: see `PotProtocol`.

    Parameters
    ----------
    warm_up
        Rows at the start of each recording that are not evaluated.
    calibration
        Which rows set the threshold. "training": those that the detector was trained on. "held-out": the last fifth of
        the normal rows, counted over all recordings, which is not trained on, nor are the 100 rows before it; if fewer
        than 1,000 of them count, "training" after all, and tables say so.
    """

    version = 2
    summary = "the default, not the paper's: each recording by itself, no training row that recurs in the test"

    def __init__(
        self,
        *,
        warm_up: int = 30,
        calibration: Literal["training", "held-out"] = "training",
        level: float = 0.98,
        q: float = 1e-3,
    ) -> None:
        self.warm_up = warm_up
        self.calibration = calibration
        self.level = level
        self.q = q

    def check(self) -> None:
        """Raise a UsageError if a parameter is out of range."""
        self._require_integer("warm_up", least=0)
        if self.calibration not in ("training", "held-out"):
            raise UsageError(f"strict: calibration must be training or held-out, found {self.calibration!r}")
        super().check()

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
        calibration: tuple[Recording, ...] = ()
        if self.calibration == "held-out":
            fitted, last = held_out(train)
            if self.enough(last):
                train, calibration = fitted, last
        yield Episode(id="all", train=train, test=dataset.test, calibration=calibration)

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Judge as `OneFitProtocol` does, and note if held-out rows were asked for and are too few."""
        judgement = super().judge(scored, labels)
        if self.calibration == "training" or scored[0].episode.calibration:
            return judgement
        _, last = held_out(scored[0].episode.train)
        note = (
            f"the threshold is found on training rows: held out, one row in {ONE_PART_IN} would leave "
            f"{self._n_calibrating(last)} rows after the warm-up, and {FEWEST_CALIBRATION_ROWS:,} are needed"
        )
        return replace(judgement, notes=(*judgement.notes, note))

    def enough(self, recordings: Sequence[Recording]) -> bool:
        """Whether normal recordings have enough rows after their warm-up for a threshold."""
        return self._n_calibrating(recordings) >= FEWEST_CALIBRATION_ROWS

    def _n_calibrating(self, recordings: Sequence[Recording]) -> int:
        return sum(len(range(one.n_rows)[self.calibration_rows(one.n_rows)]) for one in recordings)

    def _check_labels(self, scored: Scored, labels: Labels) -> None:
        n_scores = {recording.id: len(rows) for recording, rows in zip(scored.episode.test, scored.test, strict=True)}
        n_labels = {name: len(rows) for name, rows in labels.rows.items()}
        if n_labels != n_scores:
            raise DataError(f"expected one label for each scored row, {n_scores}, found labels for {n_labels}")

    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:  # noqa: ARG002 - each by itself
        """Yield every test recording, which is scored by itself; all its rows count but for the warm-up."""
        for position, recording in enumerate(episode.test):
            yield Place(recording.id, position, 0, slice(self.warm_up, recording.n_rows))

    def calibration_rows(self, n_rows: int) -> slice:
        """Return the rows after the warm-up."""
        return slice(self.warm_up, n_rows)
