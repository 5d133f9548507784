"""Prints for commands: tables on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console

from tsadbench import api
from tsadbench.errors import UsageError


def wide_console() -> Console:
    """Return a console on standard output, which is wide for pipes and files so that they get every column."""
    return Console() if sys.stdout.isatty() else Console(width=240)


def table_width() -> int | None:
    """Return the width of the terminal; None for a pipe or a file."""
    return Console().width if sys.stdout.isatty() else None


def require_found(findings: Iterable[api.Finding], datasets: Iterable[str]) -> None:
    """Raise a UsageError for a data set that no finding is about."""
    held = {one.record.dataset for one in findings if one.record is not None}
    if absent := [name for name in datasets if name not in held]:
        raise UsageError(f"there is no trial of {absent[0]!r} to look at", field="dataset")


def show_board(
    board: api.Leaderboard,
    form: api.Form,
    *,
    wide: bool = False,
    columns: Sequence[str] = (),
    own: Collection[str] = (),
) -> None:
    """Print a leaderboard; ``own`` are labels of rows to mark."""
    if form == "table":
        board.print(wide_console(), wide=wide, columns=columns, own=own)
    else:
        typer.echo(board.to(form, columns=columns, wide=wide or form == "markdown"), nl=False)


def show_table(title: str, rows: Sequence[Mapping[str, object]], decimals: Mapping[str, int | None]) -> None:
    """Print rows (dicts by column) as a table; numbers have four decimals unless ``decimals`` sets others."""
    import pandas as pd

    api.print_tables(wide_console(), [api.Table(title, pd.DataFrame(rows), decimals=decimals)])


def show_json(content: object) -> None:
    """Print an object as JSON."""
    typer.echo(json.dumps(content, indent=1, allow_nan=False))


def say(lines: Iterable[object]) -> None:
    """Print lines on standard error."""
    for line in lines:
        typer.echo(api.printable(str(line), lines=True), err=True)


def first(lines: Sequence[str], most: int = 20) -> list[str]:
    """Return the first lines, and a line that says how many more there are."""
    left = [f"and {len(lines) - most} more"] if len(lines) > most else []
    return [*map(api.one_line, lines[:most]), *left]


def show_findings(findings: Iterable[api.Finding], most: int = 20, *, err: bool = False) -> list[api.Finding]:
    """Print the faults of findings as they come, and return all findings.

    Print a repetition without faults, too, and possible causes of a difference.
    """
    found = []
    for one in findings:
        found.append(one)
        about, of = api.one_line(one.trial), one.record
        about += f" ({of.label}, seed {of.seed}, {of.dataset}, {of.protocol})" if of else ""
        for fault in first(one.faults, most):
            typer.echo(f"{one.verdict}: {about}: {fault}", err=err)
        if one.seal is not None:  # a repetition
            size = f", largest difference {one.difference:.2g} of their range" if one.difference else ""
            if not one.faults:
                typer.echo(f"repeats {one.verdict}{size}: {about}")
            for remark in one.remarks if one.verdict != "to the bit" else ():
                typer.echo(f"  possible cause: {api.one_line(remark)}")
    return found


@contextmanager
def box_failures(name: object) -> Iterator[None]:
    """Turn the failure of a detector inside the block into one line and exit code 1."""
    try:
        yield
    except api.BoxFailure as failure:
        say([f"tsadbench: {name}: {failure.status}: {failure.reason}"])
        raise typer.Exit(1) from None
