"""Stored trials of one data set and protocol, from run stores and committed leaderboards: what analyses start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Metric, SplitJudgement
from tsadbench.errors import UsageError
from tsadbench.execution.record import RECORDS, Record, read_records
from tsadbench.execution.store import Store
from tsadbench.leaderboard.frame import check_split, records_of, rows, splits_of, trials
from tsadbench.leaderboard.notes import notes_on, older_rules, remarks
from tsadbench.leaderboard.selection import all_records, dataset_named, load_source, records_of_one
from tsadbench.leaderboard.shipped import DECIMALS, UnitValues, rounded, stored_records
from tsadbench.results.trial_result import TrialResult, protocol_of, readable_result
from tsadbench.utils.files import LEADERBOARDS
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import Label, nearest, normal_label, parse_label

# Parameters that only bound the cost of a fit: large data sets are run with fewer steps.
BOUNDS = frozenset({"max_steps"})


class Committed(Store):
    """A folder of committed leaderboards, read like a store: records without scores."""

    def records(self) -> tuple[Record, ...]:
        """Return the records of all tables."""
        return tuple(record for file in sorted(self.path.glob(f"*/*/{RECORDS}")) for record in read_records(file))


@dataclass(frozen=True, eq=False)
class Stored:
    """Trials of one data set under one protocol, in the newest versions of both, and each label's store.

    ``trials`` is a frame of `tsadbench.leaderboard.frame.trials`. ``left_out`` says which rows are of an older version.
    """

    trials: pd.DataFrame
    stores: Mapping[str, Store]
    left_out: Mapping[str, str]
    source: str | LabelledDataset
    directory: Path | None

    @cached_property
    def rows(self) -> pd.DataFrame:
        """A line for each detector and split, as leaderboards have it."""
        return rows(self.trials)

    @cached_property
    def records(self) -> list[Record]:
        """The records of all trials."""
        return records_of(self.trials)

    @property
    def first(self) -> Record:
        """A trial that did not fail: data set, protocol and their versions are those of all."""
        return next(record for record in self.records if record.status == "ok")

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that the trials have metrics of."""
        return splits_of(self.records)

    def split(self, asked: str | None) -> str:
        """Return the split asked for, by default ``overall`` or the first; a UsageError if no trial has it."""
        if asked is not None:
            check_split(asked, self.records)
        return asked or ("overall" if "overall" in self.splits else self.splits[0])

    def ranked(self, split: str, metric: str) -> pd.DataFrame:
        """Return a line for each row with its value of a metric on a split, the mean over seeds.

        ``status`` is "ok", "failed", "undefined" (the metric is) or "marked": the row takes no part in a ranking over
        data sets, for the ``reason``. ``placed`` rows have a rank on this data set.
        """
        table = self.rows[self.rows["split"] == split].reset_index(drop=True)
        ok, floor = table["ok"], table["floor"]
        value = table[f"{metric}_mean"].where(ok) if f"{metric}_mean" in table else pd.Series(np.nan, table.index)
        unfit = (table["leaky"] != "") | (ok & ~table["forgets"] & ~floor)
        lacking = ok & ~table["complete"] & ~floor
        statuses = {"marked": unfit | lacking, "failed": ~ok, "undefined": value.isna()}
        why = np.where(table["leaky"] != "", "it is leaky", "it does not forget")
        reasons = {"failed": _failures(table), "undefined": ["the metric is undefined"] * len(table)}
        reasons["marked"] = list(np.where(unfit, why, "it left evaluated rows without a score"))
        status = np.select(list(statuses.values()), list(statuses), "ok")
        return pd.DataFrame(
            {
                **{"detector": table["detector"], "name": table["detector"].map(common_name)},
                "bounded": [bool(parse_label(label).arguments.keys() & BOUNDS) for label in table["detector"]],
                **{"floor": floor, "seeds": table["seeds"].map(len), "coverage": table["coverage"]},
                "status": status,
                "reason": ["" if one == "ok" else reasons[one][place] for place, one in enumerate(status)],
                **{"placed": value.notna() & ~unfit, "value": value},
            }
        )

    def notes(self, split: str) -> Iterator[str]:
        """Yield what readers of a split's values must know of the rows."""
        if (n := self.rows.loc[self.rows["split"] == split, "n_entities"].max()) > 1:
            yield f"Values: mean over {n:.0f} entities, one model each."
        yield from map(str, older_rules(self.records))

    def scored(self, *, ranked: bool = False) -> list[str]:
        """Return the labels whose scores a store holds, that did not fail and are not leaky; those with a rank."""
        kept = self.rows.query("ok and leaky == '' and not stored")
        return list((kept.query("forgets or floor") if ranked else kept)["detector"].unique())

    def load(self) -> LabelledDataset:
        """Return the data set. A UsageError or a DataError if it is not registered, or its files are not here."""
        return load_source(self.source, self.directory)

    def results(self, data: LabelledDataset, labels: Sequence[str]) -> Iterator[tuple[str, list[TrialResult]]]:
        """Yield the trials of rows, one row at a time; a row with a broken trial is left out with a warning."""
        episodes = tuple(protocol_of(self.first).episodes(data.dataset))
        for label in labels:
            records = [record for record in self.records if record.label == label]
            read = [readable_result(one, self.stores[label], data, episodes) for one in records]
            if all(read):
                yield label, [one for one in read if one is not None]

    def judge(
        self, data: LabelledDataset, units: Mapping[str, Mapping[str, Sequence[str]]], shipped: UnitValues | None
    ) -> pd.DataFrame:
        """Judge all trials on each unit as the protocol judges a split; ``units`` has their recordings by kind.

        Return a line for each kind, unit, label and seed: the unit's numbers of evaluated rows and of anomalous ones,
        and every metric, NaN where undefined. With ``shipped`` values all are rounded alike.
        """
        judges: list[tuple[Record, Callable[[Mapping[str, Sequence[str]]], Mapping[str, SplitJudgement]]]]
        lines, ok = [], set(self.rows.loc[self.rows["ok"], "detector"])
        for label in filter(ok.__contains__, self.stores):
            if shipped is not None and isinstance(self.stores[label], Committed):
                judges = [(one, partial(shipped.judge, one)) for one in self.records if one.label == label]
            else:
                judges = [(one.record, one.judge) for _, some in self.results(data, [label]) for one in some]
            for record, judge in judges:
                for kind, groups in units.items():
                    for unit, one in judge(groups).items():
                        about = {"kind": kind, "unit": unit, "label": label, "seed": record.seed}
                        counts = {"n_rows": one.n_rows, "n_anomalous": one.n_anomalous}
                        lines.append({**about, **counts, **(one if shipped is None else rounded(one)).metrics})
        return pd.DataFrame(lines, columns=None if lines else ["label"])

    def only(self, labels: Sequence[str]) -> Stored:
        """Return the trials of some labels, in this order."""
        stores = {label: self.stores[label] for label in labels}
        return replace(self, trials=self.trials[self.trials["detector"].isin(labels)], stores=stores)

    def remarks(self) -> Iterator[str]:
        """Yield which rows failed, what their leaderboard remarks, and what their trials say."""
        table = self.rows.drop_duplicates("detector").reset_index(drop=True)
        for label, ok, why, words in zip(table["detector"], table["ok"], _failures(table), remarks(table), strict=True):
            told = [word for word in words if "floor" not in word and word != "stored"]
            yield from [f"{label} takes no part: {why}. Run it again."] if not ok else []
            yield from [f"{label}: {', '.join(told)}."] if ok and told else []
        if stored := ", ".join(table.loc[table["stored"], "detector"]):
            yield f"{stored}: stored, made earlier; values of all rows are rounded to {DECIMALS} decimals."
        yield from map(str, notes_on(self.records))


def _failures(table: pd.DataFrame) -> list[str]:
    """Return how the trials of each row failed, for instance "timeout in 1 of 5 trials: ..."."""
    texts = []
    for status, n_failed, records in table[["status", "n_failed", "records"]].itertuples(index=False):
        reason = next((record.reason for record in records if record.status != "ok"), "")
        texts.append(f"{status} in {n_failed} of {len(records)} trials: {reason}")
    return texts


def common_name(label: str) -> str:
    """Return a row's name over several data sets: its label without bounds on the cost of a fit."""
    parsed = parse_label(label)
    return str(Label(parsed.target, {key: text for key, text in parsed.arguments.items() if key not in BOUNDS}))


def read_stored(
    folders: Sequence[str | Path | Store],
    *,
    dataset: str | LabelledDataset | None = None,
    datasets: Sequence[str] = (),
    protocol: str | None = None,
    data: str | Path | None = None,
) -> list[Stored]:
    """Return the trials of each data set and protocol in several folders, by their first trials.

    Of a label that several folders have, the first counts in which it did not fail.
    """
    dataset, asked = dataset_named(dataset, data)
    stores = [folder if isinstance(folder, Store) else _opened(Path(folder)) for folder in folders]
    ran = [(store, record) for store in stores for record in all_records(store)]
    names = datasets or [one.dataset for _, one in ran if asked in (None, one.dataset)]
    chosen = [one for one in ran if one[1].dataset in names and protocol in (None, one[1].protocol)]
    tables = grouped(chosen, lambda one: (one[1].dataset, one[1].protocol))
    ok = {key: some for key, some in tables.items() if any(record.status == "ok" for _, record in some)}
    if not ok:
        if len(stores) == 1 and not datasets:
            records_of_one(stores[0], dataset=asked, protocol=protocol)  # its error names what there is
        places, wanted = (
            ", ".join(str(store.path) for store in stores),
            " or ".join(datasets or [asked or "any data set"]),
        )
        raise UsageError(f"{places}: no trial of {wanted} has status ok")
    directory = None if data is None else Path(data)
    return [_newest(some, name if dataset is None else dataset, directory) for (name, _), some in ok.items()]


def _newest(ran: Sequence[tuple[Store, Record]], source: str | LabelledDataset, directory: Path | None) -> Stored:
    """Return the trials of one data set and protocol, in the newest versions of both."""
    newest = max((one.dataset_version, one.protocol_version) for _, one in ran if one.status == "ok")
    # Failures do not depend on the version of the rules.
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
    own, committed = (
        [one for one in records if isinstance(stores[one.label], Committed) is shipped] for shipped in (False, True)
    )
    return Stored(trials(own, stored=committed), stores, left_out, source, directory)


def _opened(folder: Path) -> Store:
    try:
        return Store.open(folder)
    except UsageError:
        if any(folder.glob(f"*/*/{RECORDS}")):
            return Committed(folder)
        raise


def metric_named(name: str, protocol: str, metrics: Sequence[Metric]) -> Metric:
    """Return a metric of a protocol; a UsageError if it has none of this name that is better high or low."""
    found = {metric.name: metric for metric in metrics if metric.better is not None}
    if name not in found:
        raise UsageError(f"{protocol} has no metric {name!r} that is better high or low{nearest(name, found)}")
    return found[name]


def stored_trials(
    runs: str | Path | Store,
    *,
    detectors: Sequence[str] = (),
    dataset: str | LabelledDataset | None = None,
    protocol: str | None = None,
    data: str | Path | None = None,
    against: bool = False,
) -> Stored:
    """Return a store's trials of one data set and protocol; with ``against`` also those that ship under it.

    A UsageError if the store holds several and none is named, or has no trials of a detector that is asked for.
    """
    store = runs if isinstance(runs, Store) else Store.open(Path(runs))
    dataset, name = dataset_named(dataset, data)
    own = records_of_one(store, dataset=name, protocol=protocol)
    first, stores = own[0], [store, Committed(LEADERBOARDS)] if against else [store]
    if against:
        stored_records(first.dataset, first.protocol)  # its error names what ships
    (found,) = read_stored(stores, dataset=dataset or first.dataset, protocol=first.protocol, data=data)
    labels = [normal_label(one, found.stores) for one in detectors]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"expected different detectors, found {label!r} twice")
        if label not in found.stores:
            why = found.left_out.get(label, f"there is no such row{nearest(label, found.stores)}")
            raise UsageError(f"{label}: {why}")
    if labels and not {one.label for one in own}.intersection(labels):
        raise UsageError(f"none of {', '.join(labels)} is in {store.path}: name one of your own as well")
    return found.only(labels) if labels else found
