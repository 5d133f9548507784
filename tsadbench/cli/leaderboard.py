"""``tsadbench leaderboard``: tables from a run store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli.live import progress_bar
from tsadbench.cli.options import (
    ColumnsOption,
    DataOption,
    DiagnosticsOption,
    ShownOption,
    SplitsOption,
    WideOption,
    format_option,
)
from tsadbench.cli.output import BoardFormat, wide_console
from tsadbench.errors import UsageError

if TYPE_CHECKING:
    from tsadbench.base.dataset import LabelledDataset
    from tsadbench.execution.record import Record
    from tsadbench.execution.store import Store
    from tsadbench.leaderboard.board import Leaderboard


def leaderboard(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUNS...", help="Run stores: folders that `tsadbench run --out` has written."),
    ],
    split: SplitsOption = None,
    detector: ShownOption = None,
    columns: ColumnsOption = None,
    form: Annotated[BoardFormat, format_option] = "table",
    wide: WideOption = False,
    write: Annotated[
        Path | None,
        typer.Option(
            help="Write <data set>/<protocol>/<split>.csv and .md below this folder instead, with the records."
        ),
    ] = None,
    smoothing: Annotated[
        int,
        typer.Option(
            metavar="ROWS",
            min=1,
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
    """Rank the trials of run stores; of a row that several have, the last store's counts.

    --diagnostics also compares their scores with the data.
    """
    from tsadbench.datasets.loading import loader
    from tsadbench.execution.store import Store, require_outside_stores
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.leaderboard.columns import groups_of

    groups = groups_of(diagnostics or ())
    if write is not None and (detector or columns or smoothing > 1):
        raise UsageError("--write is for whole tables: leave out --detector, --columns and --smoothing")
    stores = [Store.open(folder) for folder in runs]
    if write is not None:
        require_outside_stores(write)
    load = loader(dataset or [], data)
    boards = []
    for store in stores:
        records = _judged(store, load) if smoothing == 1 else _smoothed(store, load, smoothing)
        boards.append(add_diagnostics(Leaderboard.of_store(store, records, split or ()), groups, store, load))
    board = Leaderboard.joined(boards)
    if write is not None:
        for file in board.write(write):
            typer.echo(file, err=True)
        return
    of_store = board.frame.loc[~board.frame["stored"] & ~board.frame["floor"], "detector"]
    own = {*detector} if detector else {*of_store} if board.frame["stored"].any() else set()
    show(board.chosen(detector) if detector else board, form, wide=wide, columns=columns or (), own=own)


def _judged(store: Store, load: Callable[[str], LabelledDataset]) -> tuple[Record, ...]:
    from tsadbench.analysis.stored import all_records
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
    from tsadbench.analysis.stored import all_records
    from tsadbench.results.judging import judge_smoothed
    from tsadbench.utils.grouping import grouped

    with progress_bar("Judging"):
        records, left_out = judge_smoothed(all_records(store), store, load, rows)
    for reason, alike in grouped(left_out, left_out.__getitem__).items():
        typer.echo(f"note: left out, because they cannot be judged again: {', '.join(alike)}: {reason}", err=True)
    if not records:
        raise UsageError(f"--smoothing {rows}: no trial of {store.path} can be judged again")
    return records


def show(
    board: Leaderboard, form: BoardFormat, *, wide: bool = False, columns: Sequence[str] = (), own: Collection[str] = ()
) -> None:
    """Print a leaderboard on standard output; ``own`` are labels of rows to mark."""
    if form == "table":
        board.print(wide_console(), wide=wide, columns=columns, own=own)
    else:
        typer.echo(board.to(form, columns=columns, wide=wide or form == "markdown"), nl=False)


def add_diagnostics(
    board: Leaderboard, groups: Sequence[str], store: Store, load: Callable[[str], LabelledDataset]
) -> Leaderboard:
    """Return the leaderboard with groups of diagnostics; unchanged if none are asked for."""
    from tsadbench.analysis.diagnostics import with_diagnostics

    if not groups:
        return board
    with progress_bar("Diagnostics"):
        return with_diagnostics(board, store, load, groups)
