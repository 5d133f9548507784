"""Runs every hostile detector under the seal, as a user would, between honest ones."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import psutil

from tests.hostile.plant import Attack, Plant, Trial, adopting_orphans, attacks, learned, servers, trials

HONEST = "detectors/victim.py:Hostile"
INNOCENT = "victim.py:Hostile"
# The file of detectors that never return; they run with a short time limit.
ENDLESS = "endless"
# How a detector ends that cannot be planned: the run does not start.
REFUSED = "refused"
_BETWEEN_VICTIMS = 8


@dataclass
class Suite:
    """The results of the runs, and what they left behind."""

    plant: Plant
    victims: tuple[str, ...]  # the honest detectors, by reference
    alone: subprocess.CompletedProcess[str]  # the run of the honest detectors
    crowd: subprocess.CompletedProcess[str]  # the run of the hostile detectors, with honest ones between them
    endless: subprocess.CompletedProcess[str] | None  # the run of detectors that never return, if any was chosen
    processes: list[psutil.Process]  # still alive after the runs
    left: list[str]  # what `Plant.left` found
    changed: set[str]  # files that were changed

    @cached_property
    def undisturbed(self) -> dict[str, list[Trial]]:
        return trials(self.plant.root / "earlier")

    @cached_property
    def trials(self) -> dict[str, list[Trial]]:
        return trials(self.plant.runs) | (trials(self.plant.root / "endless") if self.endless else {})

    @property
    def innocent(self) -> Trial:
        return self.undisturbed[INNOCENT][0]

    def of(self, attack: Attack) -> list[Trial]:
        """Return the trials of one hostile detector."""
        return self.trials.get(f"{attack.file}.py:{attack.name}", [])


def run_suite(root: Path, names: Collection[str] = ()) -> Suite:
    """Build a plant in a folder, and run all hostile detectors on it, or those with the given names."""
    plant = Plant(root)
    plant.build()
    wanted = [attack for attack in attacks() if attack.name in names or not names]
    chosen = [attack for attack in wanted if attack.file != ENDLESS and REFUSED not in attack.ends]
    never = [attack.reference for attack in wanted if attack.file == ENDLESS]
    n_groups = math.ceil(len(chosen) / _BETWEEN_VICTIMS)
    victims = tuple(f"detectors/victim.py:Victim[number={number}]" for number in range(n_groups + 1))
    order = [HONEST]
    for number, attack in enumerate(chosen):
        if number % _BETWEEN_VICTIMS == 0:
            order.append(victims[number // _BETWEEN_VICTIMS])
        order.append(attack.reference)
    order.append(victims[-1])
    with servers(plant), adopting_orphans() as processes:
        plant.write_detectors()
        alone = plant.run(HONEST, *victims, runs=root / "earlier")
        before = plant.fingerprint()
        crowd = plant.run(*order, more=("--jobs", "2", "--memory", "1500", "--timeout", "90"), timeout=500)
        brief = ("--jobs", "4", "--memory", "1500", "--timeout", "6")
        endless = plant.run(*never, victims[0], runs=root / "endless", more=brief) if never else None
        left = plant.left()
    after = plant.fingerprint()
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    plant.clean()
    return Suite(plant, victims, alone, crowd, endless, processes, left, changed)


def require_nothing_learned(suite: Suite, attack: Attack) -> None:
    """Assert that a hostile detector ended as expected, was charged its real costs, and learned no secret."""
    made = suite.of(attack)
    assert len(made) == attack.seeds
    for trial in made:
        assert trial.record.status in attack.ends, trial.record.reason
        assert (trial.record.fit_seconds or 0.0) >= attack.takes_seconds
        assert (trial.record.fit_cpu_seconds or 0.0) >= attack.takes_seconds / 4  # the machine is shared
        assert (trial.record.peak_memory_mib or 0.0) >= attack.takes_mib
        assert not learned(trial, suite.innocent), trial.log[-2000:]
        assert not attack.marked or not trial.record.replay.calibrated
        assert "LOOT" not in trial.log, trial.log[-2000:]
        assert suite.plant.canary not in trial.log
        assert suite.plant.canary not in (trial.record.reason or "")


def require_undisturbed(suite: Suite) -> None:
    """Assert that honest trials between hostile ones equal, to the bit, those that ran alone."""
    for victim in suite.victims:
        (alone,) = suite.undisturbed[victim.rpartition("detectors/")[2]]
        (beside,) = suite.trials[victim.rpartition("detectors/")[2]]
        assert alone.record.status == beside.record.status == "ok"
        assert alone.scores.keys() == beside.scores.keys()
        for name, values in alone.scores.items():
            np.testing.assert_array_equal(beside.scores[name], values)
        assert alone.record.splits == beside.record.splits


def require_nothing_left(suite: Suite) -> None:
    """Assert that no process lives on, nothing was left outside, and no file was changed."""
    assert suite.processes == []
    assert suite.left == []
    assert suite.changed == set()
