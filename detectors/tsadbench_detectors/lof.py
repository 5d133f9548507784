"""Local outlier factor: how sparse a row's surroundings are, compared with those of its neighbours."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from sklearn.neighbors import LocalOutlierFactor

from tsadbench import DataError
from tsadbench.base import Cheap, Detector, FloatArray, Ge, Recording, Traits, Tune, detector
from tsadbench_detectors.rows import by_blocks, evenly_spaced_rows
from tsadbench_detectors.standardise import Standardiser, pooled_rows

# The differences of this many rows of 50 sensors to 20 neighbours are 8 MiB.
_ROWS_AT_ONCE = 1_024


@detector
class LOF(Detector):
    """Scores how sparse a row's surroundings are among the training rows, compared with those of its neighbours.

    The score is near 1 where a row lies as close to its neighbours as these lie to theirs, and above 1 where it lies
    farther away. So training rows may be dense in one operating state and sparse in another. Rows are z-scores. The
    neighbours are the distinct ones of at most ``max_rows`` evenly spaced training rows (scikit-learn's
    ``LocalOutlierFactor(novelty=True)``).

    Training rows are cut into ``blocks`` stretches, and each is scored by the rows of the others: in a slow system a
    row resembles its neighbours in time, so leaving out only the row is not enough.

    Contributions divide the score among the sensors in proportion to their mean squared difference to the neighbours.

    Parameters
    ----------
    n_neighbors
        Neighbours of a row (the paper's MinPts), at least 1; all but one of the remembered rows if these are fewer.
    max_rows
        Maximum number of training rows to remember, at least 2.
    blocks
        Stretches of training rows that are held out in turn for the training scores, at least 2; or 0: remembered
        rows get scikit-learn's ``negative_outlier_factor_``, which leaves out only the row itself.

    Notes
    -----
    Equations
        With N(x) the k nearest remembered rows and kdist(o) the distance of o to its k-th neighbour:
        ``reach(x, o) = max(kdist(o), |x - o|)``, ``lrd(x) = 1 / mean over o in N(x) of reach(x, o)``,
        ``LOF(x) = mean over o in N(x) of lrd(o) / lrd(x)``.
    Differences
        The paper rates the rows of one set; here new rows are rated by remembered ones (novelty detection). The paper
        suggests the largest factor over MinPts from 10 to 50; here it is one number of neighbours. Equal rows are
        remembered once, which stands for the paper's k-distinct-distance and keeps lrd finite.
    Defaults
        n_neighbors = 20, scikit-learn's, within the paper's range of 10 to 50. max_rows for cost: 10,000 rows, more
        than SKAB trains on. blocks = 10, chosen on training rows: of the last fifth of SKAB's training rows, 50 % lie
        above the .99 quantile of the other rows' ``negative_outlier_factor_``, and 10 % above that of held-out blocks.

    References
    ----------
    M. M. Breunig, H.-P. Kriegel, R. T. Ng and J. Sander, LOF: identifying density-based local outliers, ACM SIGMOD
    International Conference on Management of Data, 2000.
    """

    traits: ClassVar[Traits] = Traits(
        family="density", memory=0, scoring_parameters=("blocks",), paper="Breunig et al., SIGMOD 2000"
    )

    n_neighbors: Annotated[int, Ge(1), Tune(10, 50, log=True)] = 20
    max_rows: Annotated[int, Ge(2), Cheap(500)] = 10_000
    blocks: Annotated[int, Ge(0), Cheap(5)] = 10

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002
        self._require(self.blocks != 1, "blocks", "0 or at least 2")

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)
        self.n_training_rows_ = sum(recording.n_rows for recording in recordings)
        if self.n_training_rows_ < 2:
            raise DataError("LOF: expected at least 2 training rows, found 1; train on more rows")
        rows, _ = evenly_spaced_rows(recordings, self.max_rows)
        self.memory_ = np.unique(self.standardiser_.z_scores(rows), axis=0)
        self.model_ = self._model(self.memory_)

    def _model(self, distinct: FloatArray) -> LocalOutlierFactor:
        # A single distinct row is its own neighbour: every factor is 1.
        distinct = distinct if len(distinct) > 1 else np.repeat(distinct, 2, axis=0)
        return LocalOutlierFactor(n_neighbors=min(self.n_neighbors, len(distinct) - 1), novelty=True).fit(distinct)

    def _learned(self) -> dict[str, object]:
        return {name: value for name, value in super()._learned().items() if name != "model_"}

    def _restore(self, learned: Mapping[str, object]) -> None:
        super()._restore(learned)
        self.model_ = self._model(self.memory_)

    def _score(self, recording: Recording) -> FloatArray:
        return self._factors(self.model_, recording.values)

    def _factors(self, model: LocalOutlierFactor, values: FloatArray) -> FloatArray:
        """Return the factors of rows [n_rows, n_sensors] that are treated as new, [n_rows]."""
        model = copy.deepcopy(model)  # its tree counts queries, so scoring would change the fitted model
        return -np.asarray(model.score_samples(self.standardiser_.z_scores(values)), dtype=np.float64)

    def _training_scores(self, recordings: tuple[Recording, ...]) -> list[FloatArray]:
        rows = pooled_rows(recordings)
        if len(rows) != self.n_training_rows_:
            raise DataError(
                f"LOF.training_scores: expected the recordings that fit was given, {self.n_training_rows_} rows, "
                f"found {len(rows)}"
            )
        remembered, numbers = evenly_spaced_rows(recordings, self.max_rows)
        z = self.standardiser_.z_scores(remembered)
        if self.blocks == 0:
            scores = self._factors(self.model_, rows)
            _, places = np.unique(z, axis=0, return_inverse=True)
            scores[numbers] = -self.model_.negative_outlier_factor_[places]
        else:
            scores = np.empty(len(rows))
            for block in np.array_split(np.arange(len(rows)), min(self.blocks, len(rows))):
                others = z[(numbers < block[0]) | (numbers > block[-1])]
                scores[block] = self._factors(self._model(np.unique(others, axis=0)), rows[block])
        return np.split(scores, np.cumsum([recording.n_rows for recording in recordings])[:-1])

    def _contributions(self, recording: Recording) -> FloatArray:
        model = copy.deepcopy(self.model_)

        def shares(rows: FloatArray) -> FloatArray:
            z = self.standardiser_.z_scores(rows)
            # A single distinct row is in the model twice.
            neighbours = model.kneighbors(z, return_distance=False) % len(self.memory_)
            squares = ((z[:, None] - self.memory_[neighbours]) ** 2).mean(axis=1)
            total = squares.sum(axis=1, keepdims=True)
            return np.asarray(np.divide(squares, total, out=np.full_like(squares, 1 / z.shape[1]), where=total > 0))

        return by_blocks(shares, recording.values, _ROWS_AT_ONCE) * self._score(recording)[:, None]
