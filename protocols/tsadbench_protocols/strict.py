"""The default protocol: no row serves both training and testing, no window crosses a recording's border."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from tsadbench import DataError
from tsadbench.base import ALL, Dataset, Episode, Ge, Judgement, Labels, Place, Recording, Scored
from tsadbench_protocols.judging import PotProtocol
from tsadbench_protocols.training_rows import held_out, without_shared_rows

# With fewer, q = 1e-3 is less than one row, and the training rows say more about the tail.
FEWEST_CALIBRATION_ROWS = 1_000


@dataclass(kw_only=True, eq=False)
class Strict(PotProtocol):
    """The default protocol. The paper's protocol is `published`.

    1. *Training.* One fit per entity (a single fit without them), on its training recordings less the rows that also
       occur in one of its test recordings, with the same time and values (SKAB has such rows). What remains keeps its
       order and is cut into recordings at the gaps. A row without time equals no other, because a system at rest
       repeats its values. Rows that occur only in another entity's test stay.
    2. *Scoring.* Each test recording by itself.
    3. *Evaluated rows.* ``warm_up`` to ``n - 1`` of each test recording, for every detector. A recording that is no
       longer than the warm-up contributes none, and tables say so.
    4. *Threshold.* Peaks-over-Threshold, one per fit, on the pooled scores of the normal rows that ``calibration``
       chooses, less the warm-up of each recording.
    5. *Metrics.* Point-wise, no point adjustment, over all evaluated rows of a split. With several entities: the mean
       of each entity's metric, where it is defined, because scores of two fits share no scale. A row without a score
       counts as the worst case: a false alarm if it is normal, a miss if it is anomalous.

    Parameters
    ----------
    warm_up
        Rows at the start of each recording that are not evaluated.
    calibration
        Which rows set the threshold. "training": the rows that trained the detector. "held-out": the last fifth of an
        entity's normal rows, counted over its recordings, which are scored among the test recordings; neither these nor
        the 100 rows before them train. If fewer than 1,000 of them count, the training rows set it after all, and
        tables say so.
    """

    version = 2
    summary = "the default, not the paper's: each recording by itself, no training row that recurs in the test"

    warm_up: Annotated[int, Ge(0)] = 30
    calibration: Literal["training", "held-out"] = "training"

    def episodes(self, dataset: Dataset) -> Iterator[Episode]:
        """Yield a fit for each entity that has test recordings (each entity, if the data set has none at all).

        Its id is the entity's name; "all" if the data set has at most one. A DataError if an entity has no training
        recording, or every training row also occurs in the test.
        """
        for entity, (own, test) in dataset.by_entity.items():
            if dataset.test and not test:
                continue
            whose = f"data set {dataset.name!r}" + (f", entity {entity!r}" if entity != ALL else "")
            if not own:
                raise DataError(f"{whose}: expected a training recording for test recording {test[0].id!r}, found none")
            train, calibration = without_shared_rows(own, test), tuple[Recording, ...]()
            if not train:
                raise DataError(
                    f"{whose}: every training row also occurs in a test recording (same time, same values), so nothing "
                    f"is left to train on"
                )
            if self.calibration == "held-out":
                fitted, last = held_out(train)
                if self._n_calibrating(last) >= FEWEST_CALIBRATION_ROWS:
                    train, calibration = fitted, last
            yield Episode(id=entity, train=train, test=test, calibration=calibration)

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Judge all fits, and note if held-out rows were asked for and are too few."""
        judgement = super().judge(scored, labels)
        too_few = [fit.episode for fit in scored if not fit.episode.calibration]
        if self.calibration == "training" or not too_few:
            return judgement
        n_left = max(self._n_calibrating(held_out(episode.train)[1]) for episode in too_few)
        note = (
            f"thresholds are set on training rows ({', '.join(episode.id for episode in too_few)}): held-out rows are "
            f"at most {n_left} after the warm-up, {FEWEST_CALIBRATION_ROWS:,} are needed"
        )
        return replace(judgement, notes=(*judgement.notes, note))

    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:  # noqa: ARG002 - each by itself
        """Yield every test recording, which is scored by itself; its rows after the warm-up count."""
        for position, recording in enumerate(episode.test):
            yield Place(recording.id, position, 0, slice(self.warm_up, recording.n_rows))

    def calibration_rows(self, n_rows: int) -> slice:
        """Return the rows after the warm-up."""
        return slice(self.warm_up, n_rows)

    def _n_calibrating(self, recordings: Sequence[Recording]) -> int:
        return sum(max(0, one.n_rows - self.warm_up) for one in recordings)
