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
from tsadbench.leaderboard.frame import DIAGNOSTIC, ROW
from tsadbench.leaderboard.notes import Note
from tsadbench.results.admission import offers_contributions
from tsadbench.results.judging import Judge
from tsadbench.results.trial_result import protocol_named, readable_result
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
    of_shown = pd.MultiIndex.from_frame(board.trials[ROW]).isin(pd.MultiIndex.from_frame(shown[ROW]))
    trials = board.trials[of_shown]
    trials = trials.assign(trial=[record.trial for record in trials["record"]])
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
    values = [found.get(key) for key in zip(trials["trial"], trials["split"], strict=True)]
    trials["values"] = pd.Series(values, trials.index, dtype=object)
    names = [one.name for one in DIAGNOSTICS if one.group in groups]
    lines = [{} if of_each is None else {f"{DIAGNOSTIC}{name}": of_each[name] for name in names} for of_each in values]
    notes = _notes(trials.dropna(subset="values"), groups, store)
    numbers = pd.DataFrame(lines, trials.index, dtype=float)
    return Leaderboard(board.trials.join(numbers), [*board.notes, *notes], sessions=board.sessions)


def _notes(trials: pd.DataFrame, groups: Collection[str], store: Store) -> Iterator[Note]:
    """Yield what the diagnostics of each data set and protocol are based on, and which rows have no contributions."""
    for _, table in trials.groupby(["dataset", "protocol"], sort=False):
        dataset, protocol = table[["dataset", "protocol"]].iloc[0]
        of_splits = table.drop_duplicates("split").set_index("split")["values"]
        yield Note(dataset, f"events: {_counts(of_splits, 'n_events')}", protocol)
        if "vus" in groups:
            yield Note(dataset, f"VUS-PR is over buffers of 0 to {VUS_BUFFER} rows", protocol)
        if "root-cause" not in groups:
            continue
        if not (counts := _counts(of_splits, "n_causes")):
            yield Note(dataset, "no event has known causes, so nobody can hit them", protocol)
            continue
        yield Note(dataset, f"events with known causes: {counts}", protocol)
        records = {one.trial: one for one in table["record"]}.values()
        lacking = {one.label: offers_contributions(one) for one in records if not store.has_contributions(one)}
        for offered, reason in _LACKING.items():
            if labels := ", ".join(label for label, offers in lacking.items() if offers is offered):
                yield Note(dataset, f"root-cause is empty for {labels}: {reason}", protocol)


_LACKING = {
    True: "no contributions were kept; `tsadbench run` with these detectors, this --out and --rerun no-contributions "
    "makes them again with contributions",
    False: "they offer no contributions",
    None: "no contributions were kept, and whether they offer any is not known: they are not registered here",
}


def _counts(of_splits: pd.Series, name: str) -> str:
    return ", ".join(f"{values[name]} on {split}" for split, values in of_splits.items() if values[name])


def _loaded(name: str, load: Callable[[str], LabelledDataset]) -> LabelledDataset:
    try:
        return load(name)
    except TsadbenchError as error:
        raise DataError(
            f"diagnostics lay the stored scores beside the data and the labels, and data set {name!r} is not available "
            f"(--data DIR, or --dataset CARD for one of your own): {error}"
        ) from error
