"""Rows in blocks: what comes of them is what comes of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest

from tsadbench.base.detector import Detector
from tsadbench.base.recording import Recording
from tsadbench_detectors.isolation_forest import IsolationForest
from tsadbench_detectors.l2_z import L2Z
from tsadbench_detectors.max_z import MaxZ
from tsadbench_detectors.mset import MSET
from tsadbench_detectors.nearest_neighbour import NearestNeighbour
from tsadbench_detectors.row_blocks import ROWS_AT_ONCE, by_blocks, pooled_blocks, row_blocks
from tsadbench_detectors.sensor_range import SensorRange
from tsadbench_detectors.t2 import T2
from tsadbench_detectors.t2_q import T2Q

VALUES = np.arange(23.0 * 2).reshape(23, 2)
RECORDINGS = [Recording(f"r{i}", values, ("a", "b")) for i, values in enumerate(np.split(VALUES, [1, 12, 13]))]


@pytest.mark.parametrize("at_once", [1, 2, 5, 22, 23, 100])
def test_every_row_once_and_in_order(at_once: int) -> None:
    np.testing.assert_array_equal(np.concatenate(list(row_blocks(RECORDINGS, at_once))), VALUES)
    pooled = list(pooled_blocks(RECORDINGS, at_once))
    np.testing.assert_array_equal(np.concatenate(pooled), VALUES)
    assert [len(block) for block in pooled[:-1]] == [at_once] * (len(pooled) - 1)
    np.testing.assert_array_equal(by_blocks(lambda rows: rows.sum(axis=1), VALUES, at_once), VALUES.sum(axis=1))
    np.testing.assert_array_equal(by_blocks(lambda rows: rows**2, VALUES, at_once), VALUES**2)


@pytest.mark.parametrize(
    "detector",
    [
        MaxZ(),
        L2Z(),
        SensorRange(),
        NearestNeighbour(max_rows=300),
        T2(),
        T2Q(),
        MSET(memory_rows=20),
        IsolationForest(n_estimators=3),
    ],
    ids=lambda detector: type(detector).__name__,
)
@pytest.mark.parametrize("n_sensors", [3, 12])
def test_a_long_recording_scores_as_its_pieces_do(detector: Detector, n_sensors: int) -> None:
    rng = np.random.default_rng(0)
    detector.fit(rng.normal(size=(1000, n_sensors)))
    rows = rng.normal(size=(4 * ROWS_AT_ONCE + 10, n_sensors))
    pieces = np.split(rows, [7, ROWS_AT_ONCE + 1, 3 * ROWS_AT_ONCE])
    # MSET's last bits depend on how many rows are solved for at once, and always did.
    tolerance = 1e-9 if isinstance(detector, MSET) else 0.0
    by_piece = np.concatenate([detector.score(piece) for piece in pieces])
    np.testing.assert_allclose(detector.score(rows), by_piece, rtol=tolerance)
    if detector.offers_contributions():
        by_piece = np.concatenate([detector.contributions(piece) for piece in pieces])
        np.testing.assert_allclose(detector.contributions(rows), by_piece, rtol=tolerance, atol=tolerance)
