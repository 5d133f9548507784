"""Diagnostics of stored trials for operators; separate from protocols and rankings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import pandas as pd

from tsadbench.analysis.diagnostics.compute import of_result, of_splits
from tsadbench.analysis.diagnostics.measures import VUS_BUFFER
from tsadbench.analysis.events import recording_events
from tsadbench.analysis.stored import Stored
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import about
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.frame import DIAGNOSTIC, ROW
from tsadbench.leaderboard.table import DIAGNOSTICS, Note
from tsadbench.results.admission import offers_contributions
from tsadbench.results.trial_result import protocol_named
from tsadbench.utils.grouping import grouped
from tsadbench.utils.progress import progress

__all__ = ["of_result", "of_splits", "recording_events", "with_diagnostics"]


def with_diagnostics(
    board: Leaderboard, store: Store, load: Callable[[str], LabelledDataset], groups: Collection[str]
) -> Leaderboard:
    """Return a leaderboard whose rows have diagnostics.

    Rows that failed, ship with the package, were judged by another version of their protocol, or have a broken trial
    get no diagnostics. Raises a DataError if the files of a data set are not available or differ from a trial's, a
    UsageError if a data set or a group is unknown.
    """
    shown = board.frame[board.frame["ok"] & ~board.frame["stored"]]
    versions = {name: protocol_named(name).version for name in shown["protocol"].unique()}
    shown = shown[shown["protocol"].map(versions) == shown["protocol_version"]]
    with about("dataset"):
        data = {name: load(name) for name in shown["dataset"].unique()}
    names = [name for group in DIAGNOSTICS if group in groups for name in DIAGNOSTICS[group]]
    numbers, notes = dict[tuple[str, str], Mapping[str, float | None]](), list[Note]()
    done, trials = 0, board.trials.merge(shown[ROW], on=ROW)
    for (dataset, protocol), table in trials.groupby(["dataset", "protocol"], sort=False):
        stored = Stored(table, dict.fromkeys(table["detector"], store), {}, partial(data.__getitem__, dataset))
        found: list[tuple[Record, dict[str, dict[str, float | None]]]] = []
        for label, results in stored.by_row(data[dataset], [*stored.stores]):
            progress(done := done + 1, trials["detector"].nunique(), label)
            for one in results:
                splits = [split for split in table["split"].unique() if split in one.record.splits]
                found.append((one.record, of_splits(one, splits, groups)))
        for record, values in found:
            of_each = {split: {f"{DIAGNOSTIC}{name}": of[name] for name in names} for split, of in values.items()}
            numbers |= {(record.trial, split): of for split, of in of_each.items()}
        notes += [Note(str(dataset), text, str(protocol)) for text in _notes(found, groups, store) if found]
    keys = zip((record.trial for record in board.trials["record"]), board.trials["split"], strict=True)
    columns = pd.DataFrame([numbers.get(key, {}) for key in keys], board.trials.index, dtype=float)
    return Leaderboard(board.trials.join(columns), [*board.more, *notes])


def _notes(
    found: Sequence[tuple[Record, Mapping[str, Mapping[str, float | None]]]], groups: Collection[str], store: Store
) -> Iterator[str]:
    """Yield notes on the diagnostics of a data set and protocol, and on rows without contributions."""
    values = {split: of for _, of_splits in found for split, of in of_splits.items()}
    events, causes = (
        ", ".join(f"{of[name]} on {split}" for split, of in values.items() if of[name])
        for name in ("n_events", "n_causes")
    )
    yield f"events: {events or 'none'}"
    if "vus" in groups:
        yield f"VUS-PR is over buffers of 0 to {VUS_BUFFER} rows"
    if "root-cause" in groups and not causes:
        yield "no event has known causes"
    elif "root-cause" in groups:
        yield f"events with known causes: {causes}"
        lacking = {one.label: offers_contributions(one) for one, _ in found if not store.has_contributions(one)}
        for offered, labels in grouped(lacking, lacking.__getitem__).items():
            yield f"root-cause is empty for {', '.join(labels)}: {_LACKING[offered]}"


_LACKING = {
    True: "no contributions were kept; to add them, run `tsadbench run` with these detectors, this --out and "
    "--rerun no-contributions",
    False: "they offer no contributions",
    None: "no contributions were kept, and these detectors are not registered here",
}
