"""PyOD's detectors: the numbers are those of the library called by hand, and nothing of it leaks."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pyod.models.copod import COPOD
from pyod.models.ecod import ECOD
from pyod.models.hbos import HBOS
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from scipy.stats import skew
from sklearn.preprocessing import StandardScaler

from tests.helpers.plans import make_plan
from tsadbench.base.recording import Recording
from tsadbench.errors import DataError, MissingExtraError, PluginError, UsageError
from tsadbench.execution.provenance import adapted_versions, identity
from tsadbench.registry import load_detector, load_library, locate, registered_name
from tsadbench.sandbox import Box, Construction
from tsadbench.sandbox.construction import source_of
from tsadbench.sandbox.describing import describe
from tsadbench.utils.parameters import parameters_of
from tsadbench_detectors.adapters import pyod as adapter
from tsadbench_detectors.adapters import tails
from tsadbench_detectors.adapters.pyod_classes import CLASSES

RNG = np.random.default_rng(0)
SENSORS = ("a", "b", "c")


def recording(name: str, n_rows: int) -> Recording:
    return Recording(name, RNG.normal([5.0, -3.0, 0.0], [1.0, 30.0, 0.1], size=(n_rows, 3)), SENSORS)


TRAIN, TEST = (recording("one", 120), recording("two", 2), recording("three", 80)), recording("test", 40)
SCALER = StandardScaler().fit(np.concatenate([one.values for one in TRAIN]))


def windows(one: Recording, window: int) -> np.ndarray:
    """Return trailing windows, written the long way: rows one after another, oldest first."""
    rows = SCALER.transform(one.values)
    found = [np.concatenate([rows[i + k] for k in range(window)]) for i in range(len(rows) - window + 1)]
    return np.array(found).reshape(len(found), window * 3)


def padded(one: Recording, window: int) -> Recording:
    """Return the recording after so many copies of its first row that every row of it has a window."""
    return Recording(one.id, np.vstack([one.values[:1]] * (window - 1) + [one.values]), SENSORS)


@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize(
    ("name", "arguments", "theirs"),
    [
        ("KNN", {"n_neighbors": 3, "method": "mean"}, lambda: KNN(n_neighbors=3, method="mean")),
        ("HBOS", {"n_bins": 7}, lambda: HBOS(n_bins=7)),
        ("IForest", {"n_estimators": 15, "seed": 4}, lambda: IForest(n_estimators=15, random_state=4)),
    ],
)
def test_scores_and_training_scores_are_the_librarys(name, arguments, theirs, window):
    detector = load_detector(f"pyod:{name}")(window=window, **arguments).fit(TRAIN)
    oracle = theirs().fit(np.concatenate([windows(one, window) for one in TRAIN if one.n_rows >= window]))
    scores = detector.score(TEST)
    np.testing.assert_allclose(scores, oracle.decision_function(windows(padded(TEST, window), window)), rtol=1e-9)
    first, second, third = detector.training_scores(TRAIN)
    n_first, n_second = 120 - window + 1, max(0, 2 - window + 1)
    np.testing.assert_allclose(first[window - 1 :], oracle.decision_scores_[:n_first], rtol=1e-9)
    np.testing.assert_allclose(third[window - 1 :], oracle.decision_scores_[n_first + n_second :], rtol=1e-9)
    new = oracle.decision_function(windows(padded(TRAIN[0], window), window))
    np.testing.assert_allclose(first[: window - 1], new[: window - 1], rtol=1e-9)
    assert np.isfinite(second).all()
    assert detector.declared_traits().memory == window - 1


def test_training_scores_are_not_those_of_new_rows_where_the_library_remembers_its_rows():
    detector = load_detector("pyod:KNN")().fit(TRAIN)
    assert detector.training_scores(TRAIN)[0].mean() > detector.score(TRAIN[0]).mean()


def test_training_scores_of_other_recordings_are_refused():
    detector = load_detector("pyod:KNN")().fit(TRAIN)
    with pytest.raises(DataError, match="202 windows, found 40"):
        detector.training_scores([TEST])


@pytest.mark.parametrize("theirs", [ECOD, COPOD])
@pytest.mark.parametrize("window", [1, 3])
def test_rows_that_the_library_would_measure_against_each_other_are_scored_as_if_alone(theirs, window):
    oracle = theirs().fit(np.concatenate([windows(one, window) for one in TRAIN if one.n_rows >= window]))
    one_by_one = [oracle.decision_function(row[None])[0] for row in windows(TEST, window)]
    together = oracle.decision_function(windows(TEST, window))
    detector = load_detector(f"pyod:{theirs.__name__}")(window=window).fit(TRAIN)
    scores = detector.score(TEST)[window - 1 :]
    np.testing.assert_allclose(scores, one_by_one, rtol=1e-9)
    assert not np.allclose(scores, together)
    np.testing.assert_allclose(
        detector.training_scores(TRAIN)[0][window - 1 :], oracle.decision_scores_[: 121 - window]
    )


VALUES = st.integers(-3, 3).map(lambda whole: whole / 2)  # few different ones: ties


# PyOD computes the skewness of constant columns, too.
@pytest.mark.filterwarnings("ignore:Precision loss occurred in moment calculation:RuntimeWarning")
@settings(max_examples=60, deadline=None)
@given(
    train=arrays(np.float64, st.tuples(st.integers(3, 12), st.just(2)), elements=VALUES),
    rows=arrays(np.float64, st.tuples(st.integers(1, 4), st.just(2)), elements=VALUES),
)
def test_alone_a_row_gets_what_pyod_gives_it_alone(train, rows):
    for theirs, closed in ((ECOD, tails.ecod), (COPOD, tails.copod)):
        company = [np.vstack([train, row]) for row in rows]
        # Where the skewness is 0 but for rounding, its sign is nobody's.
        if any(((abs(skew(one, axis=0)) < 1e-9) & (np.ptp(one, axis=0) > 0)).any() for one in company):
            continue
        model = theirs().fit(train)
        expected = [model.decision_function(row[None])[0] for row in rows]
        np.testing.assert_allclose(closed(train, rows), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["KNN", "HBOS", "IForest", "OCSVM", "GMM", "KDE"])
def test_higher_is_more_anomalous(name):
    far = TEST.values.copy()
    far[20:] += [8.0, 240.0, 0.8]
    scores = load_detector(f"pyod:{name}")().fit(TRAIN).score(Recording("far", far, SENSORS))
    assert scores[20:].min() > scores[:20].max()


def test_a_sensor_that_is_constant_in_training_has_the_scale_1():
    still = np.column_stack([RNG.normal(size=50), np.full(50, 7.0)])
    detector = load_detector("pyod:KNN")().fit(still)
    oracle = KNN().fit(np.column_stack([StandardScaler().fit_transform(still[:, :1]), np.zeros(50)]))
    moved = np.array([[still[:, 0].mean(), 9.5]])
    assert detector.score(moved) == pytest.approx(oracle.decision_function(np.array([[0.0, 2.5]])))


def test_a_recording_shorter_than_the_window_is_scored():
    detector = load_detector("pyod:KNN")(window=5).fit(TRAIN)
    np.testing.assert_allclose(detector.score(TEST.rows(0, 4)), detector.score(TEST)[:4], rtol=1e-9)
    with pytest.raises(DataError, match="at least 2 windows of 5 rows, found 1"):
        load_detector("pyod:KNN")(window=5).fit([recording("short", 5)])


@pytest.mark.parametrize("name", ["KNN", "LOF", "IForest", "OCSVM", "GMM", "CBLOF", "HBOS", "MCD", "LODA"])
def test_the_contamination_rate_would_not_move_the_ranking(name):
    foreign = load_detector(f"pyod:{name}").foreign
    seeded = {"random_state": 0} if "random_state" in foreign().get_params() else {}
    rows, test = windows(TRAIN[0], 1), windows(TEST, 1)
    few, many = (foreign(contamination=rate, **seeded).fit(rows).decision_function(test) for rate in (0.01, 0.4))
    assert (np.argsort(few) == np.argsort(many)).all()


def test_the_library_is_not_told_of_labels_and_thresholds():
    detector = load_detector("pyod:KNN")
    offered = {parameter.name for parameter in parameters_of(detector)}
    assert not offered & {"contamination", "n_jobs", "random_state", "metric_params"}
    assert offered >= {"window", "n_neighbors", "method", "radius"}


def test_chance_is_declared_where_there_is_some():
    def stochastic(name, **arguments):
        return load_detector(f"pyod:{name}")(**arguments).declared_traits().stochastic

    assert stochastic("IForest")
    assert not stochastic("KNN")
    assert not stochastic("GMM")
    assert stochastic("GMM", n_components=3)


# How other processes find it.


def test_a_name_and_a_reference_give_the_same_class():
    cls = load_detector("pyod:KNN")
    assert load_detector("tsadbench_detectors.adapters.pyod:KNN") is cls
    assert registered_name(cls) == "pyod:KNN"
    assert pickle.loads(pickle.dumps(cls(n_neighbors=3))).n_neighbors == 3
    assert not hasattr(adapter, "CD")  # one that cannot be run


@pytest.mark.parametrize("source", [locate("pyod:KNN"), source_of(load_detector("pyod:KNN"))])
def test_it_can_be_constructed_elsewhere(source):
    data = Construction(source, {"n_neighbors": "3"}).dumps()
    code = """
import sys
from pathlib import Path
from tsadbench.sandbox import Construction
print(Construction.loads(sys.stdin.buffer.read()).construct())
"""
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "KNN(n_neighbors=3)"


def test_in_the_box_it_scores_as_outside_it():
    construction = Construction.of(load_detector("pyod:KNN"), {"window": 3})
    with Box(construction, threads=1) as box:
        box.fit(TRAIN)
        found = box.score(TEST)
        training = box.training_scores()
    outside = load_detector("pyod:KNN")(window=3).fit(TRAIN)
    np.testing.assert_array_equal(found, outside.score(TEST))
    for there, here in zip(training, outside.training_scores(TRAIN), strict=True):
        np.testing.assert_array_equal(there, here)


def test_the_librarys_version_is_part_of_a_trials_identity(small_data, monkeypatch):
    plan = make_plan(["pyod:KNN", "t2"], dataset=small_data, floors=False)
    before = [identity(trial, plan) for trial in plan.trials]
    assert set(adapted_versions(describe("pyod:KNN").libraries)) == {"pyod", "numba"}
    monkeypatch.setattr(
        "tsadbench.execution.provenance.adapted_versions", lambda libraries, *_: dict.fromkeys(libraries, "0")
    )
    after = [identity(trial, plan) for trial in plan.trials]
    assert (before[0] != after[0], before[1] == after[1]) == (True, True)
    assert describe("t2").libraries == ()


# What a user sees.


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("pyod:KNNN", UsageError, "family 'pyod' has no detector 'KNNN'; did you mean 'KNN'"),
        ("pyod:CD", UsageError, "pyod:CD cannot be run: .*Cook"),
        ("pyod:BaseDetector", UsageError, "has no detector 'BaseDetector'"),
        ("pyodd:KNN", PluginError, "No module named 'pyodd'"),
    ],
)
def test_wrong_names_are_refused(name, error, message):
    with pytest.raises(error, match=message):
        load_detector(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": 0}, "window must be an integer of at least 1, found 0"),
        ({"seed": -1}, "seed must be an integer from 0 to below 2\\^32, found -1"),
    ],
)
def test_values_out_of_range_are_refused_before_anything_runs(arguments, message):
    with pytest.raises(UsageError, match=message):
        load_detector("pyod:IForest")(**arguments).check(SENSORS)


def test_the_table_has_every_class_of_the_installed_library():
    names = {member.name for member in load_library("pyod").members()}
    assert names == set(CLASSES)
    assert sum(not known.refusal and not known.fails for known in CLASSES.values()) >= 20


def test_a_package_that_only_one_class_needs_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "pyod.models.lunar", raising=False)
    family = type(adapter.family)(
        "pyod", description="", package="pyod.models", bases=adapter.family.bases, adapter=adapter.PyODDetector,
        known={},
    )  # fmt: skip
    with pytest.raises(MissingExtraError, match=r"pyod:LUNAR needs .*pip install 'tsadbench\[deep\]'"):
        family.load("LUNAR")
    with pytest.raises(PluginError, match="pyod:XGBOD needs the package 'xgboost', which is not installed: run  pip"):
        family.load("XGBOD")


@pytest.mark.parametrize("arguments", [["info", "pyod:KNN"], ["list", "--family", "pyod"]], ids=lambda one: one[0])
def test_without_the_library_one_line_names_the_command(arguments, tmp_path):
    """In processes, the boxes' among them, that can import no PyOD."""
    (tmp_path / "pyod").mkdir()
    (tmp_path / "pyod" / "__init__.py").write_text("raise ModuleNotFoundError('No module named pyod', name='pyod')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "tsadbench", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "tsadbench: the family 'pyod' needs packages that are not installed: run  pip install 'tsadbench[pyod]'"
    ]


def test_a_run_with_brackets_and_settings(tsadbench, small_data, tmp_path, monkeypatch):
    monkeypatch.setattr("tsadbench.execution.plan.load_dataset", lambda name: lambda options: small_data)
    done = tsadbench(
        "run", "-d", "pyod:KNN", "-d", "pyod:KNN[n_neighbors=10,window=5]", "--set", "pyod:KNN.method=mean",
        "--no-floors", "--format", "json", "--split", "overall", "--out", tmp_path / "runs",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = {row["label"]: row for row in json.loads(done.out)["rows"]}
    assert set(rows) == {"pyod:KNN[method=mean]", "pyod:KNN[method=mean,n_neighbors=10,window=5]"}
    assert {row["family"] for row in rows.values()} == {"pyod"}
    assert all(row["metrics"]["auroc"]["mean"] > 0.9 for row in rows.values())
    (record, *_) = sorted((tmp_path / "runs").glob("*/record.json"))
    assert set(json.loads(record.read_text())["manifest"]["adapted"]) == {"pyod", "numba"}


def test_what_a_class_is_not_stands_below_the_table(tsadbench, small_data, tmp_path, monkeypatch):
    monkeypatch.setattr("tsadbench.execution.plan.load_dataset", lambda name: lambda options: small_data)
    done = tsadbench("run", "-d", "pyod:PCA", "--no-floors", "--split", "overall", "--out", tmp_path / "runs")
    assert done.code == 0, done.err
    assert "small: pyod:PCA: not the published method" in done.out
    listed = tsadbench("info", "pyod:PCA").out
    assert "not the published method" in listed


def test_the_documentation_has_the_whole_table():
    text = (Path(__file__).parents[3] / "docs" / "adapters.md").read_text(encoding="utf-8")
    for name, known in CLASSES.items():
        said = known.refusal or known.summary
        assert (f"| `pyod:{name}` | {said} |" if said else f"`{name}`") in text
