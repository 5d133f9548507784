"""PyOD's and scikit-learn's detectors: the same numbers as the library called directly, and no side effects."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import skew
from sklearn.base import clone
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from tests.helpers.detectors import load_detector
from tests.helpers.planted import padded, stretches
from tsadbench.base.recording import Recording
from tsadbench.errors import PluginError, UsageError
from tsadbench.registry import locate_entry, registered_name
from tsadbench.utils.parameters import parameters_of, parse_arguments
from tsadbench_detectors.adapters import tails
from tsadbench_detectors.adapters.foreign import ForeignDetector, Known, made_of, on_cpu
from tsadbench_detectors.adapters.pyod_classes import CLASSES

RNG = np.random.default_rng(0)
SENSORS = ("a", "b", "c")


def recording(name: str, n_rows: int) -> Recording:
    return Recording(name, RNG.normal([5.0, -3.0, 0.0], [1.0, 30.0, 0.1], size=(n_rows, 3)), SENSORS)


TRAIN, TEST = (recording("one", 120), recording("two", 2), recording("three", 80)), recording("test", 40)
SCALER = StandardScaler().fit(np.concatenate([one.values for one in TRAIN]))


def windows(rows: np.ndarray, window: int) -> np.ndarray:
    """Return trailing windows of standardised rows."""
    return stretches(SCALER.transform(rows), window)


def training_windows(window: int) -> np.ndarray:
    return np.concatenate([windows(one.values, window) for one in TRAIN if one.n_rows >= window])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("KNN", {"n_neighbors": 3, "method": "mean"}), ("IForest", {"n_estimators": 15})],
)
def test_scores_and_training_scores_are_pyods(name, arguments):
    window = 4
    cls = load_detector(f"pyod:{name}")
    seeds = ({"seed": 4}, {"random_state": 4}) if name == "IForest" else ({}, {})
    detector = cls(window=window, **arguments, **seeds[0]).fit(TRAIN)
    oracle = cls.foreign(**arguments, **seeds[1]).fit(training_windows(window))
    expected = oracle.decision_function(windows(padded(TEST.values, window - 1), window))
    np.testing.assert_allclose(detector.score(TEST), expected, rtol=1e-9)
    first, second, third = detector.training_scores(TRAIN)
    np.testing.assert_allclose(first[3:], oracle.decision_scores_[:117], rtol=1e-9)
    np.testing.assert_allclose(third[3:], oracle.decision_scores_[117:], rtol=1e-9)
    new = oracle.decision_function(windows(padded(TRAIN[0].values, window - 1), window))
    np.testing.assert_allclose(first[:3], new[:3], rtol=1e-9)
    assert np.isfinite(second).all()


@pytest.mark.parametrize(("name", "window"), [("ECOD", 1), ("COPOD", 3)])
def test_rows_that_pyod_would_measure_against_each_other_are_scored_as_if_alone(name, window):
    cls = load_detector(f"pyod:{name}")
    oracle = cls.foreign().fit(training_windows(window))
    one_by_one = [oracle.decision_function(row[None])[0] for row in windows(TEST.values, window)]
    scores = cls(window=window).fit(TRAIN).score(TEST)[window - 1 :]
    np.testing.assert_allclose(scores, one_by_one, rtol=1e-9)
    assert not np.allclose(scores, oracle.decision_function(windows(TEST.values, window)))


VALUES = st.integers(-3, 3).map(lambda whole: whole / 2)  # few distinct values, so that many tie


# PyOD computes the skewness of constant columns, too.
@pytest.mark.filterwarnings("ignore:Precision loss occurred in moment calculation:RuntimeWarning")
@settings(max_examples=30, deadline=None)
@given(
    train=arrays(np.float64, st.tuples(st.integers(3, 12), st.just(2)), elements=VALUES),
    row=arrays(np.float64, st.just((1, 2)), elements=VALUES),
)
def test_closed_forms_match_pyod_on_a_single_row(train, row):
    company = np.vstack([train, row])
    # If the skewness is 0 up to rounding, its sign is arbitrary.
    if ((abs(skew(company, axis=0)) < 1e-9) & (np.ptp(company, axis=0) > 0)).any():
        return
    for name, closed in (("ECOD", tails.ecod), ("COPOD", tails.copod)):
        expected = load_detector(f"pyod:{name}").foreign().fit(train).decision_function(row)
        np.testing.assert_allclose(closed(train, row), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "arguments", "theirs"),
    [
        ("IsolationForest", {"n_estimators": 15, "seed": 3}, IsolationForest(n_estimators=15, random_state=3)),
        ("OneClassSVM", {"nu": 0.1}, OneClassSVM(nu=0.1)),
        ("EllipticEnvelope", {"seed": 1}, EllipticEnvelope(random_state=1)),
        ("LocalOutlierFactor", {"n_neighbors": 7}, LocalOutlierFactor(n_neighbors=7, novelty=True)),
    ],
)
def test_scores_are_scikit_learns_negated(name, arguments, theirs):
    rows = TRAIN[0].values
    scaler = StandardScaler().fit(rows)
    theirs.fit(scaler.transform(rows))
    detector = load_detector(f"sklearn:{name}")(**arguments).fit(rows)
    expected = -theirs.score_samples(scaler.transform(TEST.values))
    np.testing.assert_allclose(detector.score(TEST.values), expected, rtol=1e-9)
    (training,) = detector.training_scores(rows)
    if name == "LocalOutlierFactor":  # it remembers its rows
        np.testing.assert_allclose(training, -theirs.negative_outlier_factor_, rtol=1e-9)
    else:
        np.testing.assert_array_equal(training, detector.score(rows))


def test_names_and_values():
    cls = load_detector("pyod:KNN")
    assert load_detector("tsadbench_detectors.adapters.pyod:KNN") is cls
    assert registered_name(cls) == "pyod:KNN"
    assert pickle.loads(pickle.dumps(cls(n_neighbors=3))).n_neighbors == 3
    assert {member.name for member in locate_entry("families", "pyod").load("families").members()} == set(CLASSES)
    assert not {one.name for one in parameters_of(cls)} & {"contamination", "n_jobs", "random_state"}
    gmm = load_detector("pyod:GMM")
    assert [gmm(n_components=n).declared_traits().stochastic for n in (1, 3)] == [False, True]
    with pytest.raises(UsageError, match="'KNN'"):
        load_detector("pyod:KNNN")
    with pytest.raises(UsageError, match="CD"):  # it leaks
        load_detector("pyod:CD")
    with pytest.raises(PluginError, match="pyodd"):
        load_detector("pyodd:KNN")
    with pytest.raises(UsageError, match="window"):
        cls(window=0).check(SENSORS)
    with pytest.raises(UsageError, match="'nu'"):
        load_detector("sklearn:OneClassSVM")(nu=2.0).check(SENSORS)


LAYERS = [1]


class Theirs:
    def __init__(
        self, required, k=5, share="auto", layers=None, sizes=LAYERS, on=True, scaler=object, contamination=0.1,
        random_state=None,
    ):  # fmt: skip
        pass


def test_a_constructor_derived_from_another_librarys():
    ours = made_of(Theirs, ForeignDetector, Known(), "theirs", None)
    assert {one.name: (one.annotation, one.default) for one in parameters_of(ours)} == {
        "window": (int, 1),
        "k": (int | float, 5),
        "share": (int | float | str, "auto"),
        "layers": (int | float | str | list[int] | None, None),
        "sizes": (list[int], [1]),
        "on": (bool, True),
        "seed": (int, 0),
    }
    knn = load_detector("pyod:KNN")
    assert clone(knn(n_neighbors=3)).get_params() == knn(n_neighbors=3).get_params()
    texts = {"k": "7", "share": "1.0", "layers": "[8, 4]", "on": "off"}
    found = parse_arguments(ours, texts, "ours")
    assert found == {"k": 7, "share": 1.0, "layers": [8, 4], "on": False}
    assert isinstance(found["share"], float)  # a share of all rows, not one row
    for wrong in ({"k": "x"}, {"on": "7"}, {"contamination": ".1"}, {"scaler": "x"}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            parse_arguments(ours, wrong, "ours")


def test_a_library_finds_no_gpu_and_prints_to_the_log(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with on_cpu():
        print("epoch 1")
        assert not torch.cuda.is_available()
    assert torch.cuda.is_available()
    assert capsys.readouterr() == ("", "epoch 1\n")
