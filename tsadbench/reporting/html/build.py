"""A run store as one page: gathers its content and fills the template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tsadbench._version import __version__
from tsadbench.analysis.diagnostics import with_diagnostics
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.cells import legend, summary_of
from tsadbench.reporting.html import comparisons, detectors, page, tables
from tsadbench.reporting.html.extent import Extent
from tsadbench.results.judging import judge_outdated
from tsadbench.utils.files import write_file
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import JsonValue, nearest, normal_label

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
    tell: Callable[[str], object] = lambda _: None,
    stability: bool = False,
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
    stability
        Whether to resample sessions, to say how firm each rank is.

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
        page.render(report_content(store, load, labels, best, tell, stability=stability)),
    )


def report_content(
    store: Store,
    load: Callable[[str], LabelledDataset],
    labels: Sequence[str] = (),
    best: int | None = None,
    tell: Callable[[str], object] = lambda _: None,
    *,
    stability: bool = False,
) -> dict[str, JsonValue]:
    """Return what the page holds, as JSON; parameters and errors as for `write_report`."""
    records = store.records()
    if not records:
        raise UsageError(f"{store.path} holds no trials yet: run some with `tsadbench run --out {store.path}`")
    labels = _labels(labels, records)
    records, _ = judge_outdated(records, store, load)
    board = Leaderboard.of_store(store, records)
    ranks = comparisons.over_datasets(store, board.rows)
    extent = Extent.of(board, labels, best)
    tell(extent.in_words(board))
    rows_of = grouped(board.rows, lambda row: (row.dataset, row.rules))
    boards = [
        _board(
            board.where((board.frame[["dataset", "rules"]] == list(table)).all(axis=1)),
            store,
            load,
            extent,
            labels,
            stability=stability,
        )
        for table in rows_of
    ]
    return {
        "schema": SCHEMA,
        "made": datetime.now(UTC).isoformat(timespec="minutes"),
        "tsadbench": __version__,
        "store": str(store.path),
        "n_trials": len(records),
        "broken": dict(list(store.broken.items())[:_BROKEN]),
        "n_broken": len(store.broken),
        "ranks": ranks,
        "boards": boards,
    }


def _board(
    board: Leaderboard,
    store: Store,
    load: Callable[[str], LabelledDataset],
    extent: Extent,
    named: Sequence[str],
    *,
    stability: bool,
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
            return {**content, "tables": tables.tables(board, extent)}
        held = detectors.detectors(records, store, data, 1 / len(extent.figures))
    except TsadbenchError as error:
        return {**content, "tables": tables.tables(board, extent), "missing": str(error)}
    diagnosed = with_diagnostics(board.where(board.frame["detector"].isin(labels)), store, load, ("operational",))
    board = Leaderboard.joined([board, diagnosed])
    return {
        **content,
        "tables": tables.tables(board, extent),
        "diagnostics": tables.diagnostics(board),
        "description": data.dataset.description,
        "citation": data.dataset.citation,
        "sensors": list(data.dataset.sensors),
        "splits": {split: list(members) for split, members in data.dataset.splits.items()},
        "significance": comparisons.significance(
            store, data, [row for row in chosen if row.split == first.split], named
        ),
        "stability": comparisons.stability(store, data, first) if stability else None,
        **held,
    }


def _labels(asked: Sequence[str], records: Sequence[Record]) -> list[str]:
    known = dict.fromkeys(record.label for record in records)
    labels = [normal_label(one, known) for one in asked]
    for label in labels:
        if label not in known:
            raise UsageError(f"the store has no detector {label!r}{nearest(label, known)}")
    return labels
