"""Stored scores judged after a common trailing mean, against pandas' rolling mean and scikit-learn's metrics."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, matthews_corrcoef, roc_auc_score

from tests.helpers.plans import make_plan
from tests.helpers.records import record
from tests.helpers.stored import stored
from tests.helpers.trials import make_plant
from tsadbench.errors import BrokenTrialWarning
from tsadbench.execution.judging import scored_episodes
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.results.judging import judge_smoothed
from tsadbench_protocols import pot

DISTANCE = "tests.helpers.tiny:Distance"
PROTOCOLS = ("strict", "published", "skab")
ROWS, TRAIN_ROWS = 10, 80


@pytest.fixture(scope="module")
def data():
    return make_plant(460)


@pytest.fixture(scope="module")
def store(tmp_path_factory, data) -> Store:
    made = Store.create(tmp_path_factory.mktemp("made") / "runs")
    for protocol in PROTOCOLS:
        settings = [f"skab.train_rows={TRAIN_ROWS}"] if protocol == "skab" else []
        detectors = [DISTANCE, "all-positive", "random"]
        plan = make_plan(detectors, dataset=data, protocol=protocol, settings=settings, floors=False, seeds=2)
        run_plan(plan, made)
    return made


def of(records, label: str, protocol: str = "strict"):
    return next(one for one in records if (one.label, one.protocol.partition("[")[0]) == (label, protocol))


def pandas_mean(scores: np.ndarray) -> np.ndarray:
    return pd.Series(scores).rolling(ROWS, min_periods=1).mean().to_numpy()


def evaluated(protocol: str, arrays: dict[str, np.ndarray], data) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of smoothed scores and labels of evaluated rows, as the protocols define them, one per ranking."""
    test = {name: pandas_mean(rows) for name, rows in arrays.items() if name.startswith("test/")}
    labels = data.labels.rows
    if protocol == "published":
        (series,) = test.values()
        counted = slice(30, len(series) - 9)
        return [(series[counted], np.concatenate(list(labels.values()))[counted])]
    first, episode = (30, "all") if protocol == "strict" else (TRAIN_ROWS, None)
    rows = {name: test.get(f"test/{episode or name}/{name}") for name in labels}
    pairs = [(scores[first:], labels[name][first:]) for name, scores in rows.items() if scores is not None]
    if protocol == "skab":
        return [(scores, anomalous) for scores, anomalous in pairs if anomalous.any() and not anomalous.all()]
    return [tuple(np.concatenate(parts) for parts in zip(*pairs, strict=True))]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_recordings_scores_are_averaged_and_then_ranked(protocol, store, data):
    plain = of(store.records(), "tests.helpers.tiny:Distance", protocol)
    (found,), left_out = judge_smoothed([plain], store, lambda _: data, ROWS)
    pairs = evaluated(protocol, dict(np.load(stored(store.path, plain.trial).scores)), data)
    metrics = found.splits["overall"].metrics
    assert metrics["auroc"] == pytest.approx(np.mean([roc_auc_score(y, s) for s, y in pairs]), abs=1e-9)
    assert metrics["auprc"] == pytest.approx(np.mean([average_precision_score(y, s) for s, y in pairs]), abs=1e-9)
    assert metrics["auprc"] != plain.splits["overall"].metrics["auprc"]
    assert (found.smoothing, left_out) == (ROWS, {})


def test_the_threshold_comes_from_averaged_training_scores(store, data):
    plain = of(store.records(), "tests.helpers.tiny:Distance")
    (found,), _ = judge_smoothed([plain], store, lambda _: data, ROWS)
    arrays = dict(np.load(stored(store.path, plain.trial).scores))
    training = [pandas_mean(rows)[30:] for name, rows in arrays.items() if name.startswith("train/")]
    expected = pot.fit(np.concatenate(training), level=0.98, q=1e-3).value
    (threshold,) = found.thresholds
    assert threshold.threshold.value == pytest.approx(expected, rel=1e-9)
    assert threshold.threshold.value != plain.thresholds[0].threshold.value
    ((scores, anomalous),) = evaluated("strict", arrays, data)
    mcc = matthews_corrcoef(anomalous, scores > threshold.threshold.value)
    assert found.splits["overall"].metrics["mcc"] == pytest.approx(mcc, abs=1e-9)


def test_a_mean_over_one_row_changes_nothing_and_the_store_is_never_changed(store, data):
    files = {path: path.stat().st_mtime_ns for path in store.path.rglob("*") if path.is_file()}
    records = store.records()
    for rows in (1, 7):
        found, _ = judge_smoothed(records, store, lambda _: data, rows)
        pairs = zip(found, records, strict=True)
        same = [(one.splits, one.thresholds) == (two.splits, two.thresholds) for one, two in pairs]
        fixed = [one.label == "all-positive" for one in found]
        assert same == ([True] * len(records) if rows == 1 else fixed)
    assert {path: path.stat().st_mtime_ns for path in store.path.rglob("*") if path.is_file()} == files


def test_a_row_without_a_score_stays_without_one(data):
    (episode,) = make_plan([DISTANCE], dataset=data, floors=False).episodes
    calibrated = replace(episode, train=episode.train[:1], calibration=episode.train[1:2])
    rng = np.random.default_rng(0)
    given = {}
    for role in ("train", "calibration", "test"):
        for one in getattr(calibrated, role):
            given[f"{role}/all/{one.id}"] = scores = rng.normal(size=one.n_rows)
            scores[:20] = np.nan
            scores[50] = np.nan
    (found,) = scored_episodes(given, [calibrated], 0.5, ROWS)
    assert found.fixed_threshold == 0.5
    for scores, averaged in zip(given.values(), (*found.train, *found.calibration, *found.test), strict=True):
        np.testing.assert_array_equal(np.isnan(averaged), np.isnan(scores))
        assert averaged[20] == scores[20]
        assert averaged[55] == pytest.approx(np.nanmean(scores[46:56]), rel=1e-12)


def test_a_row_with_a_seed_without_scores_is_left_out_and_named(store, data, tmp_path):
    shutil.copytree(store.path, tmp_path / "runs")
    copy = Store.open(tmp_path / "runs")
    gone = of(copy.records(), "random")
    stored(copy.path, gone.trial).scores.unlink()
    with pytest.warns(BrokenTrialWarning, match=gone.trial):
        found, left_out = judge_smoothed(copy.records(), copy, lambda _: data, ROWS)
    assert {one.label for one in found if one.protocol == "strict"} == {DISTANCE, "all-positive"}
    assert [one.label for one in found].count("random") == 2 * (len(PROTOCOLS) - 1)
    assert list(left_out) == ["random (plant, strict)"]


def test_a_trial_that_failed_stays_a_failure(store, data):
    failed = record("x", status="timeout", dataset="plant")
    (found,), left_out = judge_smoothed([failed], store, lambda _: data, ROWS)
    assert (found.status, found.smoothing, left_out) == ("timeout", ROWS, {})


def test_the_command_line(tsadbench, tmp_path):
    store = Store.create(tmp_path / "runs")
    run_plan(make_plan([DISTANCE, "all-positive", "random"], dataset="pumploop", floors=False, seeds=1), store)
    shown = tsadbench("leaderboard", store.path, "--smoothing", 10, "--split", "overall", "--format", "json")
    rows = json.loads(shown.out)["rows"]
    assert (shown.code, {row["smoothing"] for row in rows}, {row["split"] for row in rows}) == (0, {10}, {"overall"})
    table = tsadbench("leaderboard", store.path, "--smoothing", 10, "--diagnostics", "operational").out
    assert re.search(r"smoothed .*\b10 rows", table)
    one = tsadbench("leaderboard", store.path, "--smoothing", 1, "--format", "csv")
    assert one.out == tsadbench("leaderboard", store.path, "--format", "csv").out
    for arguments, name in (
        (("--smoothing", 0), "--smoothing"),
        (("--smoothing", 10, "--write", tmp_path / "tables"), "--write"),
    ):
        wrong = tsadbench("leaderboard", store.path, *arguments)
        assert (wrong.code, wrong.out) == (2, "")
        assert name in wrong.err.splitlines()[-1]
    assert tsadbench("leaderboard", store.path, "--smoothing", "ten").code == 2
    assert not (tmp_path / "tables").exists()
