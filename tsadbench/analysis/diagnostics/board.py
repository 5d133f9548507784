"""Diagnostics beside the rows of a leaderboard, averaged over seeds as its metrics are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from tsadbench.analysis.diagnostics.compute import Diagnostics, of_splits
from tsadbench.analysis.diagnostics.vus import VUS_BUFFER
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import DataError, TsadbenchError
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.notes import Note
from tsadbench.leaderboard.ranking import Row
from tsadbench.results.admission import offers_contributions
from tsadbench.results.judging import Judge
from tsadbench.results.trial_result import protocol_of, readable_result
from tsadbench.utils.grouping import grouped
from tsadbench.utils.progress import progress


def with_diagnostics(
    board: Leaderboard,
    store: Store,
    load: Callable[[str], LabelledDataset],
    groups: Collection[str],
) -> Leaderboard:
    """Return a leaderboard whose rows have diagnostics.

    Rows that failed, ship with the package, or were judged by another version of their protocol have none, nor have
    those of which a trial is broken. A DataError if a data set is not available, or is not the one that a trial was
    made on. A UsageError if a group is not known.
    """
    trials: dict[str, tuple[Record, list[str]]] = {}
    shown = _with_scores(board.rows)
    for row in shown:
        for record in row.records:
            trials.setdefault(record.trial, (record, []))[1].append(row.split)
    judge = Judge(lambda name: _loaded(name, load))
    for name in dict.fromkeys(record.dataset for record, _ in trials.values()):
        judge.data(name)
    diagnostics: dict[str, dict[str, Diagnostics]] = {}
    numbers: dict[tuple[str, str], Mapping[str, float | None]] = {}
    for done, (trial, (record, splits)) in enumerate(trials.items()):
        progress(done, len(trials), record.label)
        result = readable_result(
            record, store, judge.data(record.dataset), judge.episodes(record.dataset, record.protocol)
        )
        if result is None:
            continue
        diagnostics[trial] = of_splits(result, splits, groups)
        numbers |= {(trial, split): one.values(groups) for split, one in diagnostics[trial].items()}
    shown = [row for row in shown if all(record.trial in diagnostics for record in row.records)]
    notes = list(_notes(shown, diagnostics, groups))
    if "root-cause" in groups:
        notes += _contribution_notes(shown, diagnostics, store)
    return board.with_diagnostics(numbers, notes)


def _notes(
    rows: Sequence[Row], by_trial: Mapping[str, Mapping[str, Diagnostics]], groups: Collection[str]
) -> Iterator[Note]:
    """Yield what the diagnostics of each data set and protocol are based on."""
    by_table: dict[tuple[str, str], dict[str, Diagnostics]] = {}
    for row in rows:
        by_table.setdefault((row.dataset, row.protocol), {})[row.split] = by_trial[row.records[0].trial][row.split]
    for (dataset, protocol), splits in by_table.items():
        counts = ", ".join(f"{of_split.n_events} on {split}" for split, of_split in splits.items())
        yield Note(dataset, f"events: {counts}", protocol)
        if "vus" in groups:
            yield Note(dataset, f"VUS-PR is over buffers of 0 to {VUS_BUFFER} rows", protocol)
        causes = {split: of_split.n_causes for split, of_split in splits.items()}
        if any(causes.values()):
            counts = ", ".join(f"{n} on {split}" for split, n in causes.items() if n)
            yield Note(dataset, f"events with known causes: {counts}", protocol)
        elif None not in causes.values():
            yield Note(dataset, "no event has known causes, so nobody can hit them", protocol)


def _contribution_notes(
    rows: Sequence[Row], by_trial: Mapping[str, Mapping[str, Diagnostics]], store: Store
) -> Iterator[Note]:
    """Yield which rows have no contributions to hold against known causes, and how to get them."""
    lacking = {
        (row.dataset, row.protocol, row.label): row.first
        for row in rows
        if any(by_trial[record.trial][row.split].n_causes for record in row.records)
        and not all(store.has_contributions(record) for record in row.records)
    }
    reasons = {
        True: "no contributions were kept; `tsadbench run` with these detectors, this --out and "
        "--rerun no-contributions makes them again with contributions",
        False: "they offer no contributions",
        None: "no contributions were kept, and whether they offer any is not known: they are not registered here",
    }
    said = [
        (dataset, protocol, offers_contributions(record), label)
        for (dataset, protocol, label), record in lacking.items()
    ]
    for (dataset, protocol, offered), alike in grouped(said, lambda one: one[:3]).items():
        labels = ", ".join(label for *_, label in alike)
        yield Note(dataset, f"root-cause is empty for {labels}: {reasons[offered]}", protocol)


def _with_scores(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose scores the installed rules have judged; each protocol is looked up once."""
    kept = [row for row in rows if row.ok and not row.stored]
    versions = {name: protocol_of(one).version for name, one in {row.protocol: row.first for row in kept}.items()}
    return [row for row in kept if row.first.protocol_version == versions[row.protocol]]


def _loaded(name: str, load: Callable[[str], LabelledDataset]) -> LabelledDataset:
    try:
        return load(name)
    except TsadbenchError as error:
        raise DataError(
            f"diagnostics lay the stored scores beside the data and the labels, and data set {name!r} is not available "
            f"(--data DIR, or --dataset CARD for one of your own): {error}"
        ) from error
