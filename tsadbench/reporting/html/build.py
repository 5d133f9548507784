"""A run store as one page: gathers its content and fills the template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tsadbench._version import __version__
from tsadbench.analysis.curves import tail_of
from tsadbench.analysis.diagnostics import with_diagnostics
from tsadbench.analysis.sensor_graph import sensor_graph
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import EpisodeThreshold
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.cells import legend, summary_of
from tsadbench.reporting.html import curves, page, series, tables
from tsadbench.reporting.html.tables import ReferenceRows
from tsadbench.results.trial_result import TrialResult, protocol_of
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.parameters import JsonValue, nearest

SCHEMA = 1


def write_report(
    store: Store,
    load: Callable[[str], LabelledDataset],
    folder: Path,
    *,
    labels: Sequence[str] = (),
    reference: ReferenceRows | None = None,
) -> Path:
    """Write ``index.html`` into a folder.

    Parameters
    ----------
    store
        The trials to report on.
    load
        Returns the data set of a name; if it raises a TsadbenchError, the page shows the reason instead of curves and
        series.
    folder
        Created if it is missing.
    labels
        The detectors whose curves and series the page holds; by default all. Tables always show all rows.
    reference
        Published values to show beside the rows that reproduce them.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UsageError
        If the store holds no trial, or none of a label, or the file cannot be written.
    MissingExtraError
        If plotly is not installed.
    """
    return write_file(folder / "index.html", page.render(report_content(store, load, labels, reference)))


def report_content(
    store: Store,
    load: Callable[[str], LabelledDataset],
    labels: Sequence[str] = (),
    reference: ReferenceRows | None = None,
) -> dict[str, JsonValue]:
    """Return what the page holds, as JSON; parameters and errors as for `write_report`."""
    records, broken = store.readable()
    if not records:
        raise UsageError(f"{store.path} holds no trials yet: run some with `tsadbench run --out {store.path}`")
    _check_labels(labels, records)
    board = Leaderboard.from_records(records)
    by_table: dict[tuple[str, str], list[Record]] = {}
    for row in board.rows:
        by_table.setdefault((row.dataset, row.protocol), []).extend(row.records)
    return {
        "schema": SCHEMA,
        "made": datetime.now(UTC).isoformat(timespec="minutes"),
        "tsadbench": __version__,
        "store": str(store.path),
        "broken": dict(broken),
        "reference": None if reference is None else {"title": reference.title, "citation": reference.citation},
        "boards": [
            _board(
                Leaderboard([row for row in board.rows if (row.dataset, row.protocol) == key], board.notes),
                list({record.trial: record for record in of_table}.values()),
                store,
                load,
                labels,
                reference,
            )
            for key, of_table in by_table.items()
        ],
    }


def _board(
    board: Leaderboard,
    records: Sequence[Record],
    store: Store,
    load: Callable[[str], LabelledDataset],
    labels: Sequence[str],
    reference: ReferenceRows | None,
) -> JsonValue:
    first = board.rows[0]
    content: dict[str, JsonValue] = {
        "dataset": first.dataset,
        "protocol": first.protocol,
        "summary": summary_of(board.rows),
        "legend": legend(board.rows),
        "notes": [str(note) for note in board.notes if note.concerns(first.dataset, first.protocol)],
        "metrics": tables.metrics(board),
        "trials": tables.manifests(records),
    }
    try:
        data = load(first.dataset)
        results = _results(records, store, data, labels)
    except TsadbenchError as error:
        return {**content, "tables": tables.tables(board, reference), "missing": str(error)}
    board = with_diagnostics(board, store, load, ("operational",))
    return {
        **content,
        "tables": tables.tables(board, reference),
        "diagnostics": tables.diagnostics(board),
        "description": data.dataset.description,
        "citation": data.dataset.citation,
        "sensors": list(data.dataset.sensors),
        "splits": {split: list(members) for split, members in data.dataset.splits.items()},
        "detectors": [_detector(label, of_label, data.dataset.splits) for label, of_label in results.items()],
        "graphs": list(_graphs(results)),
        "recordings": series.recordings({label: of_label[0] for label, of_label in results.items()}, data),
    }


def _results(
    records: Sequence[Record], store: Store, data: LabelledDataset, labels: Sequence[str]
) -> Mapping[str, list[TrialResult]]:
    """Return each detector's successful trials, by label, in the order of seeds."""
    episodes = tuple(protocol_of(records[0]).episodes(data.dataset))
    results: dict[str, list[TrialResult]] = {}
    for record in records:
        if record.status == "ok" and (not labels or record.label in labels):
            results.setdefault(record.label, []).append(TrialResult(record, store, data, episodes))
    return results


def _detector(label: str, results: Sequence[TrialResult], splits: Iterable[str]) -> JsonValue:
    shown = results[0]
    return {
        "label": label,
        "floor": shown.record.floor,
        "seed": shown.record.seed,
        "curves": {split: [curves.ranking_curves(result, split) for result in results] for split in splits},
        "densities": {split: curves.densities(shown, split) for split in splits},
        "thresholds": [_threshold(shown, fit) for fit in shown.record.thresholds],
    }


def _threshold(result: TrialResult, fit: EpisodeThreshold) -> JsonValue:
    names = ("value", "method", "status", "t", "level", "q", "n", "excesses", "gamma", "sigma", "endpoint")
    return {
        "episode": fit.episode,
        **{name: getattr(fit.threshold, name) for name in names},
        "tail": curves.tail(tail_of(result, fit.episode)),
    }


def _graphs(results: Mapping[str, Sequence[TrialResult]]) -> Iterator[JsonValue]:
    """Yield the graphs of the detectors that work on one."""
    for of_label in results.values():
        try:
            graph = sensor_graph(of_label[0])
        except TsadbenchError:  # its plugin, or the prior that it was run with, is no longer available
            continue
        if graph.adjacency is None or graph.node_weights is None:
            continue
        yield {
            "label": graph.label,
            "about": f"{graph.title}: derived again from the training rows, as the fit does before it learns.",
            "adjacency": graph.adjacency.tolist(),
            "node_weights": graph.node_weights.tolist(),
            "edges": [
                {"source": edge.source, "target": edge.target, "mechanism": edge.mechanism, "votes": edge.votes}
                for edge in (() if graph.prior is None else graph.prior.edges)
            ],
        }


def _check_labels(labels: Sequence[str], records: Sequence[Record]) -> None:
    known = tuple(dict.fromkeys(record.label for record in records))
    for label in labels:
        if label not in known:
            raise UsageError(f"the store has no detector {label!r}{nearest(label, known)}")
