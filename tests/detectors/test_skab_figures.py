"""Acceptance tests: known figures on SKAB's own files, computed without the package's protocols."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve, roc_auc_score

from tests.helpers.detectors import load_detector
from tsadbench.base import LabelledDataset
from tsadbench.base.detector import Detector
from tsadbench.base.recording import Recording

pytestmark = pytest.mark.skab

# Hotelling's limit for a new row: 8 sensors, 400 training rows, 99.9 %.
T2_LIMIT = 8 * 399 * 401 / (400 * 392) * stats.f.ppf(0.999, 8, 392)


@pytest.mark.parametrize(
    ("name", "parameters", "threshold", "figures"),
    [
        ("t2", {"smoothing": 5}, T2_LIMIT, (0.758, 38.79, 18.55)),
        ("t2", {"smoothing": 5}, 2 * T2_LIMIT, (0.660, 19.20, 42.60)),
        ("t2-q", {"smoothing": 5}, 1.0, (0.749, 36.60, 21.20)),
        ("mset", {"memory_rows": 400, "ridge": 1e-12, "residual": "raw"}, 0.01, (0.780, 39.73, 14.13)),
    ],
)
def test_f1_and_alarms_with_one_model_a_file(
    skab: LabelledDataset,
    name: str,
    parameters: dict[str, object],
    threshold: float,
    figures: tuple[float, float, float],
) -> None:
    """Train on the first 400 rows of each file, flag the others, pool the counts: the SKAB leaderboard.

    As in its notebooks, MSET's scores are centred means of 60 rows; the first 4 rows scored by the others, which the
    median of 5 does not cover, are not flagged.
    """
    flagged, truth = [], []
    for recording in skab.dataset.test:
        detector = load_detector(name)(**parameters).fit(recording.rows(0, 400))
        scores = detector.score(recording.rows(400, recording.n_rows))
        if name == "mset":
            scores = pd.Series(scores).rolling(60, center=True, min_periods=1).mean().to_numpy()
        first = 0 if name == "mset" else 4
        flagged.append((scores > threshold) & (np.arange(len(scores)) >= first))
        truth.append(skab.labels.rows[recording.id][400:])
    flags, anomalies = np.concatenate(flagged), np.concatenate(truth)
    assert (len(anomalies), anomalies.sum()) == (23_801, 12_771)
    found = f1_score(anomalies, flags), 100 * flags[~anomalies].mean(), 100 * (~flags[anomalies]).mean()
    assert (round(found[0], 3), round(found[1], 2), round(found[2], 2)) == figures


def published(skab: LabelledDataset, detector: Detector) -> tuple[float, float, float]:
    """Score all files as one recording; return AUROC, average precision and best F1 over rows 30 to n - 10."""
    detector.fit(skab.dataset.train)
    values = np.concatenate([recording.values for recording in skab.dataset.test])
    evaluated = slice(30, len(values) - 9)
    truth = np.concatenate(list(skab.labels.rows.values()))[evaluated]
    scores = detector.score(Recording("files", values, skab.dataset.sensors))[evaluated]
    assert len(truth) == 37_362
    precision, recall, _ = precision_recall_curve(truth, scores)
    best = float((2 * precision * recall / np.maximum(precision + recall, 1e-12)).max())
    return float(roc_auc_score(truth, scores)), float(average_precision_score(truth, scores)), best


@pytest.mark.parametrize(
    ("name", "figures", "within"),
    [
        ("all-positive", (0.500, 0.350, 0.518), 0.0005),
        ("nearest-neighbour", (0.679, 0.639, 0.550), 0.0005),
        # Computed with scikit-learn's StandardScaler alone; the paper's best detector has 0.726, 0.717, 0.606.
        ("max-z", (0.756, 0.753, 0.720), 0.0005),
        ("l2-z", (0.677, 0.636, 0.550), 0.0005),
        ("sensor-range", (0.759, 0.754, 0.720), 0.0005),
        ("random", (0.5, 0.350, 0.518), 0.01),
        ("isolation-forest", (0.510, 0.350, 0.532), 0.01),
    ],
)
def test_figures_of_the_published_protocol(
    skab: LabelledDataset, name: str, figures: tuple[float, float, float], within: float
) -> None:
    assert published(skab, load_detector(name)()) == pytest.approx(figures, abs=within)


@pytest.mark.long  # 20 s: 20 epochs
def test_dpr_gm_has_the_papers_figures_under_the_published_protocol(skab: LabelledDataset) -> None:
    auroc, auprc, _ = published(skab, load_detector("dprgm")(prior=skab.dataset.prior))
    # The paper's means over five seeds are .7256 and .7165; one seed scatters around them by .006 and .009.
    assert auroc == pytest.approx(0.728, abs=0.03)
    assert auprc == pytest.approx(0.719, abs=0.045)
