"""The cells of ranked tables, with what their marks mean: what a terminal, Markdown, HTML and LaTeX show alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tsadbench.base.protocol import Metric, Protocol
from tsadbench.errors import PluginError, UsageError
from tsadbench.leaderboard.columns import DIAGNOSTICS, Diagnostic
from tsadbench.leaderboard.marks import ALL_BELOW, marks_legend
from tsadbench.leaderboard.ranking import UNDEFINED, Row
from tsadbench.leaderboard.throughput import throughput_legend
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


def shown_diagnostics(rows: Iterable[Row]) -> list[Diagnostic]:
    """Return the diagnostics that a table shows: those that are defined in one of its rows."""
    defined = {name for row in rows for name, summary in row.diagnostics.items() if summary.mean is not None}
    return [one for one in DIAGNOSTICS if one.title and one.name in defined and one.instead_of not in defined]
