"""``tsadbench leaderboard``: tables from a run store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.data_loading import loader
from tsadbench.cli.diagnostics import DiagnosticsOption, VusBufferOption, add_diagnostics, check_options
from tsadbench.cli.output import Format, show


def leaderboard(
    runs: Annotated[Path, typer.Argument(help="A run store: what `tsadbench run --out` has written.")],
    split: Annotated[list[str] | None, typer.Option(help="Splits to show. Repeat for several; all.")] = None,
    form: Annotated[Format, typer.Option("--format", help="Format of standard output.")] = Format.table,
    write: Annotated[
        Path | None,
        typer.Option(help="Write <data set>/<protocol>/<split>.csv, .md and .json below this folder instead."),
    ] = None,
    diagnostics: DiagnosticsOption = None,
    vus_buffer: VusBufferOption = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Card of a data set of your own, where diagnostics need it. Repeat for several."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
) -> None:
    """Rank the trials of a run store; with --diagnostics lay their scores beside the data as well."""
    from tsadbench.execution.run_store import Store
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.leaderboard.selection import all_records

    check_options(diagnostics, vus_buffer)
    store = Store.open(runs)
    board = Leaderboard.from_records(all_records(store), split or ())
    board = add_diagnostics(board, store, loader(dataset or [], data), diagnostics, vus_buffer)
    if write is None:
        show(board, form)
    else:
        for file in board.write(write):
            print(file, file=sys.stderr)
