"""Ranks, wins and floors over data sets: by hand, and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest

from tsadbench.analysis.significance.ranking import (
    above_floors,
    critical_difference,
)

NAN, WORST = np.nan, -np.inf


def test_the_best_floor_is_that_of_each_data_set_and_column():
    gains = np.array([[0.5, 0.5], [0.4, 0.6], [0.3, 0.55], [WORST, NAN], [0.4, 0.1]])
    floors = np.array([False, True, True, False, False])
    found = above_floors(gains, floors)
    np.testing.assert_array_equal(found, [[1, 0], [NAN, NAN], [NAN, NAN], [0, NAN], [0, 0]])
    assert np.isnan(above_floors(gains, np.zeros(5, dtype=bool))).all()
    # A floor that failed is beaten by whatever did not.
    np.testing.assert_array_equal(above_floors(np.array([[WORST], [0.1]]), np.array([True, False])), [[NAN], [1]])


@pytest.mark.parametrize(("rows", "datasets", "quantile"), [(2, 12, 1.960), (4, 10, 2.569), (10, 8, 3.164)])
def test_nemenyis_critical_difference_is_demsars(rows, datasets, quantile):
    """Demsar 2006, table 5a."""
    expected = quantile * np.sqrt(rows * (rows + 1) / (6 * datasets))
    assert critical_difference(rows, datasets) == pytest.approx(expected, abs=2e-3)
