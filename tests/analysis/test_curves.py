"""Curves and operating points by hand, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.metrics import average_precision_score, roc_auc_score

from tsadbench.analysis.curves import Curve, FitRows, curve_of, mean_curve, operating_point


def rows(scores, anomalous, threshold: float = 0.5) -> FitRows:
    scores, anomalous = np.array(scores, dtype=float), np.array(anomalous, dtype=bool)
    return FitRows("fit", threshold, scores, anomalous, flagged=scores > threshold)


# By falling score: anomalous, normal, anomalous, normal.
FIRST = rows([0.9, 0.8, 0.7, 0.1], [1, 0, 1, 0])
# normal, anomalous.
SECOND = rows([0.9, 0.2], [0, 1])


def area(curve: Curve) -> float:
    if curve.steps:
        return float(np.sum(np.diff(curve.x) * curve.y[1:]))
    return float(trapezoid(curve.y, curve.x))


def test_the_mean_of_precision_curves_is_of_steps_not_of_lines_between_points():
    mean = mean_curve([curve_of(fit, "precision_recall") for fit in (FIRST, SECOND)])
    np.testing.assert_allclose(mean.heights(np.array([0.5, 0.502, 0.75, 1.0])), [3 / 4, 7 / 12, 7 / 12, 7 / 12])
    # Linear interpolation would claim (1 + 2/3) / 2 at a recall of .75 of the first alone.
    expected = [average_precision_score(fit.anomalous, fit.scores) for fit in (FIRST, SECOND)]
    assert area(mean) == pytest.approx(np.mean(expected), abs=1 / 500)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_areas_are_scikit_learns_with_ties_and_missing_scores(missing, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 9, size=300).astype(float)
    anomalous = rng.random(300) < 0.3
    scores[rng.random(300) < missing] = np.nan
    ranked = np.where(np.isnan(scores), np.where(anomalous, -1.0, 9.0), scores)
    assert area(curve_of(rows(scores, anomalous), "roc")) == pytest.approx(roc_auc_score(anomalous, ranked))
    found = curve_of(rows(scores, anomalous), "precision_recall")
    # Only scikit-learn's lowest threshold flags missing scores; it adds the share of anomalous rows without a score.
    expected = average_precision_score(anomalous, ranked) - np.mean(np.isnan(scores) & anomalous)
    assert area(found) == pytest.approx(expected)
    assert (found.y[-1] == 0.0) == (missing > 0)


def test_the_operating_point_pools_the_rows_of_all_fits():
    point = operating_point([FIRST, SECOND])  # flagged: three and one; of these anomalous: two and none
    assert point == (2 / 3, 2 / 3, 2 / 4)
    assert operating_point([rows([0.1, 0.2], [0, 0])]) == (0.0, None, None)
