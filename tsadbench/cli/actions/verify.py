"""What ``tsadbench verify`` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from tsadbench.base.dataset import LabelledDataset
from tsadbench.cli.live import progress_bar
from tsadbench.cli.output import in_words
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.selection import all_records
from tsadbench.leaderboard.table_check import check_table
from tsadbench.results.judging import judge_outdated
from tsadbench.results.repetition import repeat
from tsadbench.results.verification import verify
from tsadbench.utils.text import counted, one_line

# Of one trial.
_MOST_FAULTS = 20


def print_checked(store: Store, load: Callable[[str], LabelledDataset], trust_code: bool) -> bool:
    """Print what checking every trial finds; return whether all are as recorded."""
    counts: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    with progress_bar("Verifying"):
        for checked in verify(store, load, trust_code=trust_code):
            counts[checked.verdict] += 1
            remarks.update(checked.remarks)
            for fault in _first(checked.faults):
                typer.echo(f"{checked.verdict}: {one_line(checked.trial)}{in_words(checked.record)}: {fault}")
    for remark, count in remarks.items():
        typer.echo(f"note: {one_line(remark)} ({count} trials)")
    total = sum(counts.values())
    typer.echo(
        f"{total} trials: {counts['same']} as recorded, {counts['differs']} differ, "
        f"{counts['cannot be checked']} cannot be checked"
    )
    typer.echo(
        "verified: records against their checksums and identities, thresholds and metrics against scores and labels; "
        "not verifiable at all: seconds, memory and seal; not verifiable without running: that the detectors made "
        f"these scores (tsadbench verify {store.path} --redo N)"
    )
    return counts["same"] == total


def _first(faults: Sequence[str]) -> list[str]:
    """Return the faults to print: scores that are others change every metric of every split."""
    left = len(faults) - _MOST_FAULTS
    return [one_line(fault) for fault in faults[:_MOST_FAULTS]] + ([f"and {left} more"] if left > 0 else [])


def print_redone(
    store: Store,
    load: Callable[[str], LabelledDataset],
    chosen: Sequence[Record],
    trust_code: bool,
    tolerance: float,
    timeout: float | None,
    memory: float | None,
) -> bool:
    """Print what running trials again finds; return whether all repeat."""
    typer.echo(f"run again: {', '.join(record.trial for record in chosen)}")
    counts: Counter[str] = Counter()
    seals: Counter[str] = Counter()
    with progress_bar("Running again"):
        for one in repeat(
            chosen, store, load, trust_code=trust_code, tolerance=tolerance, timeout=timeout, memory=memory
        ):
            counts[one.verdict] += 1
            seals.update([one.seal] if one.seal else [])
            about = f"{one.record.trial}{in_words(one.record)}"
            size = "" if not one.difference else f", largest difference {one.difference:.2g} of their range"
            if one.verdict in ("to the bit", "within tolerance"):
                typer.echo(f"repeats {one.verdict}{size}: {about}")
            for fault in _first(one.faults):
                typer.echo(f"{one.verdict}: {about}: {fault}")
            for remark in one.remarks if one.verdict != "to the bit" else ():
                typer.echo(f"  possible cause: {one_line(remark)}")
    boxes = ", ".join(f"{count} {seal}" for seal, count in seals.items()) or "none"
    typer.echo(
        f"{counted(len(chosen), 'trial')} run again (boxes: {boxes}): {counts['to the bit']} equal to the bit, "
        f"{counts['within tolerance']} within the tolerance of {tolerance:g}, {counts['differs']} differ, "
        f"{counts['cannot be repeated']} cannot be repeated"
    )
    return counts["to the bit"] + counts["within tolerance"] == len(chosen)


def print_table_check(store: Store, load: Callable[[str], LabelledDataset], file: Path) -> bool:
    """Print how a table differs from the store's trials; return whether it does not."""
    records, _ = judge_outdated(all_records(store), store, load)
    faults, n_cells = check_table(file, Leaderboard.from_records(records, checked_in=store.path))
    for fault in faults:
        typer.echo(f"differs: {one_line(fault)}")
    typer.echo(f"{file}: {n_cells} cells compared, {counted(len(faults), 'difference')}")
    return not faults
