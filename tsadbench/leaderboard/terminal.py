"""Leaderboards as rich tables that fit a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tsadbench.leaderboard.cells import SPREAD, Grid, grids
from tsadbench.leaderboard.formatting import fitting, folded
from tsadbench.leaderboard.ranking import Row, by_table
from tsadbench.utils.grouping import grouped

# The metrics that a narrow terminal gives up first.
_EXPENDABLE = ("precision", "recall", "mcc", "bf_f1")
# The title has it.
_TITLED = "Anomalous"
# Behind the metrics, and in the title instead if all rows agree.
_ABOUT_TRIALS = ("look-ahead", "coverage", "seeds")
# How tables become narrower: decimals, metrics left out, and how many of these stand in one table, before the others
# get tables of their own: metrics, what is known about the trials, throughput, diagnostics.
_ATTEMPTS: tuple[tuple[int, tuple[str, ...], int], ...] = (
    (4, (), 4),
    (3, (), 4),
    (4, (), 3),
    (3, (), 3),
    (4, (), 2),
    (3, (), 2),
    (4, (), 1),
    (3, (), 1),
    (3, _EXPENDABLE, 2),
    (3, _EXPENDABLE, 1),
    (3, (*_EXPENDABLE, "flagged"), 2),
    (3, (*_EXPENDABLE, "flagged"), 1),
    (3, (*_EXPENDABLE, "flagged", SPREAD), 1),
)


def terminal(
    rows: Sequence[Row],
    width: int,
    most: int | None = None,
    floors: Collection[str] | None = (),
    columns: Sequence[str] = (),
) -> list[Table]:
    """Return ranked rows as rich tables that fit the width, with every name and number whole.

    A column that has the same value in all rows goes into the title. If a table does not fit as it is: with fewer
    decimals, with diagnostics in tables of their own, with throughput, look-ahead, coverage and seeds in one behind the
    splits, with fewer metrics; at last with long names on several lines and the metrics in several tables.
    """
    attempts = _ATTEMPTS if any(row.entities for row in rows) else _ATTEMPTS[:-1]
    for decimals, without, n_together in [one for one in attempts if not (columns and one[1])]:
        shown = grids(rows, decimals, without, most, floors, columns)
        if not columns:
            shown = [_without_constants(grid) for grid in shown]
        tables = [_together(grid, n_together) for grid in shown]
        if all(_width(_rich(table)) <= width for table in tables):
            break
    omitted = f"omitted to fit the terminal: {', '.join(without)} (--format markdown has them)" if without else ""
    parts: list[Table] = []
    pairs = zip(by_table(rows), shown, tables, strict=True)
    for (dataset, rules), of_splits in grouped(pairs, lambda pair: pair[0][:2]).items():
        nothing_ok = not any(grid.detectors or grid.floors for _, grid, _ in of_splits)
        for _, grid, table in of_splits[:1] if nothing_ok else of_splits:  # failures are the same on every split
            parts += _pieces(table, width, omitted)
            parts += _pieces(_picked(grid, range(grid.n_measures, len(grid.header))), width) if n_together < 4 else ()
        if n_together < 3:
            _, first, _ = of_splits[0]
            begin = _n_scores(first) if n_together < 2 else first.n_metrics
            title = f"{dataset}, protocol {rules}: {'trials' if n_together < 2 else 'throughput'}"
            parts += _pieces(replace(_picked(first, range(begin, first.n_measures)), title=title), width)
    return parts


def _n_scores(grid: Grid) -> int:
    """Return where the metrics end and what is known about the trials begins."""
    return next((i for i in range(grid.n_metrics) if grid.header[i] in _ABOUT_TRIALS), grid.n_metrics)


def _together(grid: Grid, n_together: int) -> Grid:
    n_columns = (_n_scores(grid), grid.n_metrics, grid.n_measures, len(grid.header))[n_together - 1]
    return grid.columns(range(n_columns))


def _picked(grid: Grid, chosen: Sequence[int]) -> Grid:
    return grid.columns([0, *chosen])


def _without_constants(grid: Grid) -> Grid:
    """Return the table with what is the same in all its rows, look-ahead for instance, in its title."""
    rows = [row for block in grid.blocks for row in block]
    values = {i: {row[i].text for row in rows} for i, name in enumerate(grid.header) if name in _ABOUT_TRIALS}
    constant = [i for i, found in values.items() if len(found) == 1 and len(rows) > 1]
    said = ", ".join(f"{grid.header[i]} {rows[0][i].text}" for i in constant)
    kept = [i for i, name in enumerate(grid.header) if i not in constant and name != _TITLED]
    return replace(
        grid.columns(kept),
        title=f"{grid.title}; {said}" if said else grid.title,
        n_metrics=sum(i < grid.n_metrics for i in kept),
        n_measures=sum(i < grid.n_measures for i in kept),
    )


def _pieces(grid: Grid, width: int, caption: str = "") -> Iterator[Table]:
    """Yield a table as one that fits the width, or as several, each with as many columns as fit."""
    if len(grid.header) < 2:
        return
    whole = _rich(grid, caption)
    if _width(whole) <= width:
        yield whole
        return
    grid = _folded(grid, width // 2)
    for chosen in fitting(range(1, len(grid.header)), lambda some: _width(_rich(_picked(grid, some))) <= width):
        yield _rich(_picked(grid, chosen), caption)


def _folded(grid: Grid, width: int) -> Grid:
    """Return the table with longer names on several lines, broken behind commas where that is possible."""
    detectors, floors, failures = (
        tuple((replace(row[0], text=folded(row[0].text, width)), *row[1:]) for row in block) for block in grid.blocks
    )
    return replace(grid, detectors=detectors, floors=floors, failures=failures)


def _rich(grid: Grid, caption: str = "") -> Table:
    title = Text(grid.title, style="table.title")  # a string's brackets would be markup
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left", pad_edge=False)
    notes = []
    if grid.n_folded:
        n_floors = grid.n_folded + len(grid.floors)
        notes.append(f"of {n_floors} floors the best in each metric: `tsadbench leaderboard --all-floors` has all")
    if grid.n_left_out:
        notes.append(f"{grid.n_left_out:,} more rows: `tsadbench leaderboard --rows 0`, or --format csv, has them")
    table.caption = "; ".join([*notes, *([caption] if caption else [])]) or None
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
