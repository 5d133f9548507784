"""Diagnostics beside the rows of a leaderboard, averaged over seeds as its metrics are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from tsadbench.analysis.diagnostics.compute import of_splits
from tsadbench.analysis.diagnostics.vus import VUS_BUFFER
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import DataError, TsadbenchError
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.columns import DIAGNOSTICS
from tsadbench.leaderboard.notes import Note
from tsadbench.leaderboard.ranking import Row, summaries
from tsadbench.results.admission import offers_contributions
from tsadbench.results.judging import Judge
from tsadbench.results.trial_result import protocol_of, readable_result
from tsadbench.utils.grouping import grouped
from tsadbench.utils.progress import progress

# By trial and split: values by name.
_Values: TypeAlias = Mapping[str, Mapping[str, Mapping[str, float | None]]]


def with_diagnostics(
    board: Leaderboard, store: Store, load: Callable[[str], LabelledDataset], groups: Collection[str]
) -> Leaderboard:
    """Return a leaderboard whose rows have diagnostics.

    Rows that failed, ship with the package, or were judged by another version of their protocol have none, nor have
    those of which a trial is broken. A DataError if a data set is not available, or is not the one that a trial was
    made on. A UsageError if a group is not known.
    """
    shown = _with_scores(board.rows)
    trials = grouped(((row, record) for row in shown for record in row.records), lambda one: one[1].trial)
    judge = Judge(lambda name: _loaded(name, load))
    for name in dict.fromkeys(row.dataset for row in shown):
        judge.data(name)
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    for done, (trial, of_rows) in enumerate(trials.items()):
        record = of_rows[0][1]
        progress(done, len(trials), record.label)
        episodes = judge.episodes(record.dataset, record.protocol)
        result = readable_result(record, store, judge.data(record.dataset), episodes)
        if result is not None:
            values[trial] = of_splits(result, [row.split for row, _ in of_rows], groups)
    shown = [row for row in shown if all(record.trial in values for record in row.records)]
    columns = [one.name for one in DIAGNOSTICS if one.group in groups]
    found = {}
    for row in shown:
        seeds = [values[record.trial][row.split] for record in row.records]
        means = summaries([{name: of_seed[name] for name in columns} for of_seed in seeds])
        found[id(row)] = replace(row, diagnostics=means)
    notes = [*board.notes, *_notes(shown, values, groups)]
    if "root-cause" in groups:
        notes += _contribution_notes(shown, values, store)
    return Leaderboard([found.get(id(row), row) for row in board.rows], notes, board.columns)


def _notes(rows: Sequence[Row], values: _Values, groups: Collection[str]) -> Iterator[Note]:
    """Yield what the diagnostics of each data set and protocol are based on."""
    for (dataset, protocol), of_table in grouped(rows, lambda row: (row.dataset, row.protocol)).items():
        splits = {row.split: values[row.first.trial][row.split] for row in of_table}
        counts = ", ".join(f"{of_split['n_events']} on {split}" for split, of_split in splits.items())
        yield Note(dataset, f"events: {counts}", protocol)
        if "vus" in groups:
            yield Note(dataset, f"VUS-PR is over buffers of 0 to {VUS_BUFFER} rows", protocol)
        causes = {split: of_split["n_causes"] for split, of_split in splits.items()}
        if any(causes.values()):
            counts = ", ".join(f"{n} on {split}" for split, n in causes.items() if n)
            yield Note(dataset, f"events with known causes: {counts}", protocol)
        elif None not in causes.values():
            yield Note(dataset, "no event has known causes, so nobody can hit them", protocol)


def _contribution_notes(rows: Sequence[Row], values: _Values, store: Store) -> Iterator[Note]:
    """Yield which rows have no contributions to hold against known causes, and how to get them."""
    lacking = {
        (row.dataset, row.protocol, row.label): row.first
        for row in rows
        if any(values[record.trial][row.split]["n_causes"] for record in row.records)
        and not all(store.has_contributions(record) for record in row.records)
    }
    reasons = {
        True: "no contributions were kept; `tsadbench run` with these detectors, this --out and "
        "--rerun no-contributions makes them again with contributions",
        False: "they offer no contributions",
        None: "no contributions were kept, and whether they offer any is not known: they are not registered here",
    }
    said = [(*key[:2], offers_contributions(record), record.label) for key, record in lacking.items()]
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
