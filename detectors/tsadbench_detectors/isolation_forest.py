"""Isolation forest: how few random cuts separate a row from the others."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from sklearn.ensemble import IsolationForest as SklearnIsolationForest

from tsadbench.base import Cheap, Detector, Float32Array, FloatArray, Ge, Lt, Recording, Traits, Tune, detector
from tsadbench_detectors.rows import by_blocks
from tsadbench_detectors.standardise import Standardiser

# A call costs each tree some 50 microseconds, whatever the number of rows.
_ROWS_AT_ONCE = 32_768


@detector
class IsolationForest(Detector):
    """scikit-learn's isolation forest over single rows, by default with its defaults: 100 trees of at most 256 rows.

    Parameters
    ----------
    n_estimators
        Trees, at least 1.
    max_samples
        Rows from which each tree is grown, at least 1; all training rows if there are fewer.
    seed
        Seed of the trees' random rows and cuts, at least 0 and below 2^32.

    Notes
    -----
    Equations
        ``s(x) = 2^(-E[h(x)] / c(n))``: h is the depth at which a tree isolates the row, n the rows a tree is grown
        from, ``c(n) = 2 H(n - 1) - 2 (n - 1) / n`` with H the harmonic numbers.
    Differences
        None: scikit-learn's forest. The SKAB benchmark sets its threshold by ``contamination=0.0005`` and takes a
        median of 3 rows.
    Defaults
        100 trees of 256 rows are the paper's.

    References
    ----------
    F. T. Liu, K. M. Ting and Z.-H. Zhou, Isolation Forest, IEEE International Conference on Data Mining, 2008.
    """

    traits: ClassVar[Traits] = Traits(
        family="trees", memory=0, stochastic=True, paper="Liu, Ting and Zhou, Isolation Forest, ICDM 2008"
    )

    n_estimators: Annotated[int, Ge(1), Tune(50, 400, log=True), Cheap(20)] = 100
    max_samples: Annotated[int, Ge(1), Tune(64, 2048, log=True)] = 256
    seed: Annotated[int, Ge(0), Lt(2**32)] = 0

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)
        rows = np.concatenate([self._single(recording.values) for recording in recordings])
        self.forest_ = SklearnIsolationForest(
            n_estimators=self.n_estimators, max_samples=min(self.max_samples, len(rows)), random_state=self.seed
        ).fit(rows)

    def _score(self, recording: Recording) -> FloatArray:
        return by_blocks(
            lambda rows: np.asarray(-self.forest_.score_samples(self._single(rows)), dtype=np.float64),
            recording.values,
            at_once=_ROWS_AT_ONCE,
        )

    def _single(self, rows: FloatArray) -> Float32Array:
        """Return the z-scores in single precision, as scikit-learn's trees take them."""
        return self.standardiser_.z_scores(rows).astype(np.float32)
