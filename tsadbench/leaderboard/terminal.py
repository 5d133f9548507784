"""Leaderboards as rich tables that fit a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tsadbench.leaderboard.cells import Grid, grids
from tsadbench.leaderboard.ranking import Row

# The metrics that a narrow terminal gives up first.
_EXPENDABLE = ("precision", "recall", "mcc", "bf_f1")
# How tables become narrower: decimals, metrics left out, whether diagnostics get a table of their own.
_ATTEMPTS: tuple[tuple[int, tuple[str, ...], bool], ...] = (
    (4, (), False),
    (3, (), False),
    (4, (), True),
    (3, (), True),
    (3, _EXPENDABLE, True),
)


def terminal(rows: Sequence[Row], width: int) -> list[Table]:
    """Return ranked rows as rich tables that fit the width.

    If they do not fit as they are: with fewer decimals, with diagnostics in tables of their own, with fewer metrics.
    """
    for decimals, without, apart in _ATTEMPTS:
        shown = grids(rows, decimals, without)
        tables = [_rich(grid.columns(range(grid.n_metrics)) if apart else grid) for grid in shown]
        if all(_width(table) <= width for table in tables):
            break
    if without:
        for table in tables:
            table.caption = f"omitted to fit the terminal: {', '.join(without)} (--format markdown has them)"
    if not apart:
        return tables
    return [part for grid, table in zip(shown, tables, strict=True) for part in (table, *_diagnostics(grid, width))]


def _diagnostics(grid: Grid, width: int) -> list[Table]:
    """Return a table's diagnostics as tables of their own, each with as many columns as fit the width."""
    tables: list[Table] = []
    chosen: list[int] = []
    for column in range(grid.n_metrics, len(grid.header)):
        wider = _rich(grid.columns([0, *chosen, column]))
        if chosen and _width(wider) <= width:
            chosen.append(column)
            tables[-1] = wider
        else:
            chosen = [column]
            tables.append(_rich(grid.columns([0, column])))
    return tables


def _rich(grid: Grid) -> Table:
    title = Text(grid.title, style="table.title")  # a string's brackets would be markup
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left", pad_edge=False)
    for i, name in enumerate(grid.header):
        table.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
    styles = {1: "bold", 2: "underline"}
    for block, style in zip(grid.blocks, ("", "dim", "red"), strict=True):
        for row in block:
            table.add_row(*(Text(cell.marked, style=styles.get(cell.rank, "")) for cell in row), style=style)
        table.add_section()
    return table


def _width(table: Table) -> int:
    return Console(width=10_000).measure(table).maximum
