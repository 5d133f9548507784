"""The cells of ranked tables, with what their marks mean: what a terminal, Markdown, HTML and LaTeX show alike."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tsadbench.base.protocol import Metric, Protocol
from tsadbench.errors import PluginError, UsageError
from tsadbench.leaderboard.columns import Diagnostic, shown_diagnostics
from tsadbench.leaderboard.formatting import number
from tsadbench.leaderboard.marks import ALL_BELOW, Marks, marks_for, marks_legend
from tsadbench.leaderboard.presentation import places_of_columns
from tsadbench.leaderboard.ranking import UNDEFINED, Row, by_table
from tsadbench.leaderboard.throughput import COSTS, HEADER, throughput_legend, throughput_texts
from tsadbench.registry import load_protocol

BELOW = "↓"
# Behind the metrics; the keys of their columns.
_ABOUT_TRIALS = ("anomalous", "look_ahead", "coverage", "seeds")
LEGEND = (
    "mean(std) over seeds. Best bold, second underlined, of the detectors that beat every floor in that column. "
    f"{BELOW} does not beat the best floor; {ALL_BELOW} in none of AUROC, AUPRC, MCC. "
    "* chosen with the test labels: an upper bound, not a result. "
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
# What a terminal without room leaves out like a metric.
SPREAD = "spread over entities"
_SPREAD_DECIMALS = 2
_ENTITIES = (
    "Each entity has a model and a threshold of its own; a metric is the mean over the entities for which it is "
    "defined, \N{PLUS-MINUS SIGN} the standard deviation over them (ddof 1, of each one's mean over seeds)."
)
_ROOT_CAUSE = (
    "Hit@k: share of the events with known causes for which one of the k sensors that contributed most is to blame, "
    f"ties shared; in brackets what a random order of the sensors gets. {BELOW} there: not above that, or not above "
    "the best floor that has contributions."
)
_SMOOTHED = (
    "Smoothed: the scores of every row of the table, of the training rows as of the test rows, are averaged over each "
    "row and those before it in the same recording, and only then judged. What averages by itself is averaged twice."
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Parameters
    ----------
    text
        What it says.
    rank
        Among the detectors that beat every floor: 1 (best), 2 (second) or 0.
    below
        Whether it is a detector's that is not above the floors.
    leads
        Whether it is a floor's that no detector beats.
    """

    text: str
    rank: int = 0
    below: bool = False
    leads: bool = False

    @property
    def marked(self) -> str:
        """The text with the mark for a cell that does not beat the floors."""
        return f"{self.text}{BELOW}" if self.below else self.text


@dataclass(frozen=True, slots=True)
class Grid:
    """One table: its title, its header, and cells for detectors, floors and failures.

    Throughput stands in the columns from ``n_metrics`` on, diagnostics in those from ``n_measures`` on. ``n_left_out``
    detectors and failures, and ``n_folded`` floors, are not shown.
    """

    title: str
    header: tuple[str, ...]
    detectors: tuple[tuple[Cell, ...], ...]
    floors: tuple[tuple[Cell, ...], ...]
    failures: tuple[tuple[Cell, ...], ...]
    n_metrics: int
    n_measures: int
    n_left_out: int = 0
    n_folded: int = 0

    @property
    def blocks(self) -> tuple[tuple[tuple[Cell, ...], ...], ...]:
        """Detectors, floors and failures, in this order."""
        return self.detectors, self.floors, self.failures

    def columns(self, chosen: Sequence[int]) -> Grid:
        """Return some columns of the table as a table."""
        header = tuple(self.header[i] for i in chosen)
        detectors, floors, failures = (tuple(tuple(row[i] for i in chosen) for row in block) for block in self.blocks)
        n = len(header)
        return Grid(self.title, header, detectors, floors, failures, n, n, self.n_left_out, self.n_folded)

    def chosen(self, places: Sequence[int]) -> Grid:
        """Return some columns as a table; what happened to a failure moves to the first of them if it has no place."""
        grid, said = self.columns(places), self.n_metrics - 1
        if said in places or len(places) < 2:
            return grid
        rows = zip(grid.failures, self.failures, strict=True)
        return replace(grid, failures=tuple((row[0], full[said], *row[2:]) for row, full in rows))


def grids(
    rows: Sequence[Row],
    decimals: int = 4,
    without: Sequence[str] = (),
    most: int | None = None,
    floors: Collection[str] | None = None,
    columns: Sequence[str] = (),
) -> list[Grid]:
    """Return ranked rows as one table per data set, protocol and split. A UsageError if no table has a column."""
    marks = marks_for(rows)
    tables = by_table(rows).values()
    shown = [_grid(table, decimals, without, most, floors, marks) for table in tables]
    if not columns:
        return shown
    places = places_of_columns(columns, [("", *columns_of(table, without)) for table in tables])
    return [grid.chosen(of_grid) for grid, of_grid in zip(shown, places, strict=True)]


def columns_of(rows: Sequence[Row], without: Sequence[str] = ()) -> list[str]:
    """Return the keys of the columns of one table behind the names: metrics, trials, throughput, diagnostics.

    Parameters are those of `grids`.
    """
    metrics = [metric.name for metric in metrics_of(rows) if metric.name not in without]
    return [*metrics, *_ABOUT_TRIALS, *COSTS, *(diagnostic.name for diagnostic in shown_diagnostics(rows))]


def _grid(
    rows: Sequence[Row],
    decimals: int,
    without: Sequence[str],
    most: int | None,
    named: Collection[str] | None,
    marks: Marks,
) -> Grid:
    metrics = [metric for metric in metrics_of(rows) if metric.name not in without]
    detectors = [row for row in rows if row.ok and not row.floor]
    every_floor = [row for row in rows if row.ok and row.floor]
    unfolded = None if named is None or not detectors else {*named, *best_floors(rows, metrics)}
    floors = [row for row in every_floor if unfolded is None or row.label in unfolded]
    failures = [row for row in rows if not row.ok]
    shown = [*detectors[:most], *floors, *failures[:most]]
    diagnostics = shown_diagnostics(rows)
    header = (
        "detector",
        *(f"{metric.title}{'*' if metric.oracle else ''}" for metric in metrics),
        "Anomalous",
        "look-ahead",
        "coverage",
        "seeds",
    )
    spreads = {} if SPREAD in without else {row.label: row.entity_spread for row in shown}
    columns = [_metric_cells(rows, shown, metric, decimals, spreads) for metric in metrics]
    diagnostic_columns = [_diagnostic_cells(rows, shown, diagnostic, decimals) for diagnostic in diagnostics]

    def cells(row: Row) -> tuple[Cell, ...]:
        return (
            Cell(" ".join([*marks(row), row.label])),
            *(column[row.label] for column in columns),
            Cell("-" if not row.n_rows else number((row.n_anomalous or 0) / row.n_rows, decimals)),
            Cell(str(row.first.look_ahead)),
            Cell("-" if row.coverage is None else f"{row.coverage:.1%}"),
            Cell(str(len(row.seeds)) if row.ok else row.failure_count),
            *map(Cell, throughput_texts(row)),
            *(column[row.label] for column in diagnostic_columns),
        )

    return Grid(
        title=_title(rows),
        header=(*header, *HEADER, *(_diagnostic_header(rows, diagnostic, decimals) for diagnostic in diagnostics)),
        detectors=tuple(map(cells, detectors[:most])),
        floors=tuple(map(cells, floors)),
        failures=tuple(map(cells, failures[:most])),
        n_metrics=len(header),
        n_measures=len(header) + len(HEADER),
        n_left_out=len(rows) - len(every_floor) + len(floors) - len(shown),
        n_folded=len(every_floor) - len(floors),
    )


def _metric_cells(
    rows: Sequence[Row],
    shown: Sequence[Row],
    metric: Metric,
    decimals: int,
    spreads: Mapping[str, Mapping[str, float | None]],
) -> dict[str, Cell]:
    """Return a metric's column by label, of those rows of a table that are shown, with the spreads over entities."""
    ranks = ranks_of(rows, metric)
    leading = _leading_floors(_floor_means(rows, metric), ranked_means(rows, metric), metric)
    over_entities = {label: of_row.get(metric.name) for label, of_row in spreads.items()}
    return {
        row.label: Cell(
            row.metrics.get(metric.name, UNDEFINED).text(decimals) + _spread(over_entities.get(row.label)),
            ranks.get(row.label, 0),
            metric.name in (row.below_floor or ()),
            row.label in leading,
        )
        for row in shown
    }


def _spread(value: float | None) -> str:
    return "" if value is None else f"\N{PLUS-MINUS SIGN}{number(value, _SPREAD_DECIMALS)}"


def _diagnostic_header(rows: Sequence[Row], diagnostic: Diagnostic, decimals: int) -> str:
    chance = _chance(rows, diagnostic)
    return f"{diagnostic.title}{DIAGNOSTIC}" + ("" if chance is None else f" ({number(chance, decimals)})")


def _diagnostic_cells(
    rows: Sequence[Row], shown: Sequence[Row], diagnostic: Diagnostic, decimals: int
) -> dict[str, Cell]:
    """Return a diagnostic's column by label, of those rows of a table that are shown."""
    chance, own = _chance(rows, diagnostic), diagnostic.decimals
    floors = (_mean(row, diagnostic.name) for row in rows if row.ok and row.floor)
    best = -math.inf if chance is None else max([chance, *(floor for floor in floors if floor is not None)])

    def cell(row: Row) -> Cell:
        summary = row.diagnostics.get(diagnostic.name, UNDEFINED)
        below = not row.floor and summary.mean is not None and summary.mean <= best
        return Cell(summary.text(decimals if own is None else own), below=below)

    return {row.label: cell(row) for row in shown}


def _chance(rows: Sequence[Row], diagnostic: Diagnostic) -> float | None:
    """Return what chance gets in a diagnostic, the same for all rows of a table; None if it has no chance level."""
    levels = (_mean(row, diagnostic.chance) for row in rows)
    return next((level for level in levels if level is not None), None)


def _mean(row: Row, diagnostic: str) -> float | None:
    return row.diagnostics.get(diagnostic, UNDEFINED).mean


def metrics_of(rows: Sequence[Row]) -> list[Metric]:
    """Return the protocol's metrics, or whatever the rows hold if its plugin is gone."""
    names = next((list(row.metrics) for row in rows if row.ok), [])
    protocol = _protocol(rows)
    by_name = {} if protocol is None else {metric.name: metric for metric in protocol.metrics}
    return [by_name.get(name, Metric(name, name, better=None)) for name in names]


def summary_of(rows: Sequence[Row]) -> str:
    """Return how the rows' protocol describes itself; empty if its plugin is gone."""
    protocol = _protocol(rows)
    return "" if protocol is None else protocol.summary


def _protocol(rows: Sequence[Row]) -> type[Protocol] | None:
    try:
        return load_protocol(rows[0].protocol.partition("[")[0])
    except (PluginError, UsageError):
        return None


def _title(rows: Sequence[Row]) -> str:
    """Return a table's title: its data, split and protocol, and how many of its rows are anomalous."""
    row = next((row for row in rows if row.ok), rows[0])
    summary = summary_of(rows)
    title = f"{row.dataset}, split {row.split}, protocol {row.rules}{f' ({summary})' if summary else ''}"
    title += f", smoothed over {row.smoothing} rows" if row.smoothing > 1 else ""
    if row.n_rows and row.n_anomalous is not None:
        title += f": {row.n_rows:,} rows, {row.n_anomalous / row.n_rows:.1%} anomalous"
    return title + about_entities(row)


def about_entities(row: Row) -> str:
    """Return what a row's means are over, to follow a title: ", mean over 12 entities, one model each"; or nothing."""
    names = tuple(row.entities)
    if len(names) == 1:
        return f", the model of entity {names[0]} alone"
    return f", mean over {len(names)} entities, one model each" if names else ""


def ranks_of(rows: Sequence[Row], metric: Metric) -> dict[str, int]:
    """Return 1 for the best and 2 for the second best in a metric, of the detectors that beat every floor in it.

    Equal values share a rank. A detector that is compared with no other has none.
    """
    values = ranked_means(rows, metric)
    if metric.better is None or len(values) < 2:
        return {}
    sign = 1 if metric.better == "higher" else -1
    best_floor = max((sign * value for value in _floor_means(rows, metric).values()), default=-math.inf)
    above = {label: sign * value for label, value in values.items() if sign * value > best_floor}
    order = sorted(set(above.values()), reverse=True)[:2]
    return {label: order.index(value) + 1 for label, value in above.items() if value in order}


def best_floors(rows: Sequence[Row], metrics: Iterable[Metric]) -> set[str]:
    """Return the best floor of a table in each metric; of equal ones that with the best AUPRC."""
    best = set()
    for metric in metrics:
        means = _floor_means(rows, metric)
        if means and metric.better is not None:
            # Both return the first of equal ones, and rows are ranked by AUPRC.
            best.add((max if metric.better == "higher" else min)(means, key=means.__getitem__))
    return best


def ranked_means(rows: Sequence[Row], metric: Metric) -> dict[str, float]:
    """Return the means of the detectors that are compared, by label."""
    return _means(_ranked(rows), metric)


def _ranked(rows: Sequence[Row]) -> list[Row]:
    """Return the detectors that are compared: they did not fail, and are sound."""
    return [row for row in rows if row.ok and not row.floor and row.sound]


def _floor_means(rows: Sequence[Row], metric: Metric) -> dict[str, float]:
    return _means([row for row in rows if row.ok and row.floor], metric)


def _leading_floors(floors: Mapping[str, float], values: Mapping[str, float], metric: Metric) -> set[str]:
    """Return the floors that no detector beats in a metric, by the means of the floors and the detectors."""
    if metric.better is None or not values:
        return set()
    sign = 1 if metric.better == "higher" else -1
    best = max(sign * value for value in values.values())
    return {label for label, value in floors.items() if sign * value >= best}


def _means(rows: Sequence[Row], metric: Metric) -> dict[str, float]:
    """Return the rows' means in a metric; a row without one is left out."""
    means = {row.label: row.metrics.get(metric.name, UNDEFINED).mean for row in rows}
    return {label: mean for label, mean in means.items() if mean is not None}


def legend(rows: Sequence[Row]) -> str:
    """Return what the marks in the tables of these rows mean."""
    return " ".join(
        [
            LEGEND,
            throughput_legend(rows),
            *([_ENTITIES] if any(row.entities for row in rows) else []),
            *([_SMOOTHED] if any(row.smoothing > 1 for row in rows) else []),
            *([_DIAGNOSTIC] if any(row.diagnostics for row in rows) else []),
            *([_OPERATIONAL] if any("found" in row.diagnostics for row in rows) else []),
            *([_ROOT_CAUSE] if any(_mean(row, "hit_at_1") is not None for row in rows) else []),
            *marks_legend(rows),
        ]
    )


def failure_lines(rows: Sequence[Row]) -> list[str]:
    """Return a line with the first reason for each detector that failed, and its data set if there are several."""
    several = len({(row.dataset, row.rules) for row in rows}) > 1
    failed = {(row.dataset, row.rules, row.label): row for row in rows if not row.ok}
    return [
        (f"{dataset}, protocol {protocol}: " if several else "")
        + f"{row.label}: {row.failure_count} trials: {row.failed[0].reason}"
        for (dataset, protocol, _), row in failed.items()
    ]
