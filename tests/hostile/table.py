"""What comes through where an audit hook alone guards the box: ``python -m tests.hostile.table [--write]``.

Every hostile detector runs unsealed beside an honest one. The table says which learned something, which stopped the
run, and which left something behind; ``--write`` puts it into docs/security.md. Some of it is real: as root on a
machine of your own, hostile detectors leave the keys, queues and files that the table tells of; they are removed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import psutil

from tests.hostile.plant import Attack, Plant, Trial, adopting_orphans, attacks, channels, learned, servers, trials
from tests.hostile.suite import HONEST, INNOCENT, REFUSED
from tsadbench.utils.markdown import fill_blocks, table_lines

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
HEADER = ("hostile detector", "what it tries", "sealed", "guarded")
_VICTIM = "detectors/victim.py:Victim[number=1]"
# They end or halt whatever runs beside them.
_ALONE = ("EndsTheHarness", "EndsOtherBoxes")
_LIMITS = ("--jobs", "2", "--memory", "1500", "--timeout", "10")
_LOOT = re.compile(r"^LOOT (.+)$", re.M)


def sealed_cell(attack: Attack) -> str:
    """Return what the suite asserts of a hostile detector under the seal (`test_hostile`)."""
    if attack.stays_open:
        return f"**open**: {attack.stays_open}"
    if REFUSED in attack.ends:
        return "the run is refused"
    if "ok" in attack.ends:
        return "learns nothing"
    return f"ends: {' or '.join(attack.ends)}"


def lines(guarded: Mapping[str, str]) -> list[str]:
    """Return the table, a part for each kind of attack.

    Parameters
    ----------
    guarded
        What each does without a seal, by its name.
    """
    made: list[str] = []
    told = channels()
    for file, group in groupby(attacks(), key=lambda attack: attack.file):
        rows = [[f"`{one.name}`", one.tries, sealed_cell(one), guarded.get(str(one), "?")] for one in group]
        made += [f"*{told[file].splitlines()[0]}*", "", *table_lines(HEADER, rows), ""]
    return made[:-1]


def guarded_cells(group: Sequence[Attack]) -> dict[str, str]:
    """Run hostile detectors in one unsealed run, and return what each did, by its name."""
    folder = Path(tempfile.mkdtemp(prefix="h-"))
    plant = Plant(folder / "user")
    plant.build()
    stopped = ""
    try:
        with servers(plant), adopting_orphans() as lived_on:
            plant.write_detectors()
            plant.run(HONEST, _VICTIM, runs=plant.root / "earlier")
            todo = (HONEST, *(attack.reference for attack in group), _VICTIM)
            try:
                done = plant.run(*todo, more=_LIMITS, timeout=60 + 15 * len(group), sealed=False)
                if done.returncode == 2 and not plant.runs.exists():
                    stopped = "the run is refused"
                elif done.returncode not in (0, 1):
                    stopped = f"**stops the run** (exit code {done.returncode})"
            except subprocess.TimeoutExpired:
                stopped = "**stops the run** (it never ends)"
                _end_below(plant)
            left = plant.left()
        alone = trials(plant.root / "earlier")
        found = trials(plant.runs) if plant.runs.exists() else {}
        cells = {str(attack): _cell(attack, found, alone, stopped, left, bool(lived_on)) for attack in group}
        victim = found.get(_VICTIM.rpartition("detectors/")[2])
        if len(group) == 1 and not stopped and (victim is None or victim[0].record.status != "ok"):
            cells[str(group[0])] = "**ends other trials**"
        return cells
    finally:
        plant.clean()
        shutil.rmtree(folder, ignore_errors=True)


def _cell(
    attack: Attack,
    found: Mapping[str, Sequence[Trial]],
    alone: Mapping[str, Sequence[Trial]],
    stopped: str,
    left: Sequence[str],
    lived_on: bool,
) -> str:
    made = found.get(f"{attack.file}.py:{attack.name}", ())
    if stopped or not made:
        return stopped or "has no trial"
    through = [trial for trial in made if learned(trial, alone[INNOCENT][0])]
    loot = [match for trial in through for match in _LOOT.findall(trial.log)]
    if through:
        aurocs = [trial.record.splits["overall"].metrics["auroc"] or 0.0 for trial in through]
        if max(aurocs) == 1.0:
            return "**comes through**: AUROC 1.0"
        return f"**comes through**: {_told(loot)}" if loot else f"**comes through**: AUROC {max(aurocs):.2f}"
    if any(_LOOT.search(trial.log) for trial in made):
        return "**comes through**, and is ended"
    statuses = " or ".join(sorted({trial.record.status for trial in made}))
    return "learns nothing" if statuses == "ok" else f"ends: {statuses}"


def _told(loot: Iterable[str]) -> str:
    """Return what was found, in words that are the same in each run."""
    first = next(iter(loot))
    if first.startswith("reached: "):
        return re.sub(r"\d+", "N", first.removeprefix("reached: ").partition(" left-")[0])
    return "what another trial has left" if first.startswith("left-") else f"a secret ({first.rpartition('-')[2]})"


def _end_below(plant: Plant) -> None:
    """End the harness of a run that hangs, with its boxes: those whose command names the plant's folder, and theirs."""
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


def main() -> None:
    """Run all of them unsealed, and print what comes through."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table into docs/security.md")
    parser.add_argument("--only", nargs="*", default=[""], help="run those whose names hold one of these texts")
    arguments = parser.parse_args()
    guarded: dict[str, str] = {}
    for group in _groups():
        chosen = [attack for attack in group if any(text in str(attack) for text in arguments.only)]
        if chosen:
            guarded |= (cells := guarded_cells(chosen))
            print("\n".join(f"{name:45} {cell}" for name, cell in cells.items()), flush=True)
    n_through = sum("**" in cell for cell in guarded.values())
    print(f"{n_through} of {len(guarded)} come through where an audit hook alone guards the box")
    if arguments.write:
        PAGE.write_text(fill_blocks(PAGE.read_text(encoding="utf-8"), lambda name: lines(guarded)), encoding="utf-8")


if __name__ == "__main__":
    main()
