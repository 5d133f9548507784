"""Some twenty hostile detectors under the seal; `test_hostile` has all of them (``make test-long``)."""

from __future__ import annotations

import pytest

from tests.helpers.sealed import require_seal
from tests.hostile.plant import attacks
from tests.hostile.suite import require_nothing_learned, require_nothing_left, require_undisturbed, run_suite

NAMES = (
    *("OpensByName", "ReadsThroughARing", "WatchesFiles", "Remounts"),  # files
    "CallsOut",  # the network
    *("ReadsMemoryAcross", "LeavesThreads"),  # other processes
    "StartsAnInterpreter",  # programs
    *("WritesMachineCode", "AsksTheKernelForMore"),  # native code
    "ClearsTheHooks",  # the audit hook
    "SaysScoresAhead",  # the box's channel
    *("EatsMemory", "MakesADeepFolder", "LocksItsFolder"),  # limits
    *("WorksElsewhere", "HidesItsMemory"),  # time and memory
    *("SharesMemoryPosix", "SharesMemorySysV", "SharesKeys", "LeavesFiles"),  # other trials
    "KnowsTheOrder",  # remembering
)


@pytest.mark.processes
@pytest.mark.slow(20)  # two runs of the command, as a user starts it
def test_none_learns_anything_changes_another_trial_or_leaves_anything(tmp_path):
    require_seal()
    suite = run_suite(tmp_path / "user", NAMES)
    chosen = [attack for attack in attacks() if attack.name in NAMES]
    assert len(chosen) == len(NAMES)
    for attack in chosen:
        require_nothing_learned(suite, attack)
    require_undisturbed(suite)
    require_nothing_left(suite)
    assert (suite.alone.returncode, suite.crowd.returncode) == (0, 1), suite.crowd.stderr
    assert "Traceback" not in suite.crowd.stderr
