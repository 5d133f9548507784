"""Leaderboards for the eye: the same cells as a terminal table, Markdown or HTML."""

from __future__ import annotations

import html as html_module
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tsadbench.errors import PluginError, UsageError
from tsadbench.leaderboard import Leaderboard
from tsadbench.protocol import Metric
from tsadbench.registry import load_protocol
from tsadbench.rows import FLOOR_METRICS, Row

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
LEAKY = "⚠"
STORED = "°"
# The metrics that a narrow terminal gives up first.
_EXPENDABLE = ("precision", "recall", "mcc", "bf_f1")


@dataclass(frozen=True, slots=True)
class Cell:
    """A table's cell: its text, its place among the detectors (1, 2 or 0), whether it is not above the floors."""

    text: str
    place: int = 0
    below: bool = False

    @property
    def marked(self) -> str:
        """The text with the mark for a cell that does not beat the floors."""
        return f"{self.text}{BELOW}" if self.below else self.text


@dataclass(frozen=True, slots=True)
class Grid:
    """One table: its title, its header, and cells for detectors, floors and failures."""

    title: str
    header: tuple[str, ...]
    detectors: tuple[tuple[Cell, ...], ...]
    floors: tuple[tuple[Cell, ...], ...]
    failures: tuple[tuple[Cell, ...], ...]


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
        parts += [f"### {grid.title}", "", _markdown_line(grid.header), _markdown_line(["---"] * len(grid.header))]
        for block in (grid.detectors, grid.floors, grid.failures):
            parts += [_markdown_line([_markdown_cell(cell) for cell in row]) for row in block]
        parts.append("")
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
    """Return a leaderboard as rich tables that fit the width: fewer decimals, then fewer metrics where they must."""
    for decimals, without in ((4, ()), (3, ()), (3, _EXPENDABLE)):
        tables = [_rich(grid) for grid in grids(leaderboard, decimals, without)]
        if all(_width(table) <= width for table in tables):
            break
    if without:
        for table in tables:
            table.caption = f"left out for want of width: {', '.join(without)} (--format markdown has them)"
    return tables


def _grid(rows: Sequence[Row], decimals: int, without: Sequence[str]) -> Grid:
    metrics = [metric for metric in _metrics(rows) if metric.name not in without]
    places = {metric.name: _places(rows, metric) for metric in metrics}
    titles = (f"{metric.title}{'*' if metric.oracle else ''}" for metric in metrics)
    header = ("detector", *titles, "Anomalous", "look-ahead", "coverage", "seeds")

    def cells(row: Row) -> tuple[Cell, ...]:
        below = row.below_floor or ()
        marks = [(ALL_BELOW, set(below) == set(FLOOR_METRICS)), (LEAKY, bool(row.leaky)), (STORED, row.stored)]
        name = " ".join([*(mark for mark, applies in marks if applies), row.label])
        shown = [
            Cell(_mean_std(row, m.name, decimals), places[m.name].get(row.label, 0), m.name in below) for m in metrics
        ]
        anomalous = Cell("-" if not row.n_rows else number((row.n_anomalous or 0) / row.n_rows, decimals))
        return (Cell(name), *shown, anomalous, Cell(str(row.look_ahead)), Cell(_share(row.coverage)), Cell(_seeds(row)))

    return Grid(
        title=_title(rows),
        header=header,
        detectors=tuple(cells(row) for row in rows if row.ok and not row.floor),
        floors=tuple(cells(row) for row in rows if row.ok and row.floor),
        failures=tuple(cells(row) for row in rows if not row.ok),
    )


def _metrics(rows: Sequence[Row]) -> list[Metric]:
    """Return the protocol's metrics; where its plugin is gone, whatever the rows hold."""
    names = next((list(row.metrics) for row in rows if row.ok), [])
    try:
        known = {metric.name: metric for metric in load_protocol(_protocol_name(rows)).metrics}
    except (PluginError, UsageError):
        known = {}
    return [known.get(name, Metric(name, name, better=None)) for name in names]


def _protocol_name(rows: Sequence[Row]) -> str:
    return rows[0].protocol.partition("[")[0]


def _title(rows: Sequence[Row]) -> str:
    first = next((row for row in rows if row.ok), rows[0])
    try:
        summary = f" ({load_protocol(_protocol_name(rows)).summary})"
    except (PluginError, UsageError):
        summary = ""
    title = f"{first.dataset}, split {first.split}, protocol {first.protocol}{summary}"
    if first.n_rows and first.n_anomalous is not None:
        title += f": {first.n_rows:,} rows, {first.n_anomalous / first.n_rows:.1%} anomalous"
    return title


def _places(rows: Sequence[Row], metric: Metric) -> dict[str, int]:
    """Return 1 for the best and 2 for the second-best detectors of a metric; equal values share a place."""
    values = {
        row.label: mean
        for row in rows
        if row.ok and not row.floor and not row.leaky and (mean := row.metrics[metric.name].mean) is not None
    }
    if metric.better is None or len(values) < 2:
        return {}
    order = sorted(set(values.values()), reverse=metric.better == "higher")[:2]
    return {label: order.index(value) + 1 for label, value in values.items() if value in order}


def _mean_std(row: Row, name: str, decimals: int) -> str:
    summary = row.metrics.get(name)
    if summary is None or summary.mean is None:
        return "-"
    spread = "" if summary.std is None else f"({number(summary.std, decimals)})"
    return f"{number(summary.mean, decimals)}{spread}"


def number(value: float, decimals: int, *, signed: bool = False) -> str:
    """Return a number as tables show it: without the zero before the point."""
    text = f"{value:{'+' if signed else ''}.{decimals}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _seeds(row: Row) -> str:
    return str(len(row.seeds)) if row.ok else f"{row.status} in {len(row.failed)} of {len(row.seeds)}"


def _markdown_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    text = cell.marked.replace("|", "\\|").replace("\n", " ")
    return {1: f"**{text}**", 2: f"<u>{text}</u>"}.get(cell.place, text)


def _html_cell(cell: Cell) -> str:
    text = html_module.escape(cell.marked)
    return {1: f"<b>{text}</b>", 2: f"<u>{text}</u>"}.get(cell.place, text)


def _rich(grid: Grid) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=grid.title, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left", pad_edge=False)
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
