"""Stored trials of one data set and protocol, from run stores and committed leaderboards: the input of analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Metric
from tsadbench.datasets.loading import loader
from tsadbench.errors import UsageError
from tsadbench.execution.record import RECORDS, Record, read_records
from tsadbench.execution.store import Store
from tsadbench.leaderboard.frame import check_split, records_of, rows, trials
from tsadbench.leaderboard.table import notes_on
from tsadbench.results.trial_result import TrialResult, protocol_named, readable_result
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import Label, nearest, normal_label, parse_label

# Parameters that only limit the cost of a fit, such as fewer steps on large data sets.
BOUNDS = frozenset({"max_steps"})
# How many detectors a figure shows by default.
SHOWN = 5


class Committed(Store):
    """A folder with one or more committed leaderboards, read like a store: records without scores."""

    def records(self) -> tuple[Record, ...]:
        """Return the records of all tables."""
        files = sorted([*self.path.glob(RECORDS), *self.path.glob(f"*/*/{RECORDS}")])
        return tuple(record for file in files for record in read_records(file))


@dataclass(frozen=True, eq=False)
class Stored:
    """Trials of one data set under one protocol, in the newest versions of both.

    ``trials`` is a frame of `tsadbench.leaderboard.frame.trials`; ``stores`` has each label's store, in the requested
    order. ``left_out`` has the reason why a row is missing, by label. ``load`` returns the data set; it raises a
    UsageError or a DataError if it is not registered, or its files are missing.
    """

    trials: pd.DataFrame
    stores: Mapping[str, Store]
    left_out: Mapping[str, str]
    load: Callable[[], LabelledDataset]

    @cached_property
    def rows(self) -> pd.DataFrame:
        """A line per detector and split, as in leaderboards."""
        return rows(self.trials)

    @cached_property
    def records(self) -> list[Record]:
        """The records of all trials."""
        return records_of(self.trials)

    @property
    def first(self) -> Record:
        """A trial that did not fail; data set, protocol and their versions are the same for all."""
        return next(record for record in self.records if record.status == "ok")

    @property
    def splits(self) -> list[str]:
        """The splits of the trials."""
        return [*self.trials["split"].unique()]

    @property
    def split(self) -> str:
        """The split ``overall``, or the first one."""
        return "overall" if "overall" in self.splits else self.splits[0]

    def on(self, split: str | None, seed: int | None = None) -> Stored:
        """Return the trials on one split (default: ``overall`` or the first), with one seed or each row's only seed.

        Raises a UsageError if no trial has this split or seed.
        """
        if split is not None:
            check_split(split, self.records)
        trials = self.trials[self.trials["split"] == (split or self.split)]
        if seed is None:
            return replace(self, trials=trials)
        here = (trials["seed"] == seed) | (trials.groupby("detector")["seed"].transform("size") == 1)
        if not (trials["seed"] == seed).any():
            known = ", ".join(map(str, sorted(trials["seed"].unique())))
            raise UsageError(f"no trial has the seed {seed}; known: {known}")
        return replace(self, trials=trials[here])

    def only(self, *labels: str) -> Stored:
        """Return the trials of some labels, in this order."""
        stores = {label: self.stores[label] for label in labels}
        return replace(self, trials=self.trials[self.trials["detector"].isin(labels)], stores=stores)

    def ranked(self, split: str, metric: str) -> pd.DataFrame:
        """Return a line per row with its value of a metric on a split, the mean over seeds.

        ``status`` is "ok", "failed", "undefined" (the metric) or "marked": excluded from rankings over data sets for
        the ``reason``. ``placed`` rows have a rank on this data set.
        """
        table = self.rows[self.rows["split"] == split].reset_index(drop=True)
        ok, leaky = table["ok"], table["leaky"] != ""
        value = table[f"{metric}_mean"].where(ok) if f"{metric}_mean" in table else pd.Series(np.nan, table.index)
        unfit, lacking = leaky | (ok & ~table["forgets"]), ok & ~table["complete"]
        cases = [leaky, unfit, lacking, ~ok, value.isna()]
        why = ["it is leaky", "it does not forget", "it left evaluated rows without a score"]
        parsed = table["detector"].map(parse_label)
        return table[["detector", "floor", "coverage"]].assign(
            name=table["detector"].map(common_name),
            bounded=[bool(one.arguments.keys() & BOUNDS) for one in parsed],
            seeds=table["seeds"].map(len),
            status=np.select(cases, ["marked", "marked", "marked", "failed", "undefined"], "ok"),
            reason=np.select(cases, [*why, _failures(table), "the metric is undefined"], ""),
            placed=value.notna() & ~unfit,
            value=value,
        )

    def remarks(self) -> Iterator[str]:
        """Yield sentences on failed rows, and the remarks of leaderboards and trials."""
        table = self.rows.drop_duplicates("detector").reset_index(drop=True)
        for label, ok, why, words in zip(
            table["detector"], table["ok"], _failures(table), table["remarks"], strict=True
        ):
            told = [word for word in words if "floor" not in word]
            yield from [f"{label} is left out: {why}. Run it again."] if not ok else []
            yield from [f"{label}: {', '.join(told)}."] if ok and told else []
        yield from map(str, notes_on([one for one in self.records if one.status == "ok"]))

    def scored(self, *, ranked: bool = False) -> list[str]:
        """Return the labels with stored scores that did not fail and are not leaky; if ``ranked``, only ranked ones."""
        kept = self.rows.query("ok and leaky == ''" + " and forgets" * ranked)
        return [one for one in kept["detector"].unique() if not isinstance(self.stores[one], Committed)]

    def by_row(self, data: LabelledDataset, labels: Sequence[str]) -> Iterator[tuple[str, list[TrialResult]]]:
        """Yield the trials of rows, row by row; skip rows with a broken trial, with a warning."""
        for label, read in self._read(data, labels):
            if all(results := [*read]):
                yield label, [one for one in results if one is not None]

    def results(self, data: LabelledDataset | None = None, *, one_each: bool = False) -> list[TrialResult]:
        """Return the readable trials with status "ok", all or the first of each row.

        Raises a UsageError if all are broken; other errors as for `TrialResult` and `load`.
        """
        read = self._read(self.load() if data is None else data, [*self.stores])
        found = [one for _, results in read for one in islice(filter(None, results), 1 if one_each else None)]
        if not found:
            raise UsageError(f"no trial of {', '.join(self.stores)} can be read: run them again")
        return found

    def _read(self, data: LabelledDataset, labels: Sequence[str]) -> Iterator[tuple[str, Iterator[TrialResult | None]]]:
        episodes = tuple(protocol_named(self.first.protocol).episodes(data.dataset))
        of_labels = grouped([one for one in self.records if one.status == "ok"], lambda one: one.label)
        for label in labels:
            ok = of_labels.get(label, ())
            yield label, (readable_result(one, self.stores[label], data, episodes) for one in ok)


def _failures(table: pd.DataFrame) -> list[str]:
    """Return the failures of each row, for instance "timeout in 1 of 5 trials: ..."."""
    reasons = (next((one.reason for one in records if one.status != "ok"), "") for records in table["records"])
    lines = zip(table["status"], table["n_failed"], table["records"].map(len), reasons, strict=True)
    return [f"{status} in {n_failed} of {n} trials: {reason}" for status, n_failed, n, reason in lines]


def common_name(label: str) -> str:
    """Return a row's name over several data sets: its label without limits on the cost of a fit."""
    parsed = parse_label(label)
    return str(Label(parsed.target, {key: text for key, text in parsed.arguments.items() if key not in BOUNDS}))


def all_records(store: Store) -> Sequence[Record]:
    """Return a store's readable records; warn about others (`BrokenTrialWarning`); a UsageError if there are none."""
    records = store.records()
    if not records:
        raise UsageError(f"{store.path} holds no trials yet: run some with `tsadbench run --out {store.path}`")
    return records


def read_stored(
    folders: Sequence[str | Path | Store],
    *,
    dataset: str | LabelledDataset | None = None,
    datasets: Sequence[str] = (),
    protocol: str | None = None,
    data: str | Path | None = None,
) -> list[Stored]:
    """Return the trials of several folders, grouped by data set and protocol.

    If several folders have a label, the first in which it did not fail counts. Raises a UsageError if no trial of the
    data sets and the protocol has status "ok".
    """
    asked, load = loader([] if dataset is None else [dataset], None if data is None else Path(data))
    names = datasets or asked
    stores = [*map(_opened, folders)]
    tables = grouped(
        [(store, record) for store in stores for record in all_records(store)],
        lambda one: (one[1].dataset, one[1].protocol),
    )
    chosen = {key: ran for key, ran in tables.items() if key[0] in (names or key) and protocol in (None, key[1])}
    ok = {key: ran for key, ran in chosen.items() if any(record.status == "ok" for _, record in ran)}
    if not ok:
        places = ", ".join(str(store.path) for store in stores)
        wanted = f"{' or '.join(names) or 'any data set'}, {'any protocol' if protocol is None else protocol}"
        held = "; ".join(map(", ".join, tables))
        raise UsageError(f"{places}: expected a trial of {wanted} with status ok, found trials of {held}")
    return [_newest(ran, partial(load, name)) for (name, _), ran in ok.items()]


def _newest(ran: Sequence[tuple[Store, Record]], load: Callable[[], LabelledDataset]) -> Stored:
    """Return the trials of one data set and protocol, in the newest versions of both."""
    newest = max((one.dataset_version, one.protocol_version) for _, one in ran if one.status == "ok")
    # Failures count under any version of the rules.
    fit = [
        (store, one)
        for store, one in ran
        if (one.dataset_version, one.protocol_version if one.status == "ok" else newest[1]) == newest
    ]
    rows_of = grouped(fit, lambda one: (one[1].label, one[0]))
    last = {key: {one.seed: one for _, one in some}.values() for key, some in rows_of.items()}
    stores: dict[str, Store] = {}
    for label, store in sorted(last, key=lambda key: any(one.status != "ok" for one in last[key])):
        stores.setdefault(label, store)
    left_out = {
        one.label: f"{store.path} has it on version {one.dataset_version} of the data, judged by {one.rules}"
        for store, one in ran
        if one.label not in stores
    }
    records = [one for label, store in stores.items() for one in last[label, store]]
    return Stored(trials(records), stores, left_out, load)


def _opened(folder: str | Path | Store) -> Store:
    if isinstance(folder, Store):
        return folder
    committed = Committed(Path(folder))
    return committed if any(committed.path.glob(f"*/*/{RECORDS}")) else Store.open(Path(folder))


def metric_named(name: str, protocol: str, metrics: Sequence[Metric]) -> Metric:
    """Return a protocol's metric; a UsageError if it does not exist, or neither high nor low values are better."""
    found = {metric.name: metric for metric in metrics if metric.better is not None}
    if name not in found:
        raise UsageError(f"{protocol} has no metric {name!r} to rank or compare by{nearest(name, found)}")
    return found[name]


def stored_trials(
    runs: str | Path | Store,
    *,
    detectors: Sequence[str] = (),
    dataset: str | LabelledDataset | None = None,
    protocol: str | None = None,
    data: str | Path | None = None,
) -> Stored:
    """Return a store's trials of one data set and protocol, for all or the named detectors.

    Raises a UsageError if the store holds several and none is named, or lacks a requested detector.
    """
    store = runs if isinstance(runs, Store) else Store.open(Path(runs))
    tables = read_stored([store], dataset=dataset, protocol=protocol, data=data)
    for attribute, what in (("dataset", "data set"), ("protocol", "protocol")):
        if len(names := sorted({getattr(one.first, attribute) for one in tables})) > 1:
            several = f"{store.path} holds trials of several {what}s, {', '.join(names)}"
            raise UsageError(f"{several}: choose one by --{attribute}")
    (found,) = tables
    labels = dict.fromkeys(normal_label(one, {*found.stores, *found.left_out}) for one in detectors)
    for label in labels:
        if label in found.left_out:
            judge = f"to judge its scores again, run: tsadbench judge {store.path}"
            raise UsageError(f"{label}: {found.left_out[label]}; if the data have changed, run it again, else {judge}")
        if label not in found.stores:
            raise UsageError(f"there is no detector {label!r} among these trials{nearest(label, found.stores)}")
    return found.only(*labels) if labels else found


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
) -> Stored:
    """Choose trials of a run store for figures and explanations: one split, the newest trial per seed.

    The default ``detectors`` are the best five and the best floor, or ``everything`` that did not fail. ``left_out``
    also lists rows with failed trials. Raises a UsageError if a store, data set, protocol, split, label or seed does
    not exist, or no trial of a label has status "ok".
    """
    found = stored_trials(runs, detectors=detectors, dataset=dataset, protocol=protocol, data=data).on(split, seed)
    table = found.rows
    failed = dict(zip(table.loc[~table["ok"], "detector"], _failures(table[~table["ok"]]), strict=True))
    if detectors:
        chosen, ok = [*found.stores], {record.label for record in found.records if record.status == "ok"}
        for label in chosen:
            if label not in ok:
                why = f"is ok: {failed[label]}" if label in failed else f"has the seed {seed}"
                raise UsageError(f"no trial of {label} {why}")
    elif everything:
        chosen = [*table[table["ok"]].sort_values("floor", kind="stable")["detector"]]
    else:
        floors = table[table["ok"] & table["floor"]].sort_values("sound", ascending=False, kind="stable")
        fit = table[table["ok"] & ~table["floor"] & (table["leaky"] == "") & table["forgets"]]
        chosen = [*fit["detector"].head(SHOWN), *floors["detector"].head(1)]
    if not chosen:
        raise UsageError("no trial is ok, so there are no scores to show; to see why, run: tsadbench runs list")
    return replace(found.only(*chosen), left_out={**failed, **({} if detectors else found.left_out)})
