"""`tsadbench check` on what ships and on the classes of PyOD and scikit-learn: they pass, or fail as declared."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.helpers.detectors import load_detector
from tsadbench.base.replay import MIN_CORRELATION
from tsadbench.registry import entries, package_of
from tsadbench.testing import check_detector, normal, with_fault
from tsadbench_detectors.adapters.pyod_classes import CLASSES as PYOD
from tsadbench_detectors.adapters.sklearn import CLASSES as SKLEARN

SHIPPED = [entry.name for entry in entries("detectors") if package_of(entry) == "tsadbench"]
# Checked by `make test` too: a floor, a classical detector and a network. All others take minutes.
QUICK = ("max-z", "t2-q", "vanilla-ae")
KNOWN = {
    f"{library}:{name}": known
    for library, table in (("pyod", PYOD), ("sklearn", SKLEARN))
    for name, known in table.items()
    if not (known.refusal or known.note.startswith("needs the package"))
}
TRAIN = (normal(100, 1), normal(60, 101))
FAULTY, LABELS = with_fault(normal(60, 1002), 30, 45)

# The libraries' own warnings go to the trial's log.
foreign = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in SHIPPED]
)
def test_shipped_detectors_pass_all_checks_except_declared_failures(name: str) -> None:
    """Takes a second per detector, because some checks start boxes; half a minute per network."""
    cls = load_detector(name)
    results = check_detector(cls)
    assert not [result.reason for result in results if result.status == "warn"]
    expected = {result.id for result in results if result.status in ("expected-failure", "not-applicable")}
    assert expected == set(cls(**cls.test_params()).expected_check_failures())


@pytest.mark.long
def test_only_the_replay_audit_detects_that_the_adaptive_variant_never_forgets() -> None:
    adaptive = load_detector("multiview")(adaptive=True)
    results = check_detector(adaptive, expected_failures={"replays": "how a recording begins counts to its end"})
    assert not [result.reason for result in results if result.status == "warn"]
    (replays,) = [result for result in results if result.status == "expected-failure"]
    # The failure is the low correlation, not scores that differ between two calls.
    assert replays.evidence["correlation"] < MIN_CORRELATION


@foreign
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "pyod:KNN" else pytest.mark.long) for name in KNOWN]
)
def test_each_foreign_class_is_honest(name: str) -> None:
    cls, fails = load_detector(name), [check for check, _ in KNOWN[name].fails]
    detector = cls(**cls.test_params())
    scores = detector.fit(TRAIN).score(FAULTY)
    size = 1e-5 * (1 + np.median(np.abs(scores)))
    np.testing.assert_allclose(detector.score(FAULTY.rows(0, 25)), scores[:25], atol=size, err_msg="it looks ahead")
    np.testing.assert_allclose(detector.score(FAULTY.rows(20, 60)), scores[20:], atol=size, err_msg="it looks back")
    np.testing.assert_array_equal(detector.score(FAULTY), scores, err_msg="scoring changes it")
    np.testing.assert_array_equal(cls(**cls.test_params()).fit(TRAIN).score(FAULTY), scores, err_msg="fits differ")
    if "seed" in detector.get_params() and name != "pyod:AnoGAN":
        other = cls(**cls.test_params(), seed=2).fit(TRAIN).score(FAULTY)
        assert np.allclose(other, scores, rtol=1e-5) != detector.declared_traits().stochastic
    if "fault" not in fails:
        assert roc_auc_score(LABELS, scores) > 0.7
    if "training-scores" not in fails:
        assert np.mean(scores[~LABELS] > np.concatenate(detector.training_scores(TRAIN)).max()) < 0.5
    for check in fails:
        (result,) = check_detector(cls, only=[check], on_fail=None)
        assert result.status == "fail", check
