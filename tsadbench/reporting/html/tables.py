"""The tables of one data set and protocol as a page holds them: rows, manifests."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from tsadbench.execution.record import Record
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.cells import about_entities, best_floors, metrics_of, ranks_of, shown_diagnostics
from tsadbench.leaderboard.marks import Marks, marks_for
from tsadbench.leaderboard.ranking import Row, failures_json, replay_json, summaries_json
from tsadbench.leaderboard.throughput import COSTS, SPEEDS, front_of
from tsadbench.reporting.html.extent import SEEDS, Extent
from tsadbench.utils.parameters import JsonValue

# Keys of the columns that every table has; the page's script makes them.
COLUMNS = ("coverage", "threshold", "look_ahead", "seeds", *COSTS, "score_seconds", "cpu_seconds")


def tables(board: Leaderboard, extent: Extent) -> list[JsonValue]:
    """Return a table for each split; the rows are those of one data set and protocol."""
    marks = marks_for(board.rows)
    return [
        {
            "split": split,
            "n_rows": next((row.n_rows for row in rows if row.n_rows is not None), None),
            "n_anomalous": next((row.n_anomalous for row in rows if row.n_anomalous is not None), None),
            "rows": _rows(rows, extent, marks=marks),
            "about_entities": next((about_entities(row) for row in rows if row.ok), ""),
            "n_left_out": len(rows) - len(extent.shown(rows)),
            "fronts": _fronts(extent.shown(rows)),
        }
        for (_, _, split), rows in board.tables().items()
    ]


def _fronts(rows: Sequence[Row]) -> JsonValue:
    """Return which of the rows that the page shows no other beats in quality and speed, by metric and speed."""
    return {metric.name: {speed: [*front_of(rows, metric, speed)] for speed in SPEEDS} for metric in metrics_of(rows)}


def metrics(board: Leaderboard) -> list[JsonValue]:
    """Return what a page needs to know about the metrics."""
    return [
        {"name": metric.name, "title": metric.title, "better": metric.better, "oracle": metric.oracle}
        for metric in metrics_of(board.rows)
    ]


def manifests(records: Sequence[Record]) -> list[JsonValue]:
    """Return what is needed to repeat each trial."""
    return [
        {
            "trial": record.trial,
            "label": record.label,
            "seed": record.seed,
            "threads": record.threads,
            "status": record.status,
            "reason": record.reason,
            "seal": record.seal,
            "seal_reason": record.seal_reason,
            "replay": replay_json(record.replay),
            "parameters": dict(record.parameters),
            "manifest": dict(record.manifest),
        }
        for record in records
    ]


def diagnostics(board: Leaderboard) -> list[JsonValue]:
    """Return what a page needs to know about the diagnostics that some row has."""
    return [{"name": column.name, "title": column.title} for column in shown_diagnostics(board.rows)]


def _rows(rows: Sequence[Row], extent: Extent, *, marks: Marks) -> list[JsonValue]:
    places = {metric.name: ranks_of(rows, metric) for metric in metrics_of(rows)}
    in_sight = best_floors(rows, metrics_of(rows))
    return [
        _row(
            row,
            {name: of_metric[row.label] for name, of_metric in places.items() if row.label in of_metric},
            extent.n_seeds,
            folded=row.floor and row.label not in in_sight,
            marks=marks,
        )
        for row in extent.shown(rows)
    ]


def _row(row: Row, places: Mapping[str, int], n_seeds: int, *, folded: bool, marks: Marks) -> JsonValue:
    records = row.records[:n_seeds]
    return {
        "label": row.label,
        "family": row.first.family,
        "floor": row.floor,
        "folded": folded,
        "marks": {**marks(row)},
        "leaky": row.leaky,
        "pretrained_on": list(row.pretrained_on),
        "stored": row.stored,
        "status": row.status,
        "failed": failures_json(records)[:SEEDS],
        "failure_count": row.failure_count,
        "seeds": list(row.seeds),
        "coverage": row.coverage,
        "complete": row.complete,
        "look_ahead": row.first.look_ahead,
        "threshold": _threshold(records),
        "below": list(row.below_floor or ()),
        "places": dict(places),
        "seal": row.seal,
        "seal_reasons": list(row.seal_reasons),
        "replay": replay_json(row.replay),
        "metrics": summaries_json(row.metrics),
        "entities": {name: summaries_json(metrics) for name, metrics in row.entities.items()},
        "spread": dict(row.entity_spread),
        "by_seed": {name: [record.splits[row.split].metrics.get(name) for record in records] for name in row.metrics},
        "diagnostics": summaries_json(row.diagnostics),
        "cost": {
            "fit_seconds": row.fit_seconds,
            "score_seconds": row.score_seconds,
            "cpu_seconds": _cpu_seconds(row.records),
            "rows_per_second": row.rows_per_second,
            "peak_memory_mib": row.peak_memory_mib,
            "threads": list(row.threads),
        },
    }


def _threshold(records: Sequence[Record]) -> JsonValue:
    """Return the lowest and the highest threshold over seeds and fits, and how many there are; None without one."""
    values = [fit.threshold.value for record in records for fit in record.thresholds]
    return {"low": min(values), "high": max(values), "n": len(values)} if values else None


def _cpu_seconds(records: Sequence[Record]) -> float | None:
    seconds = [
        record.fit_cpu_seconds + record.score_cpu_seconds
        for record in records
        if record.fit_cpu_seconds is not None and record.score_cpu_seconds is not None
    ]
    return statistics.fmean(seconds) if seconds else None
