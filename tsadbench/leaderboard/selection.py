"""The trials of a store that figures and explanations read: of one data set and one protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pandas as pd

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.leaderboard.frame import check_split, rows, trials
from tsadbench.results.trial_result import TrialResult, protocol_of, readable_result
from tsadbench.utils.parameters import nearest, normal_label

# How many detectors a figure shows by default.
SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Detectors of one data set, protocol and split.

    ``rows`` has a line for each (`tsadbench.leaderboard.frame.rows`), in the order they were named, else by rank.
    ``left_out`` says which were not chosen, and why: they failed, or are of an older version of protocol or data.
    """

    store: Store
    source: str | LabelledDataset
    directory: Path | None
    split: str
    rows: pd.DataFrame
    left_out: tuple[str, ...]

    def only(self, label: str) -> Selection:
        """Return the selection of one of its detectors."""
        return replace(self, rows=self.rows[self.rows["detector"] == label])

    def results(self, data: LabelledDataset | None = None, *, one_each: bool = False) -> list[TrialResult]:
        """Return the trials with status "ok" beside the data.

        A UsageError if all are broken. A DataError or a StoreError as `TrialResult` and `load_source` do.
        """
        loaded = load_source(self.source, self.directory) if data is None else data
        episodes = tuple(protocol_of(self.rows["records"].iloc[0][0]).episodes(loaded.dataset))
        found: list[TrialResult] = []
        for records in self.rows["records"]:
            ok = (record for record in records if record.status == "ok")
            read = (readable_result(record, self.store, loaded, episodes) for record in ok)
            found += islice(filter(None, read), 1 if one_each else None)
        if not found:
            raise UsageError(f"no trial of {', '.join(self.rows['detector'])} can be read: run them again")
        return found


def load_source(source: str | LabelledDataset, directory: Path | None) -> LabelledDataset:
    """Return a data set by its name, or the one that is given; an error if it is not registered, or not here."""
    if isinstance(source, LabelledDataset):
        return source
    try:
        loader = load_dataset(source)
    except UsageError as error:
        raise UsageError(f"{error}. For trials on your own data give its card, --dataset path/card.toml") from error
    return loader(DataOptions(directory=directory, allow_changed=True))


def dataset_named(
    dataset: str | LabelledDataset | None, data: str | Path | None
) -> tuple[str | LabelledDataset | None, str | None]:
    """Return a data set, read if a card's path is given, and its name."""
    if isinstance(dataset, str) and dataset.endswith(CARD_ENDING):
        dataset = load_dataset(dataset)(DataOptions(directory=None if data is None else Path(data), allow_changed=True))
    return dataset, dataset.dataset.name if isinstance(dataset, LabelledDataset) else dataset


def select(
    runs: str | Path | Store,
    *,
    dataset: str | LabelledDataset | None = None,
    protocol: str | None = None,
    detectors: Sequence[str] = (),
    split: str | None = None,
    seed: int | None = None,
    data: str | Path | None = None,
    everything: bool = False,
) -> Selection:
    """Choose trials of a run store: of the newest versions of the data set and the protocol, the last of each seed.

    Without ``detectors`` the best five and the best floor, or ``everything``. A UsageError if there is no store, data
    set, protocol, split, label or seed of this name, or no trial of a label has status "ok".
    """
    store = runs if isinstance(runs, Store) else Store.open(Path(runs))
    dataset, name = dataset_named(dataset, data)
    every = records_of_one(store, dataset=name, protocol=protocol)
    newest_data = max(record.dataset_version for record in every)
    current = [record for record in every if record.dataset_version == newest_data]
    newest = max((record.protocol_version for record in current if record.status == "ok"), default=0)
    current = [record for record in current if record.protocol_version == newest or record.status != "ok"]
    held = {record.label for record in current}
    older = {one.label: f"{one.rules} on version {one.dataset_version} of the data" for one in every}
    older = {label: version for label, version in older.items() if label not in held}
    labels = list(dict.fromkeys(normal_label(one, {*held, *older}) for one in detectors))
    for label in labels:
        if label in older:
            raise UsageError(
                f"{label} is of {older[label]}, other trials of {store.path} of a newer version: `tsadbench judge "
                f"{store.path}` judges its scores again; if they are gone, or the data are others, run it again"
            )
        if label not in held:
            raise UsageError(f"there is no detector {label!r} among these trials{nearest(label, held)}")
    if split is not None:
        check_split(split, current)
    frame = trials(current)
    known = list(frame["split"].unique())
    split = split or ("overall" if "overall" in known else known[0])
    frame = frame[(frame["split"] == split) & (frame["detector"].isin(labels) | (not labels))]
    table = rows(frame if seed is None else _of_seed(frame, seed, labels))
    ok = table["ok"]
    some_ok = [any(record.status == "ok" for record in records) for records in table["records"]]
    if labels:
        for label, records in table.loc[[not one for one in some_ok], ["detector", "records"]].to_numpy():
            raise UsageError(f"no trial of {label} came out ok: {records[0].status}, {records[0].reason}")
        chosen = table.set_index("detector", drop=False).loc[[one for one in labels if one in {*table["detector"]}]]
    elif everything:
        chosen = table[ok].sort_values("floor", kind="stable")
    else:
        fit = ok & ~table["floor"] & (table["leaky"] == "") & table["forgets"]
        chosen = pd.concat([table[fit].head(SHOWN), table[ok & table["floor"]].head(1)])
    if chosen.empty:
        raise UsageError("no trial came out ok: there are no scores to show; `tsadbench runs list` says why")
    failed = table.loc[~ok, ["detector", "status", "n_failed", "records"]].to_numpy()
    left_out = [f"{label}: {status} in {n} of {len(records)} trials" for label, status, n, records in failed]
    left_out += [] if labels else [f"{label}: it is of {version}" for label, version in older.items()]
    source = every[0].dataset if dataset is None else dataset
    return Selection(
        store, source, None if data is None else Path(data), split, chosen.reset_index(drop=True), tuple(left_out)
    )


def _of_seed(frame: pd.DataFrame, seed: int, labels: Sequence[str]) -> pd.DataFrame:
    """Return each detector's trial of a seed, or its only trial; a UsageError if none, or not a named one, has it."""
    known = ", ".join(map(str, sorted(frame["seed"].unique())))
    found = frame[(frame["seed"] == seed) | (frame.groupby("detector")["seed"].transform("size") == 1)]
    lacking = [label for label in labels if label not in {*found["detector"]}]
    if lacking or not (frame["seed"] == seed).any():
        raise UsageError(
            f"no trial{' of ' * bool(lacking)}{', '.join(lacking)} has the seed {seed}; there are: {known}"
        )
    return found


def all_records(store: Store) -> Sequence[Record]:
    """Return a store's records; a `BrokenTrialWarning` tells of each that cannot be read, a UsageError if none can."""
    records = store.records()
    if not records:
        raise UsageError(f"{store.path} holds no trials yet: run some with `tsadbench run --out {store.path}`")
    return records


def records_of_one(store: Store, *, dataset: str | None, protocol: str | None) -> tuple[Record, ...]:
    """Return a store's records of one data set and protocol, in whichever version.

    A UsageError if the store holds none, or no trial of these.
    """
    records = all_records(store)
    for attribute, what, name in (("dataset", "data set", dataset), ("protocol", "protocol", protocol)):
        names = tuple(sorted({str(getattr(record, attribute)) for record in records}))
        if name is None and len(names) > 1:
            raise UsageError(
                f"{store.path} holds trials of several {what}s, {', '.join(names)}: choose one by --{attribute}"
            )
        if name is not None and name not in names:
            raise UsageError(f"{store.path} holds no trial of the {what} {name!r}{nearest(name, names)}")
        records = [record for record in records if name in (None, getattr(record, attribute))]
    return tuple(records)
