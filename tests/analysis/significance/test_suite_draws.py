"""The best floor of each data set, and Nemenyi's critical difference."""

from __future__ import annotations

import numpy as np
import pytest

from tsadbench.analysis.significance.ranking import (
    above_floors,
    critical_difference,
)

NAN, WORST = np.nan, -np.inf


def test_rows_are_compared_with_the_best_floor_of_each_column():
    gains = np.array([[0.5, 0.5], [0.4, 0.6], [0.3, 0.55], [WORST, NAN], [0.4, 0.1]])
    floors = np.array([False, True, True, False, False])
    found = above_floors(gains, floors)
    np.testing.assert_array_equal(found, [[1, 0], [NAN, NAN], [NAN, NAN], [0, NAN], [0, 0]])
    assert np.isnan(above_floors(gains, np.zeros(5, dtype=bool))).all()
    # Any row that did not fail beats a floor that did.
    np.testing.assert_array_equal(above_floors(np.array([[WORST], [0.1]]), np.array([True, False])), [[NAN], [1]])


@pytest.mark.parametrize(("rows", "datasets", "quantile"), [(2, 12, 1.960), (4, 10, 2.569), (10, 8, 3.164)])
def test_nemenyis_critical_difference_is_demsars(rows, datasets, quantile):
    """Quantiles from Demsar 2006, table 5a."""
    expected = quantile * np.sqrt(rows * (rows + 1) / (6 * datasets))
    assert critical_difference(rows, datasets) == pytest.approx(expected, abs=2e-3)
