"""The box and its seal change nothing: scores are equal to the bit to those of the same detector called directly."""

from __future__ import annotations

import pytest
from numpy.testing import assert_array_equal

from tests.helpers.detectors import load_detector
from tests.helpers.plans import make_plan, run_trial
from tests.helpers.sealed import require_seal
from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.registry import entries, locate_entry, package_of
from tsadbench.testing.synthetic import PRIOR, normal
from tsadbench.utils.numerics import limit_threads

SHIPPED = [entry.name for entry in entries("detectors") if package_of(entry) == "tsadbench"]
# They take minutes with any parameters, compile code in each process, or need a package that is not installed.
LEFT_OUT = ("pyod:AnoGAN", "pyod:MO_GAAL", "pyod:HBOS", "pyod:QMCD", "pyod:FeatureBagging", "pyod:SUOD")
ADAPTED = [
    f"{library}:{member.name}"
    for library in ("pyod", "sklearn")
    for member in locate_entry("families", library).load("families").members()
    if not member.refusal
]
# Together they need what NumPy, SciPy, scikit-learn, PyTorch, statsmodels and PyOD read at run time.
QUICK = ("multiview", "dprgm", "arima", "pyod:KNN")


@pytest.mark.filterwarnings("ignore:The default value of `copy`:FutureWarning")  # HDBSCAN's, called directly
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=() if one in QUICK else pytest.mark.long)
        for one in (*SHIPPED, *ADAPTED)
        if one not in LEFT_OUT
    ],
)
def test_sealed_and_direct_scores_are_equal(name):
    require_seal()
    test, splits = normal(300, seed=3, name="test"), {"overall": ("test",)}
    dataset = Dataset("plant", (normal(400, 1, "one"), normal(400, 2, "two")), (test,), splits, prior=PRIOR)
    cls = load_detector(name)
    arguments = cls.test_params()
    text = ",".join(f"{key}={value}" for key, value in arguments.items())
    labelled = LabelledDataset(dataset, Labels({"test": test.values[:, 0] > 11.0}, splits))
    plan = make_plan([f"{name}[{text}]" if text else name], dataset=labelled, seeds=1, floors=False)
    outcome = run_trial(plan.trials[0], plan)
    assert outcome.record.status == "ok", outcome.record.reason
    assert (outcome.record.seal, outcome.record.seal_reason) == ("sealed", "")
    limit_threads(1)
    given = {"seed": 0} if "seed" in cls().get_params(deep=False) else {}
    given |= {"prior": PRIOR} if plan.trials[0].contender.traits.needs_prior else {}
    direct = cls(**{**given, **arguments}).fit(dataset.train)
    assert_array_equal(outcome.scores["test/all/test"], direct.score(test))
    for recording, scores in zip(dataset.train, direct.training_scores(dataset.train), strict=True):
        assert_array_equal(outcome.scores[f"train/all/{recording.id}"], scores)
