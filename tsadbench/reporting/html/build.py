"""A run store as one page: gathers its content and fills the template."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tsadbench._version import __version__
from tsadbench.analysis.calibration.report import CalibrationReport, CalibrationRow, calibration_of
from tsadbench.analysis.curves import tail_of
from tsadbench.analysis.diagnostics import with_diagnostics
from tsadbench.analysis.label_changes import label_changes
from tsadbench.analysis.label_noise import of_rows
from tsadbench.analysis.sensor_graph import sensor_graph
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import EpisodeThreshold
from tsadbench.errors import DataError, TsadbenchError, UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.cells import legend, summary_of
from tsadbench.reporting.html import curves, page, series, tables
from tsadbench.reporting.html.extent import SEEDS, Extent
from tsadbench.reporting.html.tables import ReferenceRows
from tsadbench.results.judging import judge_outdated
from tsadbench.results.trial_result import TrialResult, protocol_of, readable_result
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.collector import collector_paused
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import JsonValue, nearest
from tsadbench.utils.progress import progress

SCHEMA = 1
# Of how many trials that cannot be read the page says why.
_BROKEN = 100


def write_report(
    store: Store,
    load: Callable[[str], LabelledDataset],
    folder: Path,
    *,
    labels: Sequence[str] = (),
    best: int | None = None,
    reference: ReferenceRows | None = None,
    tell: Callable[[str], object] = lambda _: None,
    trust_code: bool = False,
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
        The detectors whose curves and series the page holds; by default all of a small store, the best of a large one.
    best
        How many detectors of each metric are the best; 0 takes all, however many there are.
    tell
        Receives a line about how much there is to do, before the long part of it.
    reference
        Published values to show beside the rows that reproduce them.
    trust_code
        Whether to import detectors that are not registered here, to show the graphs on which they work.

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
    return write_file(
        folder / "index.html",
        page.render(report_content(store, load, labels, reference, best, tell, trust_code=trust_code)),
    )


def report_content(
    store: Store,
    load: Callable[[str], LabelledDataset],
    labels: Sequence[str] = (),
    reference: ReferenceRows | None = None,
    best: int | None = None,
    tell: Callable[[str], object] = lambda _: None,
    *,
    trust_code: bool = False,
) -> dict[str, JsonValue]:
    """Return what the page holds, as JSON; parameters and errors as for `write_report`."""
    with collector_paused():
        records = store.readable()
        if not records:
            raise UsageError(f"{store.path} holds no trials yet: run some with `tsadbench run --out {store.path}`")
        _check_labels(labels, records)
        records, _ = judge_outdated(records, store, load)
        board = Leaderboard.from_records(records)
    extent = Extent.of(board, labels, best)
    tell(extent.in_words(board))
    rows_of = grouped(board.rows, lambda row: (row.dataset, row.rules))
    boards = [
        _board(Leaderboard(rows, board.notes), store, load, extent, reference, trust_code) for rows in rows_of.values()
    ]
    return {
        "schema": SCHEMA,
        "made": datetime.now(UTC).isoformat(timespec="minutes"),
        "tsadbench": __version__,
        "store": str(store.path),
        "n_trials": len(records),
        "broken": dict(list(store.broken.items())[:_BROKEN]),
        "n_broken": len(store.broken),
        "reference": None if reference is None else {"title": reference.title, "citation": reference.citation},
        "boards": boards,
    }


def _board(
    board: Leaderboard,
    store: Store,
    load: Callable[[str], LabelledDataset],
    extent: Extent,
    reference: ReferenceRows | None,
    trust_code: bool,
) -> JsonValue:
    first = board.rows[0]
    labels = extent.labels((first.dataset, first.rules))
    chosen = [row for row in board.rows if row.label in labels]
    records = list({record.trial: record for row in chosen for record in row.records}.values())
    content: dict[str, JsonValue] = {
        "dataset": first.dataset,
        "protocol": first.rules,
        "summary": summary_of(board.rows),
        "legend": legend(board.rows),
        "notes": [
            *extent.notes(board),
            *(str(note) for note in board.notes if note.concerns(first.dataset, first.protocol)),
        ],
        "metrics": tables.metrics(board),
        "trials": tables.manifests(records),
    }
    try:
        data = load(first.dataset)
        if not any(record.status == "ok" for record in records):
            return {**content, "tables": tables.tables(board, extent, reference)}
        detectors = _detectors(records, store, data, 1 / len(extent.figures), trust_code)
        noise = of_rows([row for row in chosen if row.split == first.split], store, data, label_changes(data), SEEDS)
    except TsadbenchError as error:
        return {**content, "tables": tables.tables(board, extent, reference), "missing": str(error)}
    diagnosed = with_diagnostics(Leaderboard(chosen), store, load, ("operational",))
    by_row = {(row.split, row.label): row for row in diagnosed.rows}
    board = Leaderboard(
        [by_row.get((row.split, row.label), row) for row in board.rows], [*board.notes, *diagnosed.notes]
    )
    return {
        **content,
        "tables": tables.tables(board, extent, reference),
        "diagnostics": tables.diagnostics(board),
        "description": data.dataset.description,
        "citation": data.dataset.citation,
        "sensors": list(data.dataset.sensors),
        "splits": {split: list(members) for split, members in data.dataset.splits.items()},
        "labels": asdict(noise),
        **detectors,
    }


def _detectors(
    records: Sequence[Record], store: Store, data: LabelledDataset, share: float, trust_code: bool
) -> dict[str, JsonValue]:
    """Return what a page holds of the detectors that succeeded; the scores of one trial are in memory at a time.

    Curves are those of the first seeds, everything else is of the first one.
    """
    episodes = tuple(protocol_of(records[0]).episodes(data.dataset))
    of_labels = grouped([one for one in records if one.status == "ok"], lambda one: one.label)
    n_maps = sum(store.has_contributions(of_label[0].trial) for of_label in of_labels.values())
    recordings = series.Series(data, len(of_labels), n_maps, share)
    detectors: list[JsonValue] = []
    graphs: list[JsonValue] = []
    calibrated: list[CalibrationRow] = []
    for label, of_label in of_labels.items():
        curves_of: dict[str, list[JsonValue]] = {split: [] for split in data.dataset.splits}
        progress(len(detectors), len(of_labels), f"{records[0].dataset}, {records[0].protocol}: {label}")
        shown: JsonValue = None
        for record in of_label[:SEEDS]:
            result = readable_result(record, store, data, episodes)
            if result is None:
                continue
            for split, of_split in curves_of.items():
                of_split.append(curves.ranking_curves(result, split))
            if shown is None:
                shown = _detector(label, result, curves_of)
                recordings.add(label, result)
                graphs += _graphs(result, trust_code)
                with suppress(DataError):  # its threshold is fixed
                    calibrated.append(CalibrationRow(record, (calibration_of(result),)))
        if shown is not None:
            detectors.append(shown)
    return {
        "calibration": _calibration(calibrated),
        "detectors": detectors,
        "graphs": graphs,
        "recordings": recordings.content(),
    }


def _detector(label: str, shown: TrialResult, curves_of: Mapping[str, list[JsonValue]]) -> JsonValue:
    return {
        "label": label,
        "floor": shown.record.floor,
        "seed": shown.record.seed,
        "curves": dict(curves_of),
        "densities": {split: curves.densities(shown, split) for split in curves_of},
        "thresholds": [_threshold(shown, fit) for fit in shown.record.thresholds],
    }


def _threshold(result: TrialResult, fit: EpisodeThreshold) -> JsonValue:
    names = ("value", "method", "status", "t", "level", "q", "n", "excesses", "gamma", "sigma", "endpoint")
    return {
        "episode": fit.episode,
        **{name: getattr(fit.threshold, name) for name in names},
        "tail": curves.tail(tail_of(result, fit.episode)),
    }


def _calibration(rows: Sequence[CalibrationRow]) -> JsonValue:
    """Return the calibration of one trial of each detector as a table of text; None if all thresholds are fixed."""
    report = CalibrationReport(tuple(rows))
    for _, header, cells in report.tables():
        return {"header": list(header), "rows": [list(row) for row in cells], "legend": report.legend}
    return None


def _graphs(result: TrialResult, trust_code: bool) -> Iterator[JsonValue]:
    """Yield the graph on which a detector works, if it does."""
    try:
        graph = sensor_graph(result, trust_code=trust_code)
    except TsadbenchError:  # its plugin, or the prior that it was run with, is no longer available or not trusted
        return
    if graph.adjacency is None or graph.node_weights is None:
        return
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
