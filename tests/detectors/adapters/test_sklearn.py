"""scikit-learn's outlier detectors: the numbers are those of the library called by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from tsadbench.errors import UsageError
from tsadbench.registry import load_detector, load_library

RNG = np.random.default_rng(0)
TRAIN, TEST = (RNG.normal(5.0, [1.0, 30.0, 0.1], size=(n, 3)) for n in (300, 40))
SCALER = StandardScaler().fit(TRAIN)


def test_all_there_are():
    names = {member.name for member in load_library("sklearn").members()}
    assert names == {"EllipticEnvelope", "IsolationForest", "LocalOutlierFactor", "OneClassSVM", "SGDOneClassSVM"}


@pytest.mark.parametrize(
    ("name", "arguments", "theirs"),
    [
        ("IsolationForest", {"n_estimators": 15, "seed": 3}, IsolationForest(n_estimators=15, random_state=3)),
        ("OneClassSVM", {"nu": 0.1}, OneClassSVM(nu=0.1)),
        ("EllipticEnvelope", {"seed": 1}, EllipticEnvelope(random_state=1)),
        ("LocalOutlierFactor", {"n_neighbors": 7}, LocalOutlierFactor(n_neighbors=7, novelty=True)),
    ],
)
def test_scores_are_the_librarys_with_the_sign_turned(name, arguments, theirs):
    theirs.fit(SCALER.transform(TRAIN))
    detector = load_detector(f"sklearn:{name}")(**arguments).fit(TRAIN)
    np.testing.assert_allclose(detector.score(TEST), -theirs.score_samples(SCALER.transform(TEST)), rtol=1e-9)
    (training,) = detector.training_scores(TRAIN)
    if name == "LocalOutlierFactor":
        np.testing.assert_allclose(training, -theirs.negative_outlier_factor_, rtol=1e-9)
        assert not np.allclose(training, -theirs.score_samples(SCALER.transform(TRAIN)))
    else:
        np.testing.assert_allclose(training, -theirs.score_samples(SCALER.transform(TRAIN)), rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("OneClassSVM", {"nu": 2.0}, "'nu' parameter of OneClassSVM must be a float in the range"),
        ("LocalOutlierFactor", {"n_neighbors": 0}, "'n_neighbors' parameter .* must be an int in the range"),
        ("IsolationForest", {"max_samples": 1.5}, "'max_samples' parameter"),
    ],
)
def test_values_out_of_range_are_refused_before_anything_runs(name, arguments, message):
    with pytest.raises(UsageError, match=message):
        load_detector(f"sklearn:{name}")(**arguments).check(("a", "b"))


def test_info_shows_parameters_and_the_nearest_name_is_offered(tsadbench):
    out = tsadbench("info", "sklearn:OneClassSVM").out
    assert "  gamma=scale\n" in out
    assert "  window=1\n" in out
    assert (
        "novelty"
        not in tsadbench("info", "sklearn:LocalOutlierFactor").out.partition("Traits")[0].partition("\nParameters")[2]
    )
    done = tsadbench("info", "sklearn:IsolatonForest")
    assert (done.code, "did you mean 'IsolationForest'" in done.err) == (2, True)
