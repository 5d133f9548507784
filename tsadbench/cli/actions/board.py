"""Leaderboards on standard output, and the diagnostics that options add to them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import typer

from tsadbench.analysis.diagnostics import with_diagnostics
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Episode
from tsadbench.cli.live import progress_bar
from tsadbench.cli.output import BoardFormat, wide_console
from tsadbench.errors import TsadbenchError
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.screen import ROWS, on_screen
from tsadbench.results.trial_result import TrialResult, protocol_of, readable_result
from tsadbench.results.unit_values import RECORDINGS, UnitValues
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.grouping import grouped
from tsadbench.utils.names import inside
from tsadbench.utils.progress import progress


def show(board: Leaderboard, form: BoardFormat, rows: int = ROWS, floors: Collection[str] | None = ()) -> None:
    """Print a leaderboard on standard output.

    As tables, with the first ``rows`` detectors of each (0: all), the best floor in each metric, and the floors of
    these labels (None: all).
    """
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
    for part in on_screen(board.rows, board.notes, console.width, rows or None, floors, board.columns):
        console.print(part)


def write_unit_values(
    board: Leaderboard, store: Store, load: Callable[[str], LabelledDataset], folder: Path
) -> list[Path]:
    """Write the metrics of a leaderboard's trials by recording and session beside their records; return the files.

    Those of other committed trials stay.

    Where data or scores are missing, a line on standard error says so.
    """
    tables = grouped(board.rows, lambda row: (row.dataset, row.protocol))
    written = []
    for (dataset, protocol), rows in tables.items():
        records = {record.trial: record for row in rows for record in row.records if record.status == "ok"}
        try:
            data = load(dataset)
            episodes = tuple(protocol_of(rows[0].first).episodes(data.dataset))
            with progress_bar("Judging by recording"):
                values = UnitValues.of(_results([*records.values()], store, data, episodes), data)
            file = inside(folder, dataset, protocol, RECORDINGS)
            if file.is_file():
                values = values.joined_with(UnitValues.read(file))
        except TsadbenchError as error:
            typer.echo(f"note: no metrics by recording are written for {dataset}, {protocol}: {error}", err=True)
            continue
        text = "".join(f"{line}\n" for line in values.lines())
        written.append(write_file(file, text))
    return written


def _results(
    records: Sequence[Record], store: Store, data: LabelledDataset, episodes: Sequence[Episode]
) -> Iterator[TrialResult]:
    for done, record in enumerate(records):
        progress(done, len(records), f"{record.dataset}: {record.label}")
        result = readable_result(record, store, data, episodes)
        if result is not None:
            yield result


def add_diagnostics(
    board: Leaderboard, groups: Sequence[str], store: Store, load: Callable[[str], LabelledDataset]
) -> Leaderboard:
    """Return the leaderboard with groups of diagnostics; unchanged if none are asked for."""
    if not groups:
        return board
    with progress_bar("Diagnostics"):
        return with_diagnostics(board, store, load, groups)
