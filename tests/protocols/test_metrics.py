"""Point-wise metrics, against scikit-learn and tables worked by hand."""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench_protocols.metrics import METRICS, evaluate, events, ranking

EVENTS = ("events_at_1", "events_at_01")
RANKING = ("auroc", "auprc", "bf_f1", *EVENTS)


def labels(*rows: int) -> BoolArray:
    return np.array(rows, dtype=np.bool_)


def best_f1_by_trying(scores: FloatArray, anomalous: BoolArray) -> float:
    return max(float(sklearn_metrics.f1_score(anomalous, scores >= cut)) for cut in np.unique(scores))


def events_by_trying(scores: FloatArray, anomalous: BoolArray, share: float) -> float:
    """Return the share of events found by the lowest threshold that flags at most this share of the normal rows."""
    runs = [list(rows) for label, rows in groupby(range(len(scores)), anomalous.__getitem__) if label]
    cut = min(cut for cut in scores if np.mean(scores[~anomalous] > cut) <= share)
    return float(np.mean([scores[run].max() > cut for run in runs]))


@st.composite
def tied_rows(draw: st.DrawFn) -> tuple[FloatArray, BoolArray, float]:
    n = draw(st.integers(2, 60))
    scores = draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))
    anomalous = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda rows: 0 < sum(rows) < len(rows)))
    return np.array(scores) / 4, np.array(anomalous), draw(st.integers(-5, 5)) / 4


@settings(deadline=None, max_examples=50)
@given(tied_rows())
def test_every_metric_matches_scikit_learn_on_ties(rows: tuple[FloatArray, BoolArray, float]) -> None:
    scores, anomalous, threshold = rows
    flagged = scores > threshold
    found = evaluate(scores, anomalous, threshold)
    assert found == pytest.approx(
        {
            "precision": sklearn_metrics.precision_score(anomalous, flagged, zero_division=0),
            "recall": sklearn_metrics.recall_score(anomalous, flagged),
            "prac_f1": sklearn_metrics.f1_score(anomalous, flagged),
            "mcc": sklearn_metrics.matthews_corrcoef(anomalous, flagged),
            "auroc": sklearn_metrics.roc_auc_score(anomalous, scores),
            "auprc": sklearn_metrics.average_precision_score(anomalous, scores),
            "bf_f1": best_f1_by_trying(scores, anomalous),
            "flagged": flagged.mean(),
            "events_at_1": events_by_trying(scores, anomalous, 0.01),
            "events_at_01": events_by_trying(scores, anomalous, 0.001),
            "auprc_mean10": None,  # no means are given
        }
    )


def test_a_table_worked_by_hand() -> None:
    # Ranked: 1 1 0 (1 0 tied) 0 0 0; flagged are the first three.
    scores = np.array([0.9, 0.8, 0.7, 0.4, 0.4, 0.3, 0.2, 0.1])
    found = evaluate(scores, labels(1, 1, 0, 1, 0, 0, 0, 0), 0.5)
    assert found == pytest.approx(
        {
            "precision": 2 / 3,
            "recall": 2 / 3,
            "prac_f1": 2 / 3,
            "mcc": (2 * 4 - 1 * 1) / 15,  # margins 3, 3, 5, 5
            "auroc": (5 + 5 + 3.5) / 15,  # the third anomaly beats three and ties with one
            "auprc": (1 + 1 + 3 / 5) / 3,
            "bf_f1": 4 / 5,  # the first two rows
            "flagged": 3 / 8,
            **{"events_at_1": 1 / 2, "events_at_01": 1 / 2},  # the first two rows, above .7
            "auprc_mean10": None,
        }
    )


def test_events_found_at_one_and_at_a_tenth_of_a_percent() -> None:
    # Of 2,000 normal rows with the scores 0 to 1999, 20 lie above 1979 and two above 1997.
    normal = np.arange(2000.0)
    scores = np.concatenate([normal[:1000], [1979.5, 5.0], normal[1000:], [1997.5], [1979.0]])
    anomalous = labels(*[0] * 1000, 1, 1, *[0] * 1000, 1, 1)
    assert events(scores, anomalous) == {"events_at_1": 1.0, "events_at_01": 1 / 2}
    # The last event begins where another recording does.
    assert events(scores, anomalous, [2003, 1]) == {"events_at_1": 2 / 3, "events_at_01": 1 / 3}


def test_names_are_in_the_published_order_and_say_what_tables_need() -> None:
    names = ["precision", "recall", "prac_f1", "mcc", "auroc", "auprc", "bf_f1", "flagged", *EVENTS, "auprc_mean10"]
    assert [metric.name for metric in METRICS] == names
    assert list(evaluate(np.array([1.0, 0.0]), labels(1, 0), 0.5)) == names
    assert [metric.name for metric in METRICS if metric.oracle] == ["bf_f1", *EVENTS]
    assert [metric.name for metric in METRICS if metric.better is None] == ["flagged"]


def test_float32_and_float64_copies_of_the_scores_are_judged_alike() -> None:
    rng = np.random.default_rng(0)
    single = rng.normal(size=5000).round(2).astype(np.float32)
    anomalous = rng.random(5000) < 0.2
    threshold = float(np.float64(0.1))  # lies between 0.1 and its single precision copy
    double = single.astype(np.float64)
    found = evaluate(single, anomalous, threshold)
    assert found == evaluate(double, anomalous, threshold)
    assert found["flagged"] == np.mean(double > threshold)


def test_mcc_does_not_overflow() -> None:
    n = 20_000  # the product of the margins passes 2**63 at some 10^5 rows
    scores = np.repeat([1.0, 1.0, 0.0, 0.0], [3 * n, n, 2 * n, 5 * n])
    anomalous = np.repeat([True, False, True, False], [3 * n, n, 2 * n, 5 * n])
    found = evaluate(scores, anomalous, 0.5)
    assert found["mcc"] == pytest.approx((3 * 5 - 1 * 2) / math.sqrt(4 * 5 * 6 * 7), rel=1e-12)


@pytest.mark.parametrize("threshold", [0.5, 9.0])
def test_without_anomalous_rows_only_false_alarms_are_defined(threshold: float) -> None:
    found = evaluate(np.array([0.0, 1.0, 2.0, 0.2]), labels(0, 0, 0, 0), threshold)
    undefined = {name for name, value in found.items() if value is None}
    assert undefined == {"recall", "prac_f1", "mcc", *RANKING, "auprc_mean10"}
    assert found["precision"] == 0.0
    assert found["flagged"] == (0.5 if threshold == 0.5 else 0.0)


def test_a_row_without_a_score_is_the_worst_case_by_hand() -> None:
    # Ranked: the normal row without a score, 1 0 0, and below them the anomalous row without a score.
    scores = np.array([math.nan, -5.0, 3.0, math.nan, -6.0])
    found = evaluate(scores, labels(0, 0, 1, 1, 0), -4.0)
    assert found == pytest.approx(
        {
            "precision": 1 / 2,
            "recall": 1 / 2,
            "prac_f1": 1 / 2,
            "mcc": (1 * 2 - 1 * 1) / 6,  # margins 2, 2, 3, 3
            "auroc": 2 / 6,  # one anomaly beats two of three, the other none
            "auprc": (1 / 2 + 0) / 2,
            "bf_f1": 2 / 4,
            "flagged": 2 / 5,
            **{"events_at_1": 0.0, "events_at_01": 0.0, "auprc_mean10": None},
        }
    )


@settings(deadline=None)
@given(tied_rows(), st.data())
def test_with_missing_scores_the_ranking_is_scikit_learns_on_the_worst_scores(rows, data: st.DataObject) -> None:
    scores, anomalous, _ = rows
    missing = np.array(data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))))
    found = ranking(np.where(missing, math.nan, scores), anomalous)
    worst = np.where(missing, np.where(anomalous, -99.0, 99.0), scores)
    assert found["auroc"] == pytest.approx(sklearn_metrics.roc_auc_score(anomalous, worst))
    # No threshold flags a row without a score, so scikit-learn's lowest one, which flags all rows, does not count.
    precision, recall, _ = sklearn_metrics.precision_recall_curve(anomalous, worst)
    first = int((missing & anomalous).any())
    steps = recall[first:-1] - recall[first + 1 :]
    assert found["auprc"] == pytest.approx(float(steps @ precision[first:-1]))
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    assert found["bf_f1"] == pytest.approx(f1[first:].max())


def test_no_scores_at_all_give_the_worst_metrics() -> None:
    found = evaluate(np.full(4, math.nan), labels(0, 0, 0, 1), 0.0)
    assert (found["auroc"], found["auprc"], found["bf_f1"], found["flagged"]) == (0.0, 0.0, 0.0, 0.75)


def test_without_a_row_nothing_is_defined() -> None:
    assert evaluate(np.empty(0), labels(), 0.0) == dict.fromkeys(metric.name for metric in METRICS)
