"""The protocol `skab`, on small systems worked by hand and on SKAB's own files."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from tests.helpers.protocol_plant import plant, pressure, recording, scores_of, trial
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import DataError, UsageError
from tsadbench_protocols.skab import Skab

NORMAL = (recording("free", 50),)


def small(**anomalous: slice) -> LabelledDataset:
    """Return recordings a and b of 30 rows, and one of 10 rows, too short to train on 10 and test."""
    test = (recording("a", 30, seed=1), recording("b", 30, seed=2), recording("short", 10))
    splits = {"overall": ("a", "b", "short"), "b": ("b",), "short": ("short",)}
    return plant(NORMAL, test, anomalous, splits)


def test_every_file_trains_on_its_beginning_and_is_scored_whole() -> None:
    data = small()
    episodes = list(Skab(train_rows=10).episodes(data.dataset))
    assert [one.id for one in episodes] == ["a", "b"]
    for episode, whole in zip(episodes, data.dataset.test, strict=False):
        assert episode.test == (whole,)
        (train,) = episode.train
        assert train.id == f"{whole.id}[0:10]"
        np.testing.assert_array_equal(train.values, whole.values[:10])


def test_counts_are_pooled_over_files_and_ranking_metrics_are_means_over_them() -> None:
    data = small(a=slice(15, 20), b=slice(25, 30))
    found = trial(Skab(train_rows=10), data, pressure, fixed=0.3)
    rows = {one.id: (one.values[10:, 0], data.labels.rows[one.id][10:]) for one in data.dataset.test[:2]}
    scores, truth = (np.concatenate(parts) for parts in zip(*rows.values(), strict=True))
    flagged = scores > 0.3
    tp, fp = int((flagged & truth).sum()), int((flagged & ~truth).sum())
    overall = found.splits["overall"]
    assert (overall.n_rows, overall.n_anomalous, overall.coverage) == (40, 10, 1.0)
    assert overall.metrics["far"] == pytest.approx(fp / 30)
    assert overall.metrics["mar"] == pytest.approx(1 - tp / 10)
    assert overall.metrics["f1"] == overall.metrics["prac_f1"] == pytest.approx(2 * tp / (2 * tp + fp + 10 - tp))
    for name, reference in (("auroc", roc_auc_score), ("auprc", average_precision_score)):
        assert overall.metrics[name] == pytest.approx(np.mean([reference(y, s) for s, y in rows.values()]))
    assert found.splits["b"].metrics["auroc"] == pytest.approx(roc_auc_score(*reversed(rows["b"])))


def test_each_file_has_its_own_threshold() -> None:
    data = small(a=slice(15, 20), b=slice(25, 30))
    found = trial(Skab(train_rows=10), data, pressure)
    for one, whole in zip(found.thresholds, data.dataset.test, strict=False):
        assert one.episode == whole.id
        assert one.threshold.n == 8  # less the first quarter, rounded down
        assert one.threshold.value == pytest.approx(whole.values[:10, 0].max(), rel=0.5)


def test_a_file_of_one_class_counts_in_the_threshold_metrics_only() -> None:
    data = small(a=slice(15, 20))
    found = trial(Skab(train_rows=10), data, pressure, fixed=0.0)
    of_a = roc_auc_score(data.labels.rows["a"][10:], data.dataset.test[0].values[10:, 0])
    assert found.splits["overall"].metrics["auroc"] == pytest.approx(of_a)
    b = found.splits["b"].metrics
    assert {b["auroc"], b["mar"], b["f1"]} == {None}
    assert b["far"] is not None


def test_anomalous_training_rows_are_reported() -> None:
    found = trial(Skab(train_rows=10), small(a=slice(7, 20)), pressure)
    (note,) = found.notes
    assert re.match(r"a .*\b3 \D*\b10$", note)


def test_dspot_adds_its_note_to_that_on_anomalous_training_rows() -> None:
    data = plant(NORMAL, (recording("a", 200),), {"a": slice(90, 120)})
    found = trial(Skab(train_rows=100, threshold="dspot"), data, pressure)
    assert [re.findall(r"\d+", note) for note in found.notes] == [["60"], ["10", "100"]]


@pytest.mark.parametrize(("n_rows", "first"), [(0, 0), (3, 0), (7, 1), (399, 99), (400, 100), (10_000, 100)])
def test_the_threshold_leaves_out_100_rows_or_a_quarter(n_rows: int, first: int) -> None:
    assert Skab().calibration_rows(n_rows) == slice(first, n_rows)


def test_rows_without_a_score_are_the_worst_case_and_lower_the_coverage() -> None:
    data = small(a=slice(10, 15), b=slice(25, 30))
    judged = []
    for episode in Skab(train_rows=10).episodes(data.dataset):
        scored = scores_of(episode, pressure, fixed=-99.0)
        (scores,) = scored.test
        scores[:15] = np.nan
        judged.append(replace(scored, test=(scores,)))
    overall = Skab(train_rows=10).judge(judged, data.labels).splits["overall"]
    assert overall.coverage == 0.75
    # The threshold is below all scores: all rows are flagged but the five anomalous ones without a score.
    assert overall.metrics["flagged"] == 35 / 40
    assert (overall.metrics["mar"], overall.metrics["far"]) == (0.5, 1.0)


def test_recordings_that_are_all_too_short_are_an_error_that_says_so() -> None:
    with pytest.raises(DataError, match="train_rows"):
        list(Skab().episodes(small().dataset))


def test_labels_of_another_length_are_an_error() -> None:
    data = small()
    other = plant(NORMAL, (recording("a", 31), recording("b", 30)), {}).labels
    with pytest.raises(DataError, match="'a'.* 31"):
        Skab(train_rows=10).judge(
            [scores_of(one, pressure) for one in Skab(train_rows=10).episodes(data.dataset)], other
        )


def test_train_rows_0_is_refused() -> None:
    with pytest.raises(UsageError, match="train_rows"):
        Skab(train_rows=0).check()


@pytest.mark.skab
def test_skabs_rows_and_floor(skab: LabelledDataset) -> None:
    found = trial(Skab(), skab, lambda one: np.ones(one.n_rows), fixed=0.0)
    overall = found.splits["overall"]
    assert (overall.n_rows, overall.n_anomalous) == (23_801, 12_771)
    assert overall.metrics["f1"] == pytest.approx(0.698, abs=5e-4)
    assert len(found.thresholds) == 34
    (note,) = found.notes
    assert re.match(r"other/2 .*\b296 \D*\b400$", note)
