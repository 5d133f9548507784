"""Leaderboards as rich tables that fit a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tsadbench.leaderboard.cells import SPREAD, Grid, grids
from tsadbench.leaderboard.ranking import Row, by_table
from tsadbench.utils.grouping import grouped

# The metrics that a narrow terminal gives up first.
_EXPENDABLE = ("precision", "recall", "mcc", "bf_f1")
# The title has it.
_TITLED = "Anomalous"
# How tables become narrower: decimals, metrics left out, and how many of metrics, throughput and diagnostics stand in
# one table, before the others get tables of their own.
_ATTEMPTS: tuple[tuple[int, tuple[str, ...], int], ...] = (
    (4, (), 3),
    (3, (), 3),
    (4, (), 2),
    (3, (), 2),
    (4, (), 1),
    (3, (), 1),
    (3, _EXPENDABLE, 1),
    (3, (*_EXPENDABLE, "flagged"), 1),
    (3, (*_EXPENDABLE, "flagged", SPREAD), 1),
)


def terminal(
    rows: Sequence[Row], width: int, most: int | None = None, floors: Collection[str] | None = ()
) -> list[Table]:
    """Return ranked rows as rich tables that fit the width.

    If they do not fit as they are: with fewer decimals, with diagnostics in tables of their own, with throughput in one
    behind the splits, as it is the same on all of them, with fewer metrics.

    Parameters
    ----------
    rows
        What to show.
    width
        In characters.
    most
        How many detectors, and how many failures, a table shows; None for all.
    floors
        Labels of the floors to show beside the best one in each metric; None: all.
    """
    for decimals, without, n_together in _ATTEMPTS if any(row.entities for row in rows) else _ATTEMPTS[:-1]:
        shown = grids(rows, decimals, without, most, floors)
        tables = [_rich(_together(grid, n_together, narrow=bool(without))) for grid in shown]
        if all(_width(table) <= width for table in tables):
            break
    if without:
        for table in tables:
            omitted = f"omitted to fit the terminal: {', '.join(without)} (--format markdown has them)"
            table.caption = "; ".join(text for text in (str(table.caption or ""), omitted) if text)
    pairs = zip(by_table(rows), shown, tables, strict=True)
    parts: list[Table] = []
    for (dataset, rules), of_splits in grouped(pairs, lambda pair: pair[0][:2]).items():
        for _, grid, table in of_splits:
            parts += [table, *(_diagnostics(grid, width) if n_together < 3 else ())]
        if n_together < 2:
            _, first, _ = of_splits[0]
            parts.append(_rich(_throughput(first, f"{dataset}, protocol {rules}: throughput")))
    return parts


def _together(grid: Grid, n_together: int, *, narrow: bool) -> Grid:
    n_columns = (grid.n_metrics, grid.n_measures, len(grid.header))[n_together - 1]
    return grid.columns([i for i in range(n_columns) if not (narrow and grid.header[i] == _TITLED)])


def _throughput(grid: Grid, title: str) -> Grid:
    return replace(grid.columns([0, *range(grid.n_metrics, grid.n_measures)]), title=title)


def _diagnostics(grid: Grid, width: int) -> Iterator[Table]:
    """Yield a table's diagnostics as tables of their own, each with as many columns as fit the width."""
    chosen: list[int] = []
    for column in range(grid.n_measures, len(grid.header)):
        if chosen and _width(_rich(grid.columns([0, *chosen, column]))) > width:
            yield _rich(grid.columns([0, *chosen]))
            chosen = []
        chosen.append(column)
    if chosen:
        yield _rich(grid.columns([0, *chosen]))


def _rich(grid: Grid) -> Table:
    title = Text(grid.title, style="table.title")  # a string's brackets would be markup
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left", pad_edge=False)
    notes = []
    if grid.n_folded:
        n_floors = grid.n_folded + len(grid.floors)
        notes.append(f"of {n_floors} floors the best in each metric: `tsadbench leaderboard --all-floors` has all")
    if grid.n_left_out:
        notes.append(f"{grid.n_left_out:,} more rows: `tsadbench leaderboard --rows 0`, or --format csv, has them")
    table.caption = "; ".join(notes) or None
    for i, name in enumerate(grid.header):
        table.add_column(Text(name), justify="left" if i == 0 else "right", no_wrap=True)
    styles = {1: "bold", 2: "underline"}
    for block, style in zip(grid.blocks, ("", "dim", "red"), strict=True):
        for row in block:
            table.add_row(*(Text(cell.marked, style=styles.get(cell.rank, "")) for cell in row), style=style)
        table.add_section()
    return table


def _width(table: Table) -> int:
    return Console(width=10_000).measure(table).maximum
