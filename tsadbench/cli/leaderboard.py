"""``tsadbench leaderboard``: tables from a run store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.output import Format, show


def leaderboard(
    runs: Annotated[Path, typer.Argument(help="A run store: what `tsadbench run --out` has written.")],
    split: Annotated[list[str] | None, typer.Option(help="Splits to show. Repeat for several; all.")] = None,
    form: Annotated[Format, typer.Option("--format", help="Format of standard output.")] = Format.table,
    write: Annotated[
        Path | None,
        typer.Option(help="Write <data set>/<protocol>/<split>.csv, .md and .json below this folder instead."),
    ] = None,
) -> None:
    """Rank the trials of a run store."""
    from tsadbench.errors import UsageError
    from tsadbench.leaderboard import Leaderboard
    from tsadbench.store import Store

    records = Store.open(runs).records()
    if not records:
        raise UsageError(f"{runs} holds no trials yet: run some with `tsadbench run --out {runs}`")
    board = Leaderboard.from_records(records, split or ())
    if write is None:
        show(board, form)
    else:
        for file in board.write(write):
            print(file, file=sys.stderr)
