"""The tables of one data set and protocol as a page holds them: rows, the paper's values beside ours, manifests."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from tsadbench.base.protocol import Metric
from tsadbench.execution.record import Record
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.cells import metrics_of, places_of
from tsadbench.leaderboard.columns import shown_diagnostics
from tsadbench.leaderboard.ranking import Row, Summary, failures_json
from tsadbench.studies.reproduction import paper
from tsadbench.utils.parameters import JsonValue

_PAPERS_DATASET = "skab"


def tables(board: Leaderboard) -> list[JsonValue]:
    """Return a table for each split; the rows are those of one data set and protocol."""
    return [
        {
            "split": split,
            "n_rows": next((row.n_rows for row in rows if row.n_rows is not None), None),
            "n_anomalous": next((row.n_anomalous for row in rows if row.n_anomalous is not None), None),
            "rows": _rows(rows),
        }
        for (_, _, split), rows in board.tables().items()
    ]


def metrics(board: Leaderboard) -> list[JsonValue]:
    """Return what a page needs to know of the metrics."""
    return [_metric(metric) for metric in metrics_of(board.rows)]


def manifests(records: Sequence[Record]) -> list[JsonValue]:
    """Return of each trial what is needed to do it again."""
    return [
        {
            "trial": record.trial,
            "label": record.label,
            "seed": record.seed,
            "threads": record.threads,
            "status": record.status,
            "reason": record.reason,
            "parameters": dict(record.parameters),
            "manifest": dict(record.manifest),
        }
        for record in records
    ]


def _metric(metric: Metric) -> JsonValue:
    return {"name": metric.name, "title": metric.title, "better": metric.better, "oracle": metric.oracle}


def diagnostics(board: Leaderboard) -> list[JsonValue]:
    """Return what a page needs to know of the diagnostics that some row has."""
    return [{"name": one.name, "title": one.title} for one in shown_diagnostics(board.rows)]


def _rows(rows: Sequence[Row]) -> list[JsonValue]:
    places = {metric.name: places_of(rows, metric) for metric in metrics_of(rows)}
    return [
        _row(row, {name: of_metric[row.label] for name, of_metric in places.items() if row.label in of_metric})
        for row in rows
    ]


def _row(row: Row, places: Mapping[str, int]) -> JsonValue:
    return {
        "label": row.label,
        "family": row.first.family,
        "floor": row.floor,
        "leaky": row.leaky,
        "stored": row.stored,
        "status": row.status,
        "failed": failures_json(row.records),
        "seeds": list(row.seeds),
        "coverage": row.coverage,
        "look_ahead": row.first.look_ahead,
        "below": list(row.below_floor or ()),
        "places": dict(places),
        "metrics": {name: _summary(one) for name, one in row.metrics.items()},
        "by_seed": {
            name: [record.splits[row.split].metrics.get(name) for record in row.records] for name in row.metrics
        },
        "paper": _paper(row),
        "diagnostics": {name: _summary(one) for name, one in row.diagnostics.items()},
        "cost": {
            "fit_seconds": row.fit_seconds,
            "score_seconds": row.score_seconds,
            "cpu_seconds": _cpu_seconds(row.records),
            "peak_memory_mib": row.peak_memory_mib,
        },
        "thresholds": [
            {"seed": record.seed, "episode": one.episode, "value": one.threshold.value, "status": one.threshold.status}
            for record in row.records
            for one in record.thresholds
        ],
    }


def _summary(summary: Summary) -> JsonValue:
    return {"mean": summary.mean, "std": summary.std}


def _paper(row: Row) -> dict[str, JsonValue]:
    """Return the paper's values for the row that reproduces one of its own; empty elsewhere.

    Where its tables contradict each other, the first one's.
    """
    if (row.dataset, row.protocol) != (_PAPERS_DATASET, paper.PROTOCOL):
        return {}
    return {
        metric: _summary(summary)
        for table in reversed(paper.TABLES)
        for method in table.methods
        if method.label == row.label
        for (name, split, metric), summary in paper.published(table.key).items()
        if (name, split) == (method.name, row.split)
    }


def _cpu_seconds(records: Sequence[Record]) -> float | None:
    seconds = [
        record.fit_cpu_seconds + record.score_cpu_seconds
        for record in records
        if record.fit_cpu_seconds is not None and record.score_cpu_seconds is not None
    ]
    return statistics.fmean(seconds) if seconds else None
