"""The box and its seal change nothing: scores are equal to the bit to those of the same detector called directly."""

from __future__ import annotations

import shutil

import pytest
from numpy.testing import assert_array_equal

from tests.helpers import wrapped
from tests.helpers.plans import make_plan, run_trial
from tests.helpers.sealed import require_seal
from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.registry import entries, load_detector, locate_entry, package_of
from tsadbench.testing.synthetic import PRIOR, normal
from tsadbench.utils.numerics import limit_threads

SHIPPED = [entry.name for entry in entries("detectors") if package_of(entry) == "tsadbench"]
# They take minutes however they are set, compile themselves anew in each process, or need a package that we have not.
LEFT_OUT = ("pyod:AnoGAN", "pyod:MO_GAAL", "pyod:HBOS", "pyod:QMCD", "pyod:FeatureBagging", "pyod:SUOD")
ADAPTED = [
    name
    for library in ("pyod", "sklearn")
    for name in (
        f"{library}:{member.name}"
        for member in locate_entry("families", library).load("families").members()
        if not member.refusal
    )
    if name not in LEFT_OUT
]
WRAPPED = [f"{wrapped.__file__}:{cls.__name__}" for cls in wrapped.ALL]
QUICK = ("multiview", "dprgm", "pyod:KNN", WRAPPED[0])


@pytest.fixture(scope="module")
def plant() -> LabelledDataset:
    test = normal(300, seed=3, name="test")
    splits = {"overall": ("test",)}
    dataset = Dataset("plant", (normal(400, 1, "one"), normal(400, 2, "two")), (test,), splits, prior=PRIOR)
    return LabelledDataset(dataset, Labels({"test": test.values[:, 0] > 11.0}, splits))


@pytest.fixture(scope="module", autouse=True)
def sealed() -> None:
    require_seal()


@pytest.mark.filterwarnings("ignore:The default value of `copy`:FutureWarning")  # HDBSCAN's, called directly
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.long) for one in (*SHIPPED, *ADAPTED, *WRAPPED)],
    ids=lambda name: name.rpartition("/")[2],
)
def test_sealed_and_direct_scores_are_equal(plant, name, tmp_path):
    if name in WRAPPED:  # a copy: code that this process has imported is not sealed
        file, _, class_name = name.rpartition(":")
        cls, name = getattr(wrapped, class_name), f"{shutil.copy(file, tmp_path)}:{class_name}"
    else:
        cls = load_detector(name)
    arguments = cls.test_params()
    text = ",".join(f"{key}={value}" for key, value in arguments.items())
    plan = make_plan([f"{name}[{text}]" if text else name], dataset=plant, seeds=1, floors=False)
    outcome = run_trial(plan.trials[0], plan)
    assert outcome.record.status == "ok", outcome.record.reason
    assert (outcome.record.seal, outcome.record.seal_reason) == ("sealed", "")
    limit_threads(1)
    declared = cls().get_params(deep=False)
    given = {"seed": 0} if "seed" in declared else {}
    given |= {"prior": PRIOR} if plan.trials[0].contender.traits.needs_prior else {}
    direct = cls(**{**given, **arguments}).fit(plant.dataset.train)
    assert_array_equal(outcome.scores["test/all/test"], direct.score(plant.dataset.test[0]))
    for recording, scores in zip(plant.dataset.train, direct.training_scores(plant.dataset.train), strict=True):
        assert_array_equal(outcome.scores[f"train/all/{recording.id}"], scores)
