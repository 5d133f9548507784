"""Every hostile detector under the seal: none learns anything, none changes another trial, none stops the run."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest

from tests.hostile.plant import Attack, attacks, learned
from tests.hostile.suite import Suite, run_suite

pytestmark = [pytest.mark.processes, pytest.mark.slow]

ATTACKS = attacks()
CLOSED = [attack for attack in ATTACKS if not attack.stays_open]
# Walls that are still being built, by the file or the name of what they must stop.
PENDING = {
    "remembering": "crossing",
    "planning_patches": "planning",
    "planning_hooks": "planning",
    "planning_reads": "planning",
    "planning_values": "planning",
}
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Suite:
    return run_suite(tmp_path_factory.mktemp("h") / "user")


def _marked(attack: Attack):
    owner = PENDING.get(attack.file, PENDING.get(attack.name))
    marks = [pytest.mark.xfail(reason=f"waits for {owner}", strict=False)] if owner else []
    return pytest.param(attack, marks=marks, id=str(attack))


def test_there_are_at_least_forty_of_every_channel():
    assert len(CLOSED) >= 40
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


def test_all_of_them_ran_sealed(suite: Suite):
    found = {(trial.record.seal, trial.record.seal_reason) for made in suite.trials.values() for trial in made}
    assert found == {("sealed", "")}


@pytest.mark.parametrize("attack", [_marked(attack) for attack in CLOSED])
def test_nothing_is_learned(suite: Suite, attack: Attack):
    made = suite.of(attack)
    assert len(made) == attack.seeds
    for trial in made:
        assert trial.record.status in attack.ends, trial.record.reason
        assert not learned(trial, suite.innocent), trial.log[-2000:]
        assert "LOOT" not in trial.log, trial.log[-2000:]
        assert suite.plant.canary not in trial.log
        assert suite.plant.canary not in (trial.record.reason or "")


@pytest.mark.parametrize("attack", [attack for attack in CLOSED if attack.takes_seconds], ids=str)
def test_seconds_are_the_harness_s(suite: Suite, attack: Attack):
    (trial,) = suite.of(attack)
    assert trial.record.fit_seconds is not None
    assert trial.record.fit_seconds >= attack.takes_seconds


@pytest.mark.parametrize("attack", [attack for attack in CLOSED if attack.takes_mib], ids=str)
def test_memory_is_the_harness_s(suite: Suite, attack: Attack):
    (trial,) = suite.of(attack)
    assert trial.record.peak_memory_mib is not None
    assert trial.record.peak_memory_mib >= attack.takes_mib


def test_trials_beside_and_after_them_are_what_they_would_have_been(suite: Suite):
    for victim in suite.victims:
        (alone,) = suite.undisturbed[victim.rpartition("detectors/")[2]]
        (beside,) = suite.trials[victim.rpartition("detectors/")[2]]
        assert alone.record.status == beside.record.status == "ok"
        assert alone.scores.keys() == beside.scores.keys()
        for name, values in alone.scores.items():
            np.testing.assert_array_equal(beside.scores[name], values)
        assert alone.record.splits == beside.record.splits


def test_the_runs_come_to_an_end_and_say_that_trials_failed(suite: Suite):
    assert (suite.alone.returncode, suite.crowd.returncode, suite.endless.returncode) == (0, 1, 1), suite.crowd.stderr
    for done in (suite.crowd, suite.endless):
        assert "Traceback" not in done.stderr
        assert not CONTROL.search(done.stderr.replace("\x1b", "") if os.environ.get("FORCE_COLOR") else done.stderr)
        assert not CONTROL.search(done.stdout)


def test_nothing_is_left_behind(suite: Suite):
    assert suite.processes == []
    assert suite.left == []
    assert suite.changed == set()


def test_what_can_be_remembered_stays_open(suite: Suite):
    """If one of these is stopped some day, docs/security.md must no longer say that it is not."""
    for attack in ATTACKS:
        if attack.stays_open and attack.file == "remembering":
            (trial,) = suite.of(attack)
            assert learned(trial, suite.innocent)
