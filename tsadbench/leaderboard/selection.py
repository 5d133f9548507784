"""The trials of a store that figures, explanations and comparisons read: of one data set and one protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.leaderboard.ranking import Row, by_label, check_split, failed, ranked_rows, splits_of
from tsadbench.results.trial_result import TrialResult, protocol_of, readable_result
from tsadbench.utils.parameters import nearest, normal_label

# How many detectors a figure shows by default.
SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Detectors of one data set, protocol and split.

    Parameters
    ----------
    store
        The store that holds them.
    source
        The name of the data set, or the data themselves.
    directory
        Folder with the data sets' files; None searches as the documentation says.
    split
        The split that ranks them.
    rows
        The chosen ones, in the order they were named, else by rank.
    left_out
        Which detectors were not chosen, and why: they failed, or are of an older version of the protocol or the data.
    """

    store: Store
    source: str | LabelledDataset
    directory: Path | None
    split: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...]

    def only(self, row: Row) -> Selection:
        """Return the selection of one of its rows."""
        return replace(self, rows=(row,))

    def load(self) -> LabelledDataset:
        """Return the data set. A UsageError or a DataError if it is not registered, or its files are not here."""
        return load_source(self.source, self.directory)

    def results(self, data: LabelledDataset | None = None, *, one_each: bool = False) -> list[TrialResult]:
        """Return the trials with status "ok" beside the data.

        A UsageError if all are broken. A DataError or a StoreError as `TrialResult` does.
        """
        loaded = self.load() if data is None else data
        episodes = tuple(protocol_of(self.rows[0].first).episodes(loaded.dataset))
        found: list[TrialResult] = []
        for row in self.rows:
            read = (readable_result(record, self.store, loaded, episodes) for record in _ok(row))
            of_row = list(islice(filter(None, read), 1 if one_each else None))
            found += of_row
        if not found:
            raise UsageError(f"no trial of {', '.join(row.label for row in self.rows)} can be read: run them again")
        return found


def load_source(source: str | LabelledDataset, directory: Path | None) -> LabelledDataset:
    """Return a data set by its name, or the one that is given. A UsageError or a DataError as of `Selection.load`."""
    if isinstance(source, LabelledDataset):
        return source
    try:
        loader = load_dataset(source)
    except UsageError as error:
        raise UsageError(f"{error}. For trials on your own data give its card, --dataset path/card.toml") from error
    return loader(DataOptions(directory=directory, allow_changed=True))


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
    """Choose trials of a run store; of several of the same label and seed the newest counts.

    If they are of two versions of the data set, or two versions of the protocol judged them, those of the older one are
    left out. A UsageError if there is no store, data set, protocol, split, label or seed of this name, an older
    version of the protocol judged the trials of a label, or no trial has status "ok".
    """
    store = runs if isinstance(runs, Store) else Store.open(Path(runs))
    directory = None if data is None else Path(data)
    if isinstance(dataset, str) and dataset.endswith(CARD_ENDING):
        dataset = load_dataset(dataset)(DataOptions(directory=directory, allow_changed=True))
    name = dataset.dataset.name if isinstance(dataset, LabelledDataset) else dataset
    every = records_of_one(store, dataset=name, protocol=protocol)
    trials = by_label(_of_newest_versions(every))
    older = {record.label: _version(record, every) for record in every if record.label not in trials}
    known = {record.label for record in every}
    labels = tuple(dict.fromkeys(normal_label(one, known) for one in detectors))
    for label in labels:
        if label not in trials:
            raise UsageError(
                f"{label} was {older[label]}, other trials of {store.path} by a newer version: "
                f"`tsadbench judge {store.path}` judges its scores again; if they are gone, or the data are others, "
                "run it again"
                if label in older
                else f"there is no detector {label!r} among these trials{nearest(label, trials)}"
            )
    if seed is not None:
        trials = _of_seed(trials, seed, labels)
    records = [record for of_label in trials.values() for record in of_label]
    shown = _split(split, records)
    ranked = ranked_rows(records, shown)
    chosen = _chosen(ranked, labels, everything)
    return Selection(
        store=store,
        source=records[0].dataset if dataset is None else dataset,
        directory=directory,
        split=shown,
        rows=_with_ok_trials(chosen, strictly=bool(labels)),
        left_out=(
            *(
                f"{row.label}: {row.failure_count} trials"
                for row in ranked
                if not row.ok and (not labels or row.label in labels)
            ),
            *(f"{label}: it was {version}" for label, version in older.items() if not labels),
        ),
    )


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


def _of_newest_versions(records: Sequence[Record]) -> tuple[Record, ...]:
    """Return the newest record of each label and seed, without older versions of the data set and of the protocol."""
    on_newest = [record for record in records if record.dataset_version == _newest_data(records)]
    newest = max((record.protocol_version for record in on_newest if record.status == "ok"), default=0)
    kept = [record for record in on_newest if record.protocol_version == newest or record.status != "ok"]
    return tuple({(record.label, record.seed): record for record in kept}.values())


def _newest_data(records: Sequence[Record]) -> int:
    return max(record.dataset_version for record in records)


def _version(record: Record, records: Sequence[Record]) -> str:
    """Return by what a record is older than the others."""
    if record.dataset_version < _newest_data(records):
        return f"run on version {record.dataset_version} of the data set"
    return f"judged by {record.rules}"


def _of_seed(
    trials: Mapping[str, tuple[Record, ...]], seed: int, labels: Sequence[str]
) -> dict[str, tuple[Record, ...]]:
    """Return each label's trial of a seed, or its only trial; a UsageError if no label, or not a named one, has it."""
    candidates = {label: of_label for label, of_label in trials.items() if not labels or label in labels}
    seeds = sorted({record.seed for of_label in candidates.values() for record in of_label})
    if seed not in seeds:
        raise UsageError(f"no trial has the seed {seed}; there are: {', '.join(map(str, seeds))}")
    chosen = {}
    for label, of_label in candidates.items():
        of_seed = tuple(record for record in of_label if record.seed == seed or len(of_label) == 1)
        if of_seed:
            chosen[label] = of_seed
        elif label in labels:
            available = ", ".join(str(record.seed) for record in of_label)
            raise UsageError(f"{label} has no trial of seed {seed}; there are: {available}")
    return chosen


def _split(requested: str | None, records: Sequence[Record]) -> str:
    if requested is not None:
        check_split(requested, records)
        return requested
    splits = splits_of(records)
    return "overall" if "overall" in splits or not splits else splits[0]


def _chosen(rows: Sequence[Row], labels: Sequence[str], everything: bool) -> tuple[Row, ...]:
    if labels:
        named = {row.label: row for row in rows}
        return tuple(named[label] for label in labels if label in named)
    ok = [row for row in rows if row.ok]
    if everything:
        return tuple(ok)
    detectors = [row for row in ok if not row.floor and row.comparable]
    return (*detectors[:SHOWN], *[row for row in ok if row.floor][:1])


def _with_ok_trials(rows: Sequence[Row], *, strictly: bool) -> tuple[Row, ...]:
    """Return the rows with a trial of status "ok"; if they were named (``strictly``), each must have one."""
    for row in rows if strictly else ():
        if not _ok(row):
            first = failed(row.records)[0]
            raise UsageError(f"no trial of {row.label} came out ok: {first.status}, {first.reason}")
    ok = tuple(row for row in rows if _ok(row))
    if not ok:
        raise UsageError("no trial came out ok: there are no scores to show; `tsadbench runs list` says why")
    return ok


def _ok(row: Row) -> list[Record]:
    return [record for record in row.records if record.status == "ok"]
