"""The default protocol: no row is trained on and tested on, no window crosses a recording's border."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from tsadbench import DataError, UsageError
from tsadbench.base import ALL, Dataset, Episode, Judgement, Labels, Place, Recording, Scored
from tsadbench_protocols.held_out import ONE_PART_IN, held_out
from tsadbench_protocols.judging import PooledProtocol
from tsadbench_protocols.overlap import without_shared_rows

# With fewer, q = 1e-3 is less than one row, and the training rows say more about the tail.
FEWEST_CALIBRATION_ROWS = 1_000


class Strict(PooledProtocol):
    """The default protocol. It is not the paper's: that one is `published`.

    1. *Training.* One fit per entity, or one for a data set that declares no entities: on its training recordings
       without the rows that also occur in one of its test recordings, with the same time and values (SKAB has such
       rows). What remains keeps its order and is cut into recordings at the gaps. A row without time equals no other: a
       system at rest repeats its values. Rows that another entity's test shares stay: that test is scored by another
       fit.
    2. *Scoring.* Each test recording by itself.
    3. *Evaluated rows.* ``warm_up`` to ``n - 1`` of each test recording, whatever the detector. A recording that is no
       longer than the warm-up contributes none, and tables say so.
    4. *Threshold.* Peaks-over-Threshold on the scores of normal rows, pooled: those after the warm-up of each recording
       that ``calibration`` chooses. One threshold for the one fitted detector.
    5. *Metrics.* Point-wise, no point adjustment, over all evaluated rows of a split. With several entities: of each
       entity by itself, then the mean over those for which the metric is defined, because scores of two fits share no
       scale; rows are counted over all of them. A row without a score counts as the worst case: a false alarm if it is
       normal, a miss if it is anomalous.

    ``level`` and ``q`` are the options of Peaks-over-Threshold: see `PotProtocol`.

    Parameters
    ----------
    warm_up
        Rows at the start of each recording that are not evaluated.
    calibration
        Which rows set the threshold. "training": those that the detector was trained on. "held-out": the last fifth of
        an entity's normal rows, counted over its recordings, which is not trained on, nor are the 100 rows before it;
        if fewer than 1,000 of them count, "training" after all, and tables say so.
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
        """Yield a fit for each entity: its training recordings without shared rows, its test recordings.

        Its id is the entity's name; "all" if the data set has at most one. Entities without test recordings are left
        out, unless the data set has none at all. A DataError if an entity has test recordings and no training
        recording, or every row of these also occurs in those.
        """
        self.check()
        for entity, (train, test) in dataset.by_entity.items():
            if test or not dataset.test:
                yield self._episode(dataset, entity, train, test)

    def _episode(
        self, dataset: Dataset, entity: str, train: tuple[Recording, ...], test: tuple[Recording, ...]
    ) -> Episode:
        whose = f"data set {dataset.name!r}" if entity == ALL else f"data set {dataset.name!r}, entity {entity!r}"
        if not train:
            raise DataError(
                f"{whose}: expected a training recording, for each entity has a model of its own; found test "
                f"recordings alone ({', '.join(one.id for one in test[:3])}{', ...' if len(test) > 3 else ''})"
            )
        train = without_shared_rows(train, test)
        if not train:
            raise DataError(
                f"{whose}: every training row also occurs in a test recording (same time, same values), so nothing is "
                f"left to train on{'; the protocol published keeps such rows' if entity == ALL else ''}"
            )
        calibration: tuple[Recording, ...] = ()
        if self.calibration == "held-out":
            fitted, last = held_out(train)
            if self.enough(last):
                train, calibration = fitted, last
        return Episode(id=entity, train=train, test=test, calibration=calibration)

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Judge as `PooledProtocol` does, and note if held-out rows were asked for and are too few."""
        judgement = super().judge(scored, labels)
        too_few = [fit.episode for fit in scored if not fit.episode.calibration]
        if self.calibration == "training" or not too_few:
            return judgement
        n_left = max(self._n_calibrating(held_out(episode.train)[1]) for episode in too_few)
        whose = (
            "the threshold is"
            if len(scored) == 1
            else f"the thresholds of {', '.join(episode.id for episode in too_few)} are"
        )
        note = (
            f"{whose} found on training rows: held out, one row in {ONE_PART_IN} would leave "
            f"{'at most ' if len(scored) > 1 else ''}{n_left} rows after the warm-up, and {FEWEST_CALIBRATION_ROWS:,} "
            "are needed"
        )
        return replace(judgement, notes=(*judgement.notes, note))

    def enough(self, recordings: Sequence[Recording]) -> bool:
        """Whether normal recordings have enough rows after their warm-up for a threshold."""
        return self._n_calibrating(recordings) >= FEWEST_CALIBRATION_ROWS

    def _n_calibrating(self, recordings: Sequence[Recording]) -> int:
        return sum(len(range(one.n_rows)[self.calibration_rows(one.n_rows)]) for one in recordings)

    def _check_labels(self, scored: Sequence[Scored], labels: Labels) -> None:
        n_scores = {
            recording.id: len(rows)
            for fit in scored
            for recording, rows in zip(fit.episode.test, fit.test, strict=True)
        }
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
