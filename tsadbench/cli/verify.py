"""``tsadbench verify``: whether the tables are what the stored scores and the labels give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli.live import progress_bar
from tsadbench.cli.options import CardsOption, DataOption, MemoryOption, RunsArgument, TimeoutOption
from tsadbench.cli.output import in_words
from tsadbench.errors import UsageError
from tsadbench.utils.text import counted, one_line

if TYPE_CHECKING:
    from tsadbench.base.dataset import LabelledDataset
    from tsadbench.execution.record import Record
    from tsadbench.execution.store import Store

# Of one trial.
_MOST_FAULTS = 20


def verify(
    runs: RunsArgument,
    redo: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Instead, run N trials again, drawn at random, detectors before floors, or all of them (all), and "
            "compare their scores.",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0.0, help="How far the scores of --redo may differ, as a share of the range of the test scores."
        ),
    ] = 1e-6,
    table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead, compare a CSV or Markdown table with the store."),
    ] = None,
    dataset: CardsOption = None,
    data: DataOption = None,
    detector: Annotated[
        list[str] | None,
        typer.Option(
            "--detector",
            "-d",
            metavar="LABEL",
            help="Also load this detector, which the store names by file or module or with a prior; may be repeated.",
        ),
    ] = None,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
) -> None:
    """Check every record against itself, and its thresholds and metrics against the stored scores and the labels.

    This checks stored files only. --redo N runs N trials again, with the code that is installed here, and compares
    their scores with the stored ones. --table FILE compares a table that `tsadbench leaderboard` has written with what
    the store's trials give, at the precision that the table prints.

    Exit code 1 if something differs or was edited, if data or labels are not those that the trial was run on, if a
    trial cannot be checked, or if one that was planned is not here. A detector's code that has changed since is
    reported, but does not count. A trial that other rules than today's have judged is judged again, and its record
    written anew.
    """
    from tsadbench.datasets.loading import loader
    from tsadbench.execution.store import Store
    from tsadbench.results.verification import drawn
    from tsadbench.utils.parameters import normal_label

    if table is not None and redo is not None:
        raise UsageError("--table and --redo are two checks: give one of them")
    number = _number(redo)
    load = loader(dataset or [], data)
    store = Store.open(runs)
    named = {normal_label(one) for one in detector or ()}
    if table is not None:
        whole = _print_table_check(store, load, table)
    elif redo is None:
        whole = _print_checked(store, load, named)
    else:
        whole = _print_redone(store, load, drawn(store, number), named, tolerance, timeout, memory)
    if not whole:
        raise typer.Exit(1)


def _number(redo: str | None) -> int | None:
    """Return how many trials to run again; None for all."""
    if redo is None or redo == "all":
        return None
    if not redo.isdecimal() or int(redo) < 1:
        raise UsageError(f"--redo {redo}: expected a number of trials, at least 1, or all")
    return int(redo)


def _print_checked(store: Store, load: Callable[[str], LabelledDataset], named: Collection[str]) -> bool:
    """Print what checking every trial finds; return whether all are as recorded."""
    from tsadbench.results.verification import verify as verify_all

    counts: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    with progress_bar("Verifying"):
        for checked in verify_all(store, load, named):
            counts[checked.verdict] += 1
            remarks.update(checked.remarks)
            for fault in _first(checked.faults):
                typer.echo(f"{checked.verdict}: {one_line(checked.trial)}{in_words(checked.record)}: {fault}")
    for remark, count in remarks.items():
        typer.echo(f"note: {one_line(remark)} ({count} trials)")
    total = sum(counts.values())
    trials, planned = set(store.trials()), store.about().planned
    absent = [words for words, trial in planned.items() if trial not in trials]
    for fault in _first([f"planned, but not here: {words}" for words in absent]):
        typer.echo(fault)
    typer.echo(f"{len(planned) - len(absent)} of {counted(len(planned), 'planned trial')} are here")
    typer.echo(
        f"{total} trials: {counts['same']} as recorded, {counts['differs']} differ, "
        f"{counts['cannot be checked']} cannot be checked"
    )
    typer.echo(
        "verified: records against their identities, thresholds and metrics against scores and labels; "
        "not verifiable at all: seconds, memory and seal; not verifiable without running: that the detectors made "
        f"these scores (tsadbench verify {store.path} --redo N)"
    )
    return counts["same"] == total and not absent


def _first(faults: Sequence[str]) -> list[str]:
    """Return the first faults, because wrong scores make every metric fail."""
    left = len(faults) - _MOST_FAULTS
    return [one_line(fault) for fault in faults[:_MOST_FAULTS]] + ([f"and {left} more"] if left > 0 else [])


def _print_redone(
    store: Store,
    load: Callable[[str], LabelledDataset],
    chosen: Sequence[Record],
    named: Collection[str],
    tolerance: float,
    timeout: float | None,
    memory: float | None,
) -> bool:
    """Print what running trials again finds; return whether all repeat."""
    from tsadbench.results.verification import repeat

    typer.echo(f"run again: {', '.join(record.trial for record in chosen)}")
    counts: Counter[str] = Counter()
    seals: Counter[str] = Counter()
    with progress_bar("Running again"):
        for one in repeat(chosen, store, load, named, tolerance=tolerance, timeout=timeout, memory=memory):
            counts[one.verdict] += 1
            seals.update([one.seal] if one.seal else [])
            about = f"{one.trial}{in_words(one.record)}"
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


def _print_table_check(store: Store, load: Callable[[str], LabelledDataset], file: Path) -> bool:
    """Print how a table differs from the store's trials; return whether it does not."""
    from tsadbench.analysis.stored import all_records
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.leaderboard.table_check import check_table
    from tsadbench.results.judging import judge_outdated

    records, _ = judge_outdated(all_records(store), store, load)
    faults, n_cells = check_table(file, Leaderboard.from_records(records, checked_in=store.path))
    for fault in faults:
        typer.echo(f"differs: {one_line(fault)}")
    typer.echo(f"{file}: {n_cells} cells compared, {counted(len(faults), 'difference')}")
    return not faults
