"""Runs every hostile detector under the seal, as a user would, between honest ones."""

from __future__ import annotations

import math
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import psutil

from tests.hostile.plant import Attack, Plant, Trial, adopting_orphans, attacks, servers, trials

HONEST = "detectors/victim.py:Hostile"
INNOCENT = "victim.py:Hostile"
# What never comes back, in a run with a short limit of time.
ENDLESS = "endless"
# The end of what is not even planned: the run does not start.
REFUSED = "refused"
_BETWEEN_VICTIMS = 8


@dataclass
class Suite:
    """What is left when the runs are over.

    Parameters
    ----------
    plant
        The plant that was attacked.
    victims
        The honest detectors, by reference.
    alone, crowd, endless
        The run of the honest detectors alone; that of all others between them; that of those that never come back.
    processes, left, changed
        Processes that lived on, what was left outside, and files that were changed.
    """

    plant: Plant
    victims: tuple[str, ...]
    alone: subprocess.CompletedProcess[str]
    crowd: subprocess.CompletedProcess[str]
    endless: subprocess.CompletedProcess[str]
    processes: list[psutil.Process]
    left: list[str]
    changed: set[str]

    @cached_property
    def undisturbed(self) -> dict[str, list[Trial]]:
        return trials(self.plant.root / "earlier")

    @cached_property
    def trials(self) -> dict[str, list[Trial]]:
        return trials(self.plant.runs) | trials(self.plant.root / "endless")

    @property
    def innocent(self) -> Trial:
        return self.undisturbed[INNOCENT][0]

    def of(self, attack: Attack) -> list[Trial]:
        """Return the trials of one hostile detector."""
        return self.trials.get(f"{attack.file}.py:{attack.name}", [])


def run_suite(root: Path) -> Suite:
    """Build a plant below a folder, and set everybody on it."""
    plant = Plant(root)
    plant.build()
    chosen = [attack for attack in attacks() if attack.file != ENDLESS and REFUSED not in attack.ends]
    never = [attack.reference for attack in attacks() if attack.file == ENDLESS]
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
        endless = plant.run(*never, victims[0], runs=root / "endless", more=brief)
        left = plant.left()
    after = plant.fingerprint()
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    plant.clean()
    return Suite(plant, victims, alone, crowd, endless, processes, left, changed)
