"""Isolation forest: how few random cuts separate a row from the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from sklearn.ensemble import IsolationForest as SklearnIsolationForest

from tsadbench.base import Detector, Float32Array, FloatArray, Recording, Space, Traits, Tune
from tsadbench_detectors.row_blocks import by_blocks, row_blocks
from tsadbench_detectors.standardise import Standardiser

# A call costs each tree some 50 microseconds, whatever the number of rows.
_ROWS_AT_ONCE = 32_768


class IsolationForest(Detector):
    """scikit-learn's isolation forest over single rows, by default with its defaults: 100 trees of at most 256 rows.

    The score is the paper's anomaly score in (0, 1], ``2^(-E[path length] / c(rows))``. The forest's own
    threshold (``contamination``) plays no part: thresholds are the protocol's.

    Parameters
    ----------
    n_estimators
        Trees, at least 1.
    max_samples
        Rows from which each tree is grown, at least 1; all of them if there are fewer.
    seed
        Decides the rows and the cuts that the trees draw, at least 0.

    Notes
    -----
    Equations
        ``s(x) = 2^(-E[h(x)] / c(n))``: h is the depth at which a tree isolates the row, n the rows a tree is grown
        from, ``c(n) = 2 H(n - 1) - 2 (n - 1) / n`` with H the harmonic numbers.
    Differences
        None: scikit-learn's forest. The SKAB benchmark sets its threshold by ``contamination=0.0005`` and takes a
        median of 3 rows; thresholds here are the protocol's.
    Defaults
        100 trees of 256 rows are the paper's.

    References
    ----------
    F. T. Liu, K. M. Ting and Z.-H. Zhou, Isolation Forest, IEEE International Conference on Data Mining, 2008.
    """

    traits: ClassVar[Traits] = Traits(
        family="trees", memory=0, stochastic=True, paper="Liu, Ting and Zhou, Isolation Forest, ICDM 2008"
    )

    def __init__(self, *, n_estimators: int = 100, max_samples: int = 256, seed: int = 0) -> None:
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.seed = seed

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:  # noqa: D102
        return {
            "n_estimators": Tune(50, 400, log=True),
            "max_samples": Tune(64, 2048, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"n_estimators": 20}

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002
        self._require(self.n_estimators >= 1, "n_estimators", "at least 1")
        self._require(self.max_samples >= 1, "max_samples", "at least 1")
        self._require(0 <= self.seed < 2**32, "seed", "at least 0 and below 2^32")

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)
        n_rows = sum(recording.n_rows for recording in recordings)
        rows = np.empty((n_rows, recordings[0].n_sensors), dtype=np.float32)
        start = 0
        for block in row_blocks(recordings):
            rows[start : start + len(block)] = self._single(block)
            start += len(block)
        self.forest_ = SklearnIsolationForest(
            n_estimators=self.n_estimators, max_samples=min(self.max_samples, n_rows), random_state=self.seed
        ).fit(rows)

    def _score(self, recording: Recording) -> FloatArray:
        return by_blocks(
            lambda rows: np.asarray(-self.forest_.score_samples(self._single(rows)), dtype=np.float64),
            recording.values,
            at_once=_ROWS_AT_ONCE,
        )

    def _single(self, rows: FloatArray) -> Float32Array:
        """Return the z-scores in single precision, to which scikit-learn's trees would round a copy of them all."""
        return self.standardiser_.z_scores(rows).astype(np.float32)
