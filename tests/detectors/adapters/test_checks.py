"""Every class of the two libraries that can be run keeps the contract, or fails what its table says."""

from __future__ import annotations

import pytest

from tsadbench.registry import load_detector, load_family
from tsadbench.testing import check_detector
from tsadbench_detectors.adapters.known import Known
from tsadbench_detectors.adapters.pyod_classes import CLASSES as PYOD
from tsadbench_detectors.adapters.sklearn import CLASSES as SKLEARN

# Warnings are the libraries' own affair: they go to the trial's log.
pytestmark = pytest.mark.filterwarnings("ignore")

KNOWN = {f"pyod:{name}": known for name, known in PYOD.items()} | {
    f"sklearn:{name}": one for name, one in SKLEARN.items()
}
# What can be loaded here: two need packages that are no extra of ours.
RUNNABLE = {
    name: one for name, one in KNOWN.items() if not one.refusal and not one.note.startswith("needs the package")
}
# Leaks, repetition, direction: what a library's class may break. The rest of the suite is about code that they share.
EACH = (
    "constructor",
    "scores",
    "copies",
    "repeat",
    "seed",
    "global-random",
    "fault",
    "training-scores",
    "position",
    "scaling",
    "prefix",
    "memory",
    "state",
    "pure",
)
# Classes of every kind: remembers its rows, draws by its seed, scores alone, and scikit-learn's.
ALL = ("pyod:KNN", "pyod:LODA", "sklearn:LocalOutlierFactor", "sklearn:IsolationForest")


def failed(name: str, only: tuple[str, ...] = ()) -> dict[str, str]:
    results = check_detector(load_detector(name), only=only, on_fail=None)
    return {result.id: f"{result.reason} {result.evidence}" for result in results if result.status == "fail"}


@pytest.mark.parametrize("name", RUNNABLE)
def test_each_keeps_what_a_leak_would_break(name):
    known = dict(RUNNABLE[name].fails)
    found = failed(name, (*EACH, *(check for check in known if check not in EACH)))
    assert found.keys() == known.keys(), found


@pytest.mark.parametrize("name", ALL)
def test_some_of_every_kind_pass_the_whole_suite(name):
    assert failed(name) == {}


@pytest.mark.parametrize("name", ["pyod:KNN", "pyod:IForest"])
def test_windows_keep_the_contract_too(name):
    detector = load_detector(name)(window=4)
    assert [result.id for result in check_detector(detector, on_fail=None) if result.status == "fail"] == []


@pytest.mark.parametrize("name", ["CD", "COF", "ROD", "DIF"])
def test_who_is_refused_for_a_leak_has_one(name):
    """Made without its table's refusal, it fails the very check."""
    family = load_family("pyod")
    unguarded = family._detector_of(family._imported(name), Known())
    results = check_detector(unguarded, only=("prefix", "position"), on_fail=None)
    assert {result.status for result in results} == {"fail"}
