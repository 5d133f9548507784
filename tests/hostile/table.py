"""Writes docs/attacks.csv, the table of how each attack ends: ``python -m tests.hostile.table``.

All hostile detectors run under the seal, as in `test_hostile`; then file by file next to honest ones, guarded by an
audit hook alone. The second part does real harm: as root, detectors leave keys, queues and files, which are removed
afterwards. Use a machine of your own. Exit code 1 if one comes through under the seal. ``--only TEXT...`` runs those
with a text in their names, and keeps the other rows.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd
import psutil

from tests.hostile.plant import Attack, Plant, Trial, adopting_orphans, attacks, channels, learned, servers, trials
from tests.hostile.suite import HONEST, INNOCENT, REFUSED, Suite, require_nothing_learned, run_suite

FILE = Path(__file__).parents[2] / "docs" / "attacks.csv"
_VICTIM = "detectors/victim.py:Victim[number=1]"
# These end other processes, so each gets a separate run.
_ALONE = ("EndsTheHarness", "EndsOtherBoxes")
_LIMITS = ("--jobs", "2", "--memory", "1500", "--timeout", "10")
_LOOT = re.compile(r"^LOOT (.+)$", re.M)


def sealed_cells(chosen: Sequence[Attack]) -> dict[str, str]:
    """Run hostile detectors under the seal, and return how each ended, by its name."""
    folder = Path(tempfile.mkdtemp(prefix="h-"))
    try:
        suite = run_suite(folder / "user", {attack.name for attack in chosen})
        return {str(attack): _sealed_cell(attack, suite) for attack in chosen}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sealed_cell(attack: Attack, suite: Suite) -> str:
    if attack.stays_open:
        return f"open: {attack.stays_open}"
    if REFUSED in attack.ends:
        return "the run is refused"  # `test_hostile` has a test of that
    try:
        require_nothing_learned(suite, attack)
    except AssertionError:
        return "comes through"
    return "learns nothing" if "ok" in attack.ends else f"ends: {' or '.join(attack.ends)}"


def guarded_cells(group: Sequence[Attack]) -> dict[str, str]:
    """Run hostile detectors in one unsealed run, and return what each did, by its name."""
    folder = Path(tempfile.mkdtemp(prefix="h-"))
    plant = Plant(folder / "user")
    plant.build()
    stopped = ""
    try:
        with servers(plant), adopting_orphans():
            plant.write_detectors()
            plant.run(HONEST, _VICTIM, runs=plant.root / "earlier")
            todo = (HONEST, *(attack.reference for attack in group), _VICTIM)
            try:
                done = plant.run(*todo, more=_LIMITS, timeout=60 + 15 * len(group), sealed=False)
                if done.returncode == 2 and not plant.runs.exists():
                    stopped = "the run is refused"
                elif done.returncode not in (0, 1):
                    stopped = f"stops the run (exit code {done.returncode})"
            except subprocess.TimeoutExpired:
                stopped = "stops the run (it never ends)"
                _end_below(plant)
        alone = trials(plant.root / "earlier")
        found = trials(plant.runs) if plant.runs.exists() else {}
        cells = {str(attack): _cell(attack, found, alone, stopped) for attack in group}
        victim = found.get(_VICTIM.rpartition("detectors/")[2])
        if len(group) == 1 and not stopped and (victim is None or victim[0].record.status != "ok"):
            cells[str(group[0])] = "ends other trials"
        return cells
    finally:
        plant.clean()
        shutil.rmtree(folder, ignore_errors=True)


def _cell(
    attack: Attack,
    found: Mapping[str, Sequence[Trial]],
    alone: Mapping[str, Sequence[Trial]],
    stopped: str,
) -> str:
    made = found.get(f"{attack.file}.py:{attack.name}", ())
    if stopped or not made:
        return stopped or "has no trial"
    through = [trial for trial in made if learned(trial, alone[INNOCENT][0])]
    loot = [match for trial in through for match in _LOOT.findall(trial.log)]
    if through:
        aurocs = [trial.record.splits["overall"].metrics["auroc"] or 0.0 for trial in through]
        if max(aurocs) == 1.0:
            return "comes through: AUROC 1.0"
        return f"comes through: {_told(loot)}" if loot else f"comes through: AUROC {max(aurocs):.2f}"
    if any(_LOOT.search(trial.log) for trial in made):
        return "comes through, and is ended"
    statuses = " or ".join(sorted({trial.record.status for trial in made}))
    return "learns nothing" if statuses == "ok" else f"ends: {statuses}"


def _told(loot: Iterable[str]) -> str:
    """Return what was found, in words that are the same in each run."""
    first = next(iter(loot))
    if first.startswith("reached: "):
        return re.sub(r"\d+", "N", first.removeprefix("reached: ").partition(" left-")[0])
    return "what another trial has left" if first.startswith("left-") else f"a secret ({first.rpartition('-')[2]})"


def _end_below(plant: Plant) -> None:
    """Kill the processes of a run that hangs: those whose command line names the plant's card, and their children."""
    for process in psutil.process_iter():
        try:
            if str(plant.card) in process.cmdline():
                for one in (*process.children(recursive=True), process):
                    one.kill()
        except psutil.Error:
            continue


def _groups() -> list[list[Attack]]:
    alone = [attack for attack in attacks() if attack.name in _ALONE or REFUSED in attack.ends]
    together = [attack for attack in attacks() if attack not in alone]
    return [*(list(group) for _, group in groupby(together, key=lambda attack: attack.file)), *([one] for one in alone)]


def main() -> int:
    """Run the hostile detectors, sealed and guarded, and write how they end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT")
    only = parser.parse_args().only
    chosen = [attack for attack in attacks() if any(text in str(attack) for text in only)]
    sealed = sealed_cells(chosen)
    guarded: dict[str, str] = {}
    for group in _groups():
        if part := [attack for attack in group if attack in chosen]:
            guarded |= guarded_cells(part)
    for name, cell in sealed.items():
        print(f"{name:45} {cell:25.25} {guarded[name]}")
    kinds = {file: text.splitlines()[0] for file, text in channels().items()}
    before = pd.read_csv(FILE).set_index("hostile detector")
    rows = []
    for one in attacks():
        kept = one not in chosen
        cells = before.loc[one.name, ["sealed", "guarded"]] if kept else (sealed[str(one)], guarded[str(one)])
        rows.append((kinds[one.file], one.name, one.tries, *cells))
    frame = pd.DataFrame(rows, columns=["kind", "hostile detector", "what it tries", "sealed", "guarded"])
    frame.to_csv(FILE, index=False, lineterminator="\n")
    return int("comes through" in sealed.values())


if __name__ == "__main__":
    sys.exit(main())
