"""``tsadbench leaderboard``: tables from a run store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.options import (
    DataOption,
    DiagnosticsOption,
    RunsArgument,
    SplitsOption,
    VusBufferOption,
    format_option,
)
from tsadbench.cli.output import BoardFormat


def leaderboard(
    runs: RunsArgument,
    split: SplitsOption = None,
    form: Annotated[BoardFormat, format_option] = "table",
    write: Annotated[
        Path | None,
        typer.Option(help="Write <data set>/<protocol>/<split>.csv, .md and .json below this folder instead."),
    ] = None,
    rows: Annotated[
        int, typer.Option(min=0, help="How many detectors each table of --format table shows, the best first; 0: all.")
    ] = 50,
    diagnostics: DiagnosticsOption = None,
    vus_buffer: VusBufferOption = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="CARD", help="Card of a data set of your own, if diagnostics need it; may be repeated."),
    ] = None,
    data: DataOption = None,
) -> None:
    """Rank the trials of a run store; --diagnostics also compares their scores with the data."""
    from tsadbench.cli.actions.board import Diagnostics, show
    from tsadbench.cli.actions.loading import loader
    from tsadbench.execution.run_store import Store
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.leaderboard.selection import all_records
    from tsadbench.results.judging import judge_outdated
    from tsadbench.utils.collector import collector_paused

    asked = Diagnostics.from_options(diagnostics, vus_buffer)
    store = Store.open(runs)
    load = loader(dataset or [], data)
    with collector_paused():
        records, n_left = judge_outdated(all_records(store), store, load)
        board = Leaderboard.from_records(records, split or ())
    if n_left:
        typer.echo(
            f"note: {n_left} trials were judged by other rules than today's and are shown as recorded: their data, "
            f"their scores or their protocol are not available; run  tsadbench judge {runs}  to see why",
            err=True,
        )
    board = asked.add(board, store, load)
    with collector_paused():
        if write is None:
            show(board, form, rows)
        else:
            for file in board.write(write):
                typer.echo(file, err=True)
