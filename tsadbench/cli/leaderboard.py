"""``tsadbench leaderboard``: shows tables of run stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tsadbench import api
from tsadbench.cli import options, output
from tsadbench.errors import UsageError


def leaderboard(
    runs: options.Stores,
    split: options.Splits = None,
    detector: options.Labels = None,
    columns: Annotated[
        str, typer.Option(metavar="NAME,...", help="Columns to show, for instance auroc,auprc.", show_default="all")
    ] = "",
    form: options.ResultForm = "table",
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns, rows and notes.")] = False,
    write: Annotated[
        Path | None, typer.Option(help="Write records, and tables as CSV and Markdown, below this folder instead.")
    ] = None,
    diagnostics: Annotated[
        str, typer.Option(metavar="GROUP,...", help="Add operational, vus, affiliation, root-cause, or all.")
    ] = "",
    dataset: options.Datasets = None,
    data: options.Data = None,
) -> None:
    """Rank the trials of run stores; if several stores have a row, the last one counts.

    --diagnostics needs the stored scores and the data.
    """
    if write is not None and (detector or columns or diagnostics):
        raise UsageError("it writes whole tables: leave out --detector, --columns and --diagnostics", field="write")
    if columns and form in ("csv", "json"):
        raise UsageError("CSV and JSON have all columns", field="columns")
    if write is not None:
        api.require_outside_stores(write)
    groups = [name.strip() for name in diagnostics.split(",") if name.strip()]
    with api.progress_bar("Reading trials"):
        chosen: dict[str, Any] = {"dataset": dataset or (), "splits": split or (), "data": data, "diagnostics": groups}
        boards = [api.load_board(one, **chosen) for one in runs]
    board = api.Leaderboard.joined(boards)
    if write is not None:
        output.say(board.write(write))
        return
    of_store = board.frame.loc[~board.frame["stored"] & ~board.frame["floor"], "detector"]
    own = {*detector} if detector else {*of_store} if board.frame["stored"].any() else ()
    output.show_board(board.chosen(detector) if detector else board, form, wide=wide, columns=[columns], own=own)
