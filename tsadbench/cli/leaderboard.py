"""``tsadbench leaderboard``: tables from a run store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli.live import progress_bar
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
from tsadbench.cli.output import BoardFormat, wide_console
from tsadbench.errors import TsadbenchError, UsageError

if TYPE_CHECKING:
    from tsadbench.base.dataset import LabelledDataset
    from tsadbench.base.protocol import Episode
    from tsadbench.execution.record import Record
    from tsadbench.execution.store import Store
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.results.trial_result import TrialResult


def leaderboard(
    runs: RunsArgument,
    split: SplitsOption = None,
    detector: ShownOption = None,
    columns: ColumnsOption = None,
    form: Annotated[BoardFormat, format_option] = "table",
    write: Annotated[
        Path | None,
        typer.Option(
            help="Write <data set>/<protocol>/<split>.csv and .md below this folder instead, with the records "
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
    from tsadbench.datasets.loading import loader
    from tsadbench.execution.store import Store, require_outside_stores
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
        for file in [*board.write(write), *_write_unit_values(board, store, load, write)]:
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


def show(board: Leaderboard, form: BoardFormat, rows: int | None = None, floors: Collection[str] | None = ()) -> None:
    """Print a leaderboard on standard output.

    As tables, with the first ``rows`` detectors of each (None: as on screens, 0: all), the best floor in each metric,
    and the floors of these labels (None: all).
    """
    from tsadbench.leaderboard.screen import ROWS, on_screen

    texts = {
        "json": board.to_json,
        "csv": board.to_csv,
        "markdown": board.to_markdown,
        "latex": board.to_latex,
        "html": board.to_html,
    }
    if form != "table":
        sys.stdout.write(texts[form]())
        return
    console = wide_console()
    most = (ROWS if rows is None else rows) or None
    for part in on_screen(board.rows, board.notes, console.width, most, floors, board.columns):
        console.print(part)


def _write_unit_values(
    board: Leaderboard, store: Store, load: Callable[[str], LabelledDataset], folder: Path
) -> list[Path]:
    """Write the metrics of a leaderboard's trials by recording and session beside their records; return the files.

    Those of other committed trials stay.

    Where data or scores are missing, a line on standard error says so.
    """
    from tsadbench.leaderboard.board import inside
    from tsadbench.leaderboard.shipped import RECORDINGS, write_values
    from tsadbench.results.trial_result import protocol_of
    from tsadbench.utils.grouping import grouped

    tables = grouped(board.rows, lambda row: (row.dataset, row.protocol))
    written = []
    for (dataset, protocol), rows in tables.items():
        records = {record.trial: record for row in rows for record in row.records if record.status == "ok"}
        try:
            data = load(dataset)
            episodes = tuple(protocol_of(rows[0].first).episodes(data.dataset))
            with progress_bar("Judging by recording"):
                results = _results([*records.values()], store, data, episodes)
                written.append(write_values(inside(folder, dataset, protocol, RECORDINGS), results, data))
        except TsadbenchError as error:
            typer.echo(f"note: no metrics by recording are written for {dataset}, {protocol}: {error}", err=True)
    return written


def _results(
    records: Sequence[Record], store: Store, data: LabelledDataset, episodes: Sequence[Episode]
) -> Iterator[TrialResult]:
    from tsadbench.results.trial_result import readable_result
    from tsadbench.utils.progress import progress

    for done, record in enumerate(records):
        progress(done, len(records), f"{record.dataset}: {record.label}")
        result = readable_result(record, store, data, episodes)
        if result is not None:
            yield result


def add_diagnostics(
    board: Leaderboard, groups: Sequence[str], store: Store, load: Callable[[str], LabelledDataset]
) -> Leaderboard:
    """Return the leaderboard with groups of diagnostics; unchanged if none are asked for."""
    from tsadbench.analysis.diagnostics import with_diagnostics

    if not groups:
        return board
    with progress_bar("Diagnostics"):
        return with_diagnostics(board, store, load, groups)
