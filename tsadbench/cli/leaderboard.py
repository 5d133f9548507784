"""``tsadbench leaderboard``: tables from a run store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli.options import (
    AllFloorsOption,
    ColumnsOption,
    DataOption,
    DiagnosticsOption,
    RunsArgument,
    ShownOption,
    SplitsOption,
    format_option,
)
from tsadbench.cli.output import BoardFormat
from tsadbench.errors import UsageError

if TYPE_CHECKING:
    from tsadbench.base.dataset import LabelledDataset
    from tsadbench.execution.record import Record
    from tsadbench.execution.run_store import Store


def leaderboard(
    runs: RunsArgument,
    split: SplitsOption = None,
    detector: ShownOption = None,
    columns: ColumnsOption = None,
    form: Annotated[BoardFormat, format_option] = "table",
    write: Annotated[
        Path | None,
        typer.Option(
            help="Write <data set>/<protocol>/<split>.csv, .md and .json below this folder instead, with the records "
            "and their metrics by recording."
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option(min=0, help="How many detectors each table of --format table shows, the best first; 0: all.")
    ] = 50,
    all_floors: AllFloorsOption = False,
    smoothing: Annotated[
        int,
        typer.Option(
            metavar="ROWS",
            help="Smooth all scores with a moving average of ROWS rows before judging.",
        ),
    ] = 1,
    diagnostics: DiagnosticsOption = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="CARD", help="Card of a data set of your own, if diagnostics need it; may be repeated."),
    ] = None,
    data: DataOption = None,
) -> None:
    """Rank the trials of a run store; --diagnostics also compares their scores with the data."""
    from tsadbench.cli.actions.board import add_diagnostics, show, write_unit_values
    from tsadbench.datasets.by_name import loader
    from tsadbench.execution.run_store import Store, require_outside_stores
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.leaderboard.columns import groups_of

    groups = groups_of(diagnostics or ())
    if smoothing < 1:
        raise UsageError(f"--smoothing {smoothing}: expected a number of rows, at least 1")
    if write is not None and (detector or columns or smoothing > 1):
        raise UsageError("--write is for whole tables: leave out --detector, --columns and --smoothing")
    store = Store.open(runs)
    if write is not None:
        require_outside_stores(write)
    load = loader(dataset or [], data)
    records = _judged(store, load) if smoothing == 1 else _smoothed(store, load, smoothing)
    board = Leaderboard.from_records(records, split or (), checked_in=store.path)
    if detector or columns:
        board = board.chosen(detector or (), columns or ())
    board = add_diagnostics(board, groups, store, load)
    if write is None:
        show(board, form, rows, None if all_floors else ())
    else:
        for file in [*board.write(write), *write_unit_values(board, store, load, write)]:
            typer.echo(file, err=True)


def _judged(store: Store, load: Callable[[str], LabelledDataset]) -> tuple[Record, ...]:
    from tsadbench.leaderboard.selection import all_records
    from tsadbench.results.judging import judge_outdated

    records, n_left = judge_outdated(all_records(store), store, load)
    if n_left:
        typer.echo(
            f"note: {n_left} trials were judged by other rules than today's and are shown as recorded: their data, "
            f"their scores or their protocol are not available; run  tsadbench judge {store.path}  to see why",
            err=True,
        )
    return records


def _smoothed(store: Store, load: Callable[[str], LabelledDataset], rows: int) -> tuple[Record, ...]:
    from tsadbench.cli.live import progress_bar
    from tsadbench.leaderboard.selection import all_records
    from tsadbench.results.judging import judge_smoothed
    from tsadbench.utils.grouping import grouped

    with progress_bar("Judging"):
        records, left_out = judge_smoothed(all_records(store), store, load, rows)
    for reason, alike in grouped(left_out, left_out.__getitem__).items():
        typer.echo(f"note: left out, because they cannot be judged again: {', '.join(alike)}: {reason}", err=True)
    if not records:
        raise UsageError(f"--smoothing {rows}: no trial of {store.path} can be judged again")
    return records
