"""Every detector that ships passes the checks, except for those that it declares to fail."""

from __future__ import annotations

import pytest

from tsadbench.base.replay import MIN_CORRELATION
from tsadbench.registry import entries, load_detector
from tsadbench.testing import check_detector
from tsadbench_detectors.deep.network_detector import NetworkDetector

SHIPPED = [entry.name for entry in entries("detectors") if entry.package == "tsadbench"]
# Half a minute each.
NETWORKS = {name for name in SHIPPED if issubclass(load_detector(name), NetworkDetector)}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in NETWORKS else ()) for name in SHIPPED]
)
@pytest.mark.slow
def test_what_ships_passes_all_checks_but_for_those_that_it_declares_to_fail(name):
    cls = load_detector(name)
    results = check_detector(cls)
    assert not [result.reason for result in results if result.status == "warn"]
    expected = {result.id for result in results if result.status == "expected-failure"}
    assert expected == set(cls(**cls.test_params()).expected_check_failures())


@pytest.mark.slow
def test_only_the_replay_audit_finds_that_the_adaptive_variant_does_not_forget():
    adaptive = load_detector("multiview")(adaptive=True)
    assert adaptive.declared_traits().memory is None
    results = check_detector(adaptive, expected_failures={"replays": "how a recording begins counts to its end"})
    assert not [result.reason for result in results if result.status == "warn"]
    (replays,) = [result for result in results if result.status == "expected-failure"]
    # It is this that fails, not a score that does not repeat.
    assert replays.evidence["correlation"] < MIN_CORRELATION


def test_a_declared_failure_depends_on_parameters():
    grelen = load_detector("grelen")
    for statistic in ("deviation", "reconstruction"):
        check_detector(grelen(statistic=statistic), only=["fault", "contributions"])
