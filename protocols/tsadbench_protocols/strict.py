"""The default protocol: no row is trained on and tested on, no window crosses a recording's border."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from tsadbench import DataError
from tsadbench.base import ALL, Dataset, Episode, Ge, Judgement, Labels, Place, Recording, Scored
from tsadbench_protocols.judging import PooledProtocol
from tsadbench_protocols.training_rows import ONE_PART_IN, held_out, without_shared_rows

# With fewer, q = 1e-3 is less than one row, and the training rows say more about the tail.
FEWEST_CALIBRATION_ROWS = 1_000


@dataclass(kw_only=True, eq=False)
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

    warm_up: Annotated[int, Ge(0)] = 30
    calibration: Literal["training", "held-out"] = "training"
    level: float = 0.98
    q: float = 1e-3

    def episodes(self, dataset: Dataset) -> Iterator[Episode]:
        """Yield a fit for each entity: its training recordings without shared rows, its test recordings.

        Its id is the entity's name; "all" if the data set has at most one. Entities without test recordings are left
        out, unless the data set has none at all. A DataError if an entity has test recordings and no training
        recording, or every row of these also occurs in those.
        """
        for entity, (train, test) in dataset.by_entity.items():
            if test or not dataset.test:
                whose = f"data set {dataset.name!r}" + (f", entity {entity!r}" if entity != ALL else "")
                yield self._episode(whose, entity, train, test)

    def _episode(self, whose: str, entity: str, train: tuple[Recording, ...], test: tuple[Recording, ...]) -> Episode:
        if not train:
            raise DataError(f"{whose}: expected a training recording, found none to the test recording {test[0].id!r}")
        train = without_shared_rows(train, test)
        if not train:
            raise DataError(
                f"{whose}: every training row also occurs in a test recording (same time, same values), so nothing is "
                f"left to train on"
            )
        if self.calibration == "held-out":
            fitted, last = held_out(train)
            if self._n_calibrating(last) >= FEWEST_CALIBRATION_ROWS:
                return Episode(id=entity, train=fitted, test=test, calibration=last)
        return Episode(id=entity, train=train, test=test)

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Judge as `PooledProtocol` does, and note if held-out rows were asked for and are too few."""
        judgement = super().judge(scored, labels)
        too_few = [fit.episode for fit in scored if not fit.episode.calibration]
        if self.calibration == "training" or not too_few:
            return judgement
        n_left = max(self._n_calibrating(held_out(episode.train)[1]) for episode in too_few)
        note = (
            f"thresholds are found on training rows ({', '.join(episode.id for episode in too_few)}): the last of "
            f"{ONE_PART_IN} parts has at most {n_left} rows after the warm-up, {FEWEST_CALIBRATION_ROWS:,} are needed"
        )
        return replace(judgement, notes=(*judgement.notes, note))

    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:  # noqa: ARG002 - each by itself
        """Yield every test recording, which is scored by itself; all its rows count but for the warm-up."""
        for position, recording in enumerate(episode.test):
            yield Place(recording.id, position, 0, slice(self.warm_up, recording.n_rows))

    def calibration_rows(self, n_rows: int) -> slice:
        """Return the rows after the warm-up."""
        return slice(self.warm_up, n_rows)

    def _n_calibrating(self, recordings: Sequence[Recording]) -> int:
        return sum(max(0, one.n_rows - self.warm_up) for one in recordings)
