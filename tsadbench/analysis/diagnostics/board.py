"""Diagnostics beside the rows of a leaderboard, averaged over seeds as its metrics are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import pandas as pd

from tsadbench.analysis.diagnostics.compute import of_splits
from tsadbench.analysis.diagnostics.vus import VUS_BUFFER
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import DataError, TsadbenchError
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.columns import DIAGNOSTICS
from tsadbench.leaderboard.frame import ROW
from tsadbench.leaderboard.notes import Note
from tsadbench.results.admission import offers_contributions
from tsadbench.results.judging import Judge
from tsadbench.results.trial_result import protocol_named, readable_result
from tsadbench.utils.grouping import grouped
from tsadbench.utils.progress import progress


def with_diagnostics(
    board: Leaderboard, store: Store, load: Callable[[str], LabelledDataset], groups: Collection[str]
) -> Leaderboard:
    """Return a leaderboard whose rows have diagnostics.

    Rows that failed, ship with the package, or were judged by another version of their protocol have none, nor have
    those of which a trial is broken. A DataError if a data set is not available, or is not the one that a trial was
    made on. A UsageError if a group is not known.
    """
    shown = board.frame[board.frame["ok"] & ~board.frame["stored"]]
    versions = {name: protocol_named(name).version for name in shown["protocol"].unique()}
    shown = shown[shown["protocol"].map(versions) == shown["protocol_version"]]
    trials = board.trials.merge(shown[ROW], on=ROW)
    trials["trial"] = [record.trial for record in trials["record"]]
    judge = Judge(lambda name: _loaded(name, load))
    for name in shown["dataset"].unique():
        judge.data(name)
    found: dict[tuple[str, str], Mapping[str, float | None]] = {}
    by_trial = trials.groupby("trial", sort=False)
    for done, (trial, of_trial) in enumerate(by_trial):
        record = of_trial["record"].iloc[0]
        progress(done, len(by_trial), record.label)
        data, episodes = judge.data(record.dataset), judge.episodes(record.dataset, record.protocol)
        if (result := readable_result(record, store, data, episodes)) is not None:
            of_each = of_splits(result, list(of_trial["split"]), groups)
            found |= {(str(trial), split): values for split, values in of_each.items()}
    keys = zip(trials["trial"], trials["split"], strict=True)
    trials["values"] = pd.Series([found.get(key) for key in keys], trials.index, dtype=object)
    known = trials.dropna(subset="values")
    names = [one.name for one in DIAGNOSTICS if one.group in groups]
    numbers = {key: {name: values[name] for name in names} for key, values in found.items()}
    notes = [
        Note(dataset, text, protocol)
        for dataset, protocol in known[["dataset", "protocol"]].drop_duplicates().itertuples(index=False)
        for text in _notes(known[(known["dataset"] == dataset) & (known["protocol"] == protocol)], groups, store)
    ]
    return board.with_diagnostics(numbers, notes)


def _notes(table: pd.DataFrame, groups: Collection[str], store: Store) -> Iterator[str]:
    """Yield what the diagnostics of a data set and protocol are based on, and which rows have no contributions."""
    values = dict(zip(table["split"], table["values"], strict=True))
    events, causes = (
        ", ".join(f"{of[name]} on {split}" for split, of in values.items() if of[name])
        for name in ("n_events", "n_causes")
    )
    yield f"events: {events}"
    if "vus" in groups:
        yield f"VUS-PR is over buffers of 0 to {VUS_BUFFER} rows"
    if "root-cause" in groups and not causes:
        yield "no event has known causes, so nobody can hit them"
    elif "root-cause" in groups:
        yield f"events with known causes: {causes}"
        records = {one.trial: one for one in table["record"]}.values()
        lacking = {one.label: offers_contributions(one) for one in records if not store.has_contributions(one)}
        for offered, labels in grouped(lacking, lacking.__getitem__).items():
            yield f"root-cause is empty for {', '.join(labels)}: {_LACKING[offered]}"


_LACKING = {
    True: "no contributions were kept; `tsadbench run` with these detectors, this --out and --rerun no-contributions "
    "makes them again with contributions",
    False: "they offer no contributions",
    None: "no contributions were kept, and whether they offer any is not known: they are not registered here",
}


def _loaded(name: str, load: Callable[[str], LabelledDataset]) -> LabelledDataset:
    try:
        return load(name)
    except TsadbenchError as error:
        raise DataError(
            f"diagnostics lay the stored scores beside the data and the labels, and data set {name!r} is not available "
            f"(--data DIR, or --dataset CARD for one of your own): {error}"
        ) from error
