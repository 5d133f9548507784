"""Leaderboards for the eye: the same cells as a terminal table, Markdown or HTML."""

from __future__ import annotations

import html as html_module
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tsadbench.base.protocol import Metric
from tsadbench.errors import PluginError, UsageError
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.columns import DIAGNOSTICS, Diagnostic
from tsadbench.leaderboard.ranking import FLOOR_METRICS, UNDEFINED, Row
from tsadbench.registry import load_protocol
from tsadbench.utils.markdown import number, table_lines

if TYPE_CHECKING:
    from rich.table import Table

BELOW = "↓"
ALL_BELOW = "⇊"
LEGEND = (
    f"mean(std) over seeds. Best bold, second underlined, floors left out. {BELOW} does not beat the best floor; "
    f"{ALL_BELOW} in none of AUROC, AUPRC, Prac-F1. * chosen with the test labels: an upper bound, not a result. "
    "All metrics are point-wise, without point adjustment. "
    "Flagged and Anomalous: share of the rows that lie above the threshold, and that should."
)
DIAGNOSTIC = "†"
_DIAGNOSTIC = f"{DIAGNOSTIC} diagnostic, from the stored scores and flags; it takes no part in the ranking."
_OPERATIONAL = (
    "Found: share of the events with a flagged row. Already on: share of the events at whose onset the alarm was on. "
    "Delay: mean from the onset to the alarm, look-ahead included, missed events left out. False alarms: runs of "
    "flagged normal rows, over normal time or rows. In false alarm: share of the normal rows that are flagged."
)
LEAKY = "⚠"
STORED = "°"
# The metrics that a narrow terminal gives up first.
_EXPENDABLE = ("precision", "recall", "mcc", "bf_f1")
# How a terminal's table becomes narrower: decimals, metrics left out, whether diagnostics get a table of their own.
_ATTEMPTS: tuple[tuple[int, tuple[str, ...], bool], ...] = (
    (4, (), False),
    (3, (), False),
    (4, (), True),
    (3, (), True),
    (3, _EXPENDABLE, True),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Parameters
    ----------
    text
        What it says.
    place
        Among the detectors: 1, 2 or 0.
    below
        Whether it is a detector's that is not above the floors.
    leads
        Whether it is a floor's that no detector beats.
    """

    text: str
    place: int = 0
    below: bool = False
    leads: bool = False

    @property
    def marked(self) -> str:
        """The text with the mark for a cell that does not beat the floors."""
        return f"{self.text}{BELOW}" if self.below else self.text


@dataclass(frozen=True, slots=True)
class Grid:
    """One table: its title, its header, and cells for detectors, floors and failures.

    Diagnostics stand in the columns from ``n_metrics`` on.
    """

    title: str
    header: tuple[str, ...]
    detectors: tuple[tuple[Cell, ...], ...]
    floors: tuple[tuple[Cell, ...], ...]
    failures: tuple[tuple[Cell, ...], ...]
    n_metrics: int


def grids(leaderboard: Leaderboard, decimals: int = 4, without: Sequence[str] = ()) -> list[Grid]:
    """Return a leaderboard's tables as cells.

    Parameters
    ----------
    leaderboard
        What to show.
    decimals
        Of metrics.
    without
        Names of metrics to leave out.
    """
    return [_grid(rows, decimals, without) for rows in leaderboard.tables().values()]


def markdown(leaderboard: Leaderboard) -> str:
    """Return a leaderboard as Markdown, the legend and the notes below."""
    parts = []
    for grid in grids(leaderboard):
        blocks = (*grid.detectors, *grid.floors, *grid.failures)
        lines = table_lines(grid.header, [[_markdown_cell(cell) for cell in row] for row in blocks])
        parts += [f"### {grid.title}", "", *lines, ""]
    parts += [legend(leaderboard), *(f"\n- {note}" for note in (*leaderboard.notes, *failure_lines(leaderboard)))]
    return "\n".join(parts) + "\n"


def html(leaderboard: Leaderboard) -> str:
    """Return a leaderboard as HTML tables, for notebooks."""
    parts = []
    for grid in grids(leaderboard):
        head = "".join(f"<th>{html_module.escape(cell)}</th>" for cell in grid.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{_html_cell(cell)}</td>" for cell in row) + "</tr>"
            for block in (grid.detectors, grid.floors, grid.failures)
            for row in block
        )
        title = html_module.escape(grid.title)
        parts.append(f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    notes = "".join(
        f"<p>{html_module.escape(text)}</p>"
        for text in (legend(leaderboard), *leaderboard.notes, *failure_lines(leaderboard))
    )
    return "".join(parts) + notes


def terminal(leaderboard: Leaderboard, width: int) -> list[Table]:
    """Return a leaderboard as rich tables that fit the width.

    Where they must: with fewer decimals, with diagnostics in tables of their own, with fewer metrics.
    """
    for decimals, without, apart in _ATTEMPTS:
        shown = grids(leaderboard, decimals, without)
        tables = [_rich(_columns(grid, range(grid.n_metrics)) if apart else grid) for grid in shown]
        if all(_width(table) <= width for table in tables):
            break
    if without:
        for table in tables:
            table.caption = f"left out for want of width: {', '.join(without)} (--format markdown has them)"
    if not apart:
        return tables
    return [one for grid, table in zip(shown, tables, strict=True) for one in (table, *_beside(grid, width))]


def _grid(rows: Sequence[Row], decimals: int, without: Sequence[str]) -> Grid:
    metrics = [metric for metric in metrics_of(rows) if metric.name not in without]
    places = {metric.name: places_of(rows, metric) for metric in metrics}
    leading = {metric.name: _leading_floors(rows, metric) for metric in metrics}
    titles = (f"{metric.title}{'*' if metric.oracle else ''}" for metric in metrics)
    extra = _diagnostics(rows)
    header = ("detector", *titles, "Anomalous", "look-ahead", "coverage", "seeds")
    header += tuple(f"{one.title}{DIAGNOSTIC}" for one in extra)

    def cells(row: Row) -> tuple[Cell, ...]:
        below = row.below_floor or ()
        marks = [(ALL_BELOW, set(below) == set(FLOOR_METRICS)), (LEAKY, bool(row.leaky)), (STORED, row.stored)]
        name = " ".join([*(mark for mark, applies in marks if applies), row.label])
        shown = [
            Cell(
                row.metrics.get(m.name, UNDEFINED).text(decimals),
                places[m.name].get(row.label, 0),
                m.name in below,
                row.label in leading[m.name],
            )
            for m in metrics
        ]
        beside = [
            Cell(row.diagnostics.get(one.name, UNDEFINED).text(decimals if one.decimals is None else one.decimals))
            for one in extra
        ]
        anomalous = Cell("-" if not row.n_rows else number((row.n_anomalous or 0) / row.n_rows, decimals))
        about = (anomalous, Cell(str(row.look_ahead)), Cell(_share(row.coverage)), Cell(_seeds(row)))
        return (Cell(name), *shown, *about, *beside)

    return Grid(
        title=title_of(rows),
        header=header,
        detectors=tuple(cells(row) for row in rows if row.ok and not row.floor),
        floors=tuple(cells(row) for row in rows if row.ok and row.floor),
        failures=tuple(cells(row) for row in rows if not row.ok),
        n_metrics=len(header) - len(extra),
    )


def _beside(grid: Grid, width: int) -> list[Table]:
    """Return a table's diagnostics as tables of their own, as many columns in each as the width takes."""
    tables: list[Table] = []
    chosen: list[int] = []
    for column in range(grid.n_metrics, len(grid.header)):
        wider = _rich(_columns(grid, [0, *chosen, column]))
        if chosen and _width(wider) <= width:
            chosen.append(column)
            tables[-1] = wider
        else:
            chosen = [column]
            tables.append(_rich(_columns(grid, [0, column])))
    return tables


def _columns(grid: Grid, chosen: Sequence[int]) -> Grid:
    """Return some columns of a table as a table."""

    def cells(rows: Sequence[tuple[Cell, ...]]) -> tuple[tuple[Cell, ...], ...]:
        return tuple(tuple(row[i] for i in chosen) for row in rows)

    header = tuple(grid.header[i] for i in chosen)
    return Grid(grid.title, header, cells(grid.detectors), cells(grid.floors), cells(grid.failures), len(header))


def _diagnostics(rows: Sequence[Row]) -> list[Diagnostic]:
    """Return the diagnostics that a table shows: those that are defined in one of its rows."""
    defined = {name for row in rows for name, summary in row.diagnostics.items() if summary.mean is not None}
    return [one for one in DIAGNOSTICS if one.name in defined and one.instead_of not in defined]


def metrics_of(rows: Sequence[Row]) -> list[Metric]:
    """Return the protocol's metrics; where its plugin is gone, whatever the rows hold."""
    names = next((list(row.metrics) for row in rows if row.ok), [])
    try:
        known = {metric.name: metric for metric in load_protocol(_protocol_name(rows)).metrics}
    except (PluginError, UsageError):
        known = {}
    return [known.get(name, Metric(name, name, better=None)) for name in names]


def _protocol_name(rows: Sequence[Row]) -> str:
    return rows[0].protocol.partition("[")[0]


def title_of(rows: Sequence[Row]) -> str:
    """Return a table's title: its data, split and protocol, and how many of its rows are anomalous."""
    first = next((row for row in rows if row.ok), rows[0])
    summary = summary_of(rows)
    title = f"{first.dataset}, split {first.split}, protocol {first.protocol}{f' ({summary})' if summary else ''}"
    if first.n_rows and first.n_anomalous is not None:
        title += f": {first.n_rows:,} rows, {first.n_anomalous / first.n_rows:.1%} anomalous"
    return title


def summary_of(rows: Sequence[Row]) -> str:
    """Return what the rows' protocol says of itself; empty where its plugin is gone."""
    try:
        return load_protocol(_protocol_name(rows)).summary
    except (PluginError, UsageError):
        return ""


def places_of(rows: Sequence[Row], metric: Metric) -> dict[str, int]:
    """Return 1 for the best and 2 for the second-best detectors of a metric; equal values share a place."""
    values = _ranked_means(rows, metric)
    if metric.better is None or len(values) < 2:
        return {}
    order = sorted(set(values.values()), reverse=metric.better == "higher")[:2]
    return {label: order.index(value) + 1 for label, value in values.items() if value in order}


def _leading_floors(rows: Sequence[Row], metric: Metric) -> set[str]:
    """Return the floors that no detector beats in a metric."""
    values = list(_ranked_means(rows, metric).values())
    floors = _ranked_means(rows, metric, floors=True)
    if metric.better is None or not values:
        return set()
    if metric.better == "higher":
        return {label for label, value in floors.items() if value >= max(values)}
    return {label for label, value in floors.items() if value <= min(values)}


def _ranked_means(rows: Sequence[Row], metric: Metric, *, floors: bool = False) -> dict[str, float]:
    """Return the means of the detectors, or the floors, that take part in a ranking."""
    return {
        row.label: mean
        for row in rows
        if row.ok and row.floor == floors and not row.leaky and (mean := row.metrics[metric.name].mean) is not None
    }


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _seeds(row: Row) -> str:
    return str(len(row.seeds)) if row.ok else f"{row.status} in {len(row.failed)} of {len(row.seeds)}"


def _markdown_cell(cell: Cell) -> str:
    return {1: f"**{cell.marked}**", 2: f"<u>{cell.marked}</u>"}.get(cell.place, cell.marked)


def _html_cell(cell: Cell) -> str:
    text = html_module.escape(cell.marked)
    return {1: f"<b>{text}</b>", 2: f"<u>{text}</u>"}.get(cell.place, text)


def _rich(grid: Grid) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = Text(grid.title, style="table.title")  # a string's brackets would be markup
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left", pad_edge=False)
    for i, name in enumerate(grid.header):
        table.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
    styles = {1: "bold", 2: "underline"}
    for block, style in ((grid.detectors, ""), (grid.floors, "dim"), (grid.failures, "red")):
        for row in block:
            table.add_row(*(Text(cell.marked, style=styles.get(cell.place, "")) for cell in row), style=style)
        table.add_section()
    return table


def legend(leaderboard: Leaderboard) -> str:
    """Return what the marks in a leaderboard mean."""
    leaks = dict.fromkeys(row.leaky for row in leaderboard.rows if row.leaky)
    made = dict.fromkeys(_made(row) for row in leaderboard.rows if row.stored)
    return " ".join(
        [
            LEGEND,
            *([_DIAGNOSTIC] if any(row.diagnostics for row in leaderboard.rows) else []),
            *([_OPERATIONAL] if any("found" in row.diagnostics for row in leaderboard.rows) else []),
            *(f"{LEAKY} leaky, only to compare, out of the ranking: it uses the {leak}." for leak in leaks),
            *([f"{STORED} stored: made earlier, with {'; with '.join(made)}."] if made else []),
        ]
    )


def _made(row: Row) -> str:
    """Return when and with what a stored row was made."""
    versions = row.records[0].manifest.get("versions")
    version = versions.get("tsadbench") if isinstance(versions, dict) else None
    day = min(str(record.manifest.get("started"))[:10] for record in row.records)
    return f"tsadbench {version} on {day}"


def failure_lines(leaderboard: Leaderboard) -> list[str]:
    """Return a line for each detector that failed, the first reason in it; of several data sets, which one it was."""
    several = len({(row.dataset, row.protocol) for row in leaderboard.rows}) > 1
    rows = {(row.dataset, row.protocol, row.label): row for row in leaderboard.rows if not row.ok}
    return [
        (f"{dataset}, protocol {protocol}: " if several else "")
        + f"{label}: {row.status} in {len(row.failed)} of {len(row.seeds)} trials: {row.failed[0]['reason']}"
        for (dataset, protocol, label), row in rows.items()
    ]


def _width(table: Table) -> int:
    from rich.console import Console

    return Console(width=10_000).measure(table).maximum
