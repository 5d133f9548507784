"""``tsadbench verify``: verifies records and tables against stored scores and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from tsadbench import api
from tsadbench.cli import options, output
from tsadbench.errors import UsageError


def verify(
    runs: options.Runs,
    redo: Annotated[
        str | None,
        typer.Option(metavar="N", help="Instead, run N random trials (or all) again, and compare their scores."),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0.0, help="Largest difference of --redo: of scores as a share of their range, and of metrics."
        ),
    ] = 1e-6,
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead, compare a CSV or Markdown table with the store.")
    ] = None,
    dataset: options.Datasets = None,
    data: options.Data = None,
    detector: options.Trusted = None,
    timeout: options.Timeout = None,
    memory: options.Memory = None,
) -> None:
    """Check every record against itself, and its thresholds and metrics against the stored scores and the labels.

    This checks stored files only. --redo N runs N trials again, detectors before floors, with the code that is
    installed here, and replaces costs and seal of those that repeat. --table FILE compares a table written by
    `tsadbench leaderboard` with the store's trials, at the printed precision.

    Exit code 1 if something differs or was edited, if data or labels differ from the trial's, if a trial cannot be
    checked, or if a planned trial is missing. Changed code of a detector is reported, but is not a failure. Outdated
    trials are judged again, and their records replaced.
    """
    if table is not None and redo is not None:
        raise UsageError("give either --table or --redo")
    if table is not None:
        board = api.load_board(runs, dataset=dataset or (), data=data)
        # `leaderboard --write` does not mark rows that ship with tsadbench as stored, other tables do.
        boards = board, api.Leaderboard.from_records(board.records, checked_in=runs)
        faults, n_cells = min((api.check_table(table, one) for one in boards), key=lambda found: len(found[0]))
        for fault in faults:
            typer.echo(f"differs: {api.one_line(fault)}")
        typer.echo(f"{table}: {n_cells} cells compared, {api.counted(len(faults), 'difference')}")
        whole = not faults
    else:
        store = api.Store.open(runs)
        names, load = api.loader(dataset or (), data)
        named = {api.normal_label(one) for one in detector or ()}
        if redo is None:
            whole = _show_checked(store, api.verify(store, load, named, names), names)
        else:
            chosen = api.drawn(store, _number(redo), names)
            again = api.repeat(chosen, store, load, named, tolerance=tolerance, timeout=timeout, memory=memory)
            whole = _show_redone(store, chosen, again, tolerance)
    if not whole:
        raise typer.Exit(1)


def _number(redo: str) -> int | None:
    """Return the number of trials to run again; None for all."""
    if redo != "all" and (not redo.isdecimal() or int(redo) < 1):
        raise UsageError(f"expected a number of trials, at least 1, or all, found {redo}", field="redo")
    return None if redo == "all" else int(redo)


def _show_checked(store: api.Store, findings: Iterable[api.Finding], names: Sequence[str]) -> bool:
    """Print the results of verification; return whether all trials are as recorded."""
    with api.progress_bar("Verifying"):
        found = output.show_findings(findings)
    output.require_found(found, names)
    for remark, count in Counter(remark for one in found for remark in one.remarks).items():
        typer.echo(f"note: {api.one_line(remark)} ({api.counted(count, 'trial')})")
    trials, planned = set(store.trials()), store.about().planned
    absent = [words for words, trial in planned.items() if trial not in trials]
    for words in output.first(absent):
        typer.echo(f"planned, but missing: {words}")
    typer.echo(f"{len(planned) - len(absent)} of {api.counted(len(planned), 'planned trial')} are in the store")
    counts = Counter(one.verdict for one in found)
    typer.echo(
        f"{api.counted(len(found) - counts['edited'], 'trial')}: {counts['same']} as recorded, "
        f"{counts['differs']} differ, {counts['cannot be checked']} cannot be checked"
    )
    typer.echo(
        "recomputed: identities, hashes, thresholds, metrics; "
        f"its maker's word: scores, seconds, memory, seal, replay (tsadbench verify {store.path} --redo N)"
    )
    return counts["same"] == len(found) and not absent


def _show_redone(
    store: api.Store, chosen: Sequence[api.Record], findings: Iterable[api.Finding], tolerance: float
) -> bool:
    """Print the results of repetition; return whether all trials repeat."""
    typer.echo(f"run again: {', '.join(record.trial for record in chosen)}")
    with api.progress_bar("Running again"):
        found = output.show_findings(findings)
    counts = Counter(one.verdict for one in found)
    row_of = "{0.label} ({0.dataset}, {0.protocol})".format
    repeated = Counter(row_of(one.record) for one in found if one.record and not one.faults)
    for row, n in Counter(map(row_of, store.records())).items():
        if repeated[row]:
            typer.echo(f"{row}: {repeated[row]} of {api.counted(n, 'seed')} repeated")
    seals = Counter(one.seal for one in found if one.seal is not None)
    boxes = ", ".join(f"{count} {seal}" for seal, count in seals.items()) or "none"
    typer.echo(
        f"{api.counted(len(chosen), 'trial')} run again (boxes: {boxes}): {counts['to the bit']} equal to the bit, "
        f"{counts['within tolerance']} within the tolerance of {tolerance:g}, {counts['differs']} differ, "
        f"{counts['cannot be repeated']} cannot be repeated"
    )
    return counts["to the bit"] + counts["within tolerance"] == len(chosen)
