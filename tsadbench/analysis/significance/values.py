"""Rows of run stores and leaderboards as data frames: the only module here that knows how a leaderboard is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.protocol import Metric, SplitJudgement
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.record import RECORDS, Record, read_records
from tsadbench.execution.store import Store
from tsadbench.leaderboard.cells import about_entities
from tsadbench.leaderboard.marks import GUARDED, UNCALIBRATED, UNFORGETTING, marks_of, mixed_seals, origin_of
from tsadbench.leaderboard.notes import notes_on, older_rules
from tsadbench.leaderboard.ranking import Row, failed, ranked_rows, splits_of
from tsadbench.leaderboard.selection import all_records, load_source, records_of_one
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


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of one data set under one protocol, from one store or several: trials and stores by label.

    ``left_out`` says which rows are of an older version of the data set or the protocol.
    """

    records: Mapping[str, tuple[Record, ...]]
    stores: Mapping[str, Store]
    left_out: Mapping[str, str]
    source: str | LabelledDataset
    directory: Path | None

    @property
    def trials(self) -> list[Record]:
        """The trials of all rows."""
        return [record for records in self.records.values() for record in records]

    @property
    def first(self) -> Record:
        """A trial that did not fail: data set, protocol and their versions are those of all."""
        return next(record for record in self.trials if record.status == "ok")

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that the rows have values of."""
        return splits_of(self.trials)

    def frame(self, split: str, metric: str) -> pd.DataFrame:
        """Return a line for each row with its value of a metric on a split, the mean over seeds.

        ``status`` is "ok", "failed", "undefined" (the metric is) or "marked": the row takes no part in a ranking over
        data sets, for the ``reason``. ``placed`` rows have a rank on this data set.
        """
        return pd.DataFrame([_line(row, metric) for row in ranked_rows(self.trials, split)])

    def notes(self, split: str) -> Iterator[str]:
        """Yield what readers of a split's values must know of the rows."""
        rows = [row for row in ranked_rows(self.trials, split) if row.ok]
        if rows and (over := about_entities(rows[0])):
            yield f"Values: {over.removeprefix(', ')}."
        yield from map(str, older_rules(self.trials))

    @property
    def committed(self) -> list[str]:
        """The labels of rows whose scores no store holds."""
        return [label for label in self.records if isinstance(self.stores[label], Committed)]

    @property
    def stored(self) -> list[str]:
        """The labels of the placed rows whose scores a store holds."""
        fit = [label for label, one in self.records.items() if not (failed(one) or one[0].leaky or _remembers(one))]
        return [label for label in fit if label not in self.committed]

    def load(self) -> LabelledDataset:
        """Return the data set. A UsageError or a DataError if it is not registered, or its files are not here."""
        return load_source(self.source, self.directory)

    def results(self, data: LabelledDataset, labels: Sequence[str]) -> Iterator[tuple[str, list[TrialResult]]]:
        """Yield the trials of rows, one row at a time; a row with a broken trial is left out with a warning."""
        episodes = tuple(protocol_of(self.first).episodes(data.dataset))
        for label in labels:
            read = [readable_result(one, self.stores[label], data, episodes) for one in self.records[label]]
            results = [one for one in read if one is not None]
            if len(results) == len(read):
                yield label, results

    def judge(
        self, data: LabelledDataset, units: Mapping[str, Mapping[str, Sequence[str]]], shipped: UnitValues | None
    ) -> pd.DataFrame:
        """Judge all trials on each unit, the recordings of which are given by kind, as the protocol judges a split.

        Return a line for each kind, unit, label, seed and metric with its value (NaN where undefined), and the unit's
        numbers of evaluated rows and of anomalous ones among them. With ``shipped`` values all are rounded alike.
        """
        judges: list[tuple[Record, Callable[[Mapping[str, Sequence[str]]], Mapping[str, SplitJudgement]]]] = []
        lines = []
        for label in [label for label, records in self.records.items() if not failed(records)]:
            if shipped is not None and label in self.committed:
                judges = [(record, partial(shipped.judge, record)) for record in self.records[label]]
            else:
                judges = [(one.record, one.judge) for _, some in self.results(data, [label]) for one in some]
            for record, judge in judges:
                for kind, groups in units.items():
                    for unit, one in judge(groups).items():
                        metrics = (one if shipped is None else rounded(one)).metrics
                        shared = (kind, unit, label, record.seed, one.n_rows, one.n_anomalous)
                        lines += [(*shared, name, value) for name, value in metrics.items()]
        columns = ["kind", "unit", "label", "seed", "n_rows", "n_anomalous", "metric", "value"]
        return pd.DataFrame(lines, columns=columns).astype({"value": float})

    def described(self, judged: Sequence[str]) -> pd.DataFrame:
        """Return a line for each row that was judged or failed; not for those with broken trials."""
        lines = [
            (label, len(one), (failed(one) or one)[0].status, label in self.committed)
            for label, one in self.records.items()
            if failed(one) or label in judged
        ]
        return pd.DataFrame(lines, columns=["label", "seeds", "status", "stored"])

    def remarks(self) -> Iterator[str]:
        """Yield which rows failed, leak, are incomplete, do not forget, or ship, and what their trials say."""
        split = "overall" if "overall" in self.splits else self.splits[0]
        rows = ranked_rows(self.trials, split, {one.trial for one in self.trials if one.label in self.committed})
        mixed = mixed_seals(rows)
        for row in rows:
            if not row.ok:
                seed, reason = row.failed[0].seed, row.failed[0].reason
                yield f"{row.label} takes no part: {row.failure_count} trials (seed {seed}: {reason}). Run it again."
            if row.leaky:
                yield f"{row.label} is leaky, only to compare: it uses the {row.leaky}."
            if row.ok and not row.complete:
                yield f"{row.label} left evaluated rows without a score: they count as the worst case."
            marks = marks_of(row, mixed=mixed)
            yield from (f"{row.label}: {marks[one]}." for one in (UNFORGETTING, UNCALIBRATED, GUARDED) if one in marks)
        for origin, alike in grouped([row for row in rows if row.stored], origin_of).items():
            names = ", ".join(row.label for row in alike)
            yield f"{names}: stored, made earlier with {origin}; values of all rows are rounded to {DECIMALS} decimals."
        yield from map(str, notes_on(self.trials))


def _remembers(records: Sequence[Record]) -> bool:
    return any(record.replay is not None and not record.replay.forgets for record in records) and not records[0].floor


def common_name(label: str) -> str:
    """Return a row's name over several data sets: its label without bounds on the cost of a fit."""
    parsed = parse_label(label)
    return str(Label(parsed.target, {key: text for key, text in parsed.arguments.items() if key not in BOUNDS}))


def _line(row: Row, metric: str) -> dict[str, Any]:
    unfit = "it is leaky" if row.leaky else "it does not forget" if row.ok and _remembers(row.records) else ""
    partial = "" if row.complete or row.floor or not row.ok else "it left evaluated rows without a score"
    value = row.metrics[metric].mean if row.ok else None
    if reason := unfit or partial:
        status = "marked"
    elif not row.ok:
        status, reason = "failed", f"{row.failure_count} trials: {row.failed[0].reason}"
    else:
        status = "undefined" if value is None else "ok"
    return {
        "detector": row.label,
        "name": common_name(row.label),
        "bounded": bool(parse_label(row.label).arguments.keys() & BOUNDS),
        "floor": row.floor,
        "seeds": len(row.seeds),
        "status": status,
        "reason": reason,
        "placed": value is not None and not unfit,
        "coverage": row.coverage,
        "value": np.nan if value is None else value,
    }


def read_rows(
    folders: Sequence[str | Path | Store],
    *,
    dataset: str | LabelledDataset | None = None,
    datasets: Sequence[str] = (),
    protocol: str | None = None,
    data: str | Path | None = None,
) -> list[Rows]:
    """Return the rows of each data set and protocol in several folders, by their first trials.

    Of a label that several folders have, the first counts in which it did not fail.
    """
    dataset, asked = _named(dataset, data)
    stores = [folder if isinstance(folder, Store) else _opened(Path(folder)) for folder in folders]
    ran = [(store, record) for store in stores for record in all_records(store)]
    names = datasets or [one.dataset for _, one in ran if asked in (None, one.dataset)]
    chosen = [one for one in ran if one[1].dataset in names and protocol in (None, one[1].protocol)]
    tables = grouped(chosen, lambda one: (one[1].dataset, one[1].protocol))
    ok = {key: some for key, some in tables.items() if any(record.status == "ok" for _, record in some)}
    if not ok:
        if len(stores) == 1 and not datasets:
            records_of_one(stores[0], dataset=asked, protocol=protocol)  # its error names what there is
        wanted = " or ".join(map(repr, datasets or ([] if asked is None else [asked])))
        places = ", ".join(str(store.path) for store in stores)
        raise UsageError(f"{places}: no trial {f'of {wanted} ' if wanted else ''}has status ok")
    directory = None if data is None else Path(data)
    return [_newest(some, name if dataset is None else dataset, directory) for (name, _), some in ok.items()]


def _newest(trials: Sequence[tuple[Store, Record]], source: str | LabelledDataset, directory: Path | None) -> Rows:
    """Return the rows of one data set and protocol, in the newest versions of both."""
    newest = max((one.dataset_version, one.protocol_version) for _, one in trials if one.status == "ok")
    records: dict[str, tuple[Record, ...]] = {}
    stores: dict[str, Store] = {}
    for (store, label), some in grouped(trials, lambda one: (one[0], one[1].label)).items():
        # Of several records of a seed the last one counts; failures do not depend on the version of the rules.
        fit = {
            one.seed: one
            for _, one in some
            if (one.dataset_version, one.protocol_version if one.status == "ok" else newest[1]) == newest
        }
        of_label = tuple(fit[seed] for seed in sorted(fit))
        if of_label and (label not in records or (failed(records[label]) and not failed(of_label))):
            records[label], stores[label] = of_label, store
    left_out = {
        one.label: f"{store.path} has it on data set version {one.dataset_version}, by version {one.protocol_version} "
        "of the rules"
        for store, one in trials
        if one.label not in records
    }
    return Rows(records, stores, left_out, source, directory)


def _named(
    dataset: str | LabelledDataset | None, data: str | Path | None
) -> tuple[str | LabelledDataset | None, str | None]:
    """Return a data set, read if a card's path is given, and its name."""
    if isinstance(dataset, str) and dataset.endswith(CARD_ENDING):
        dataset = load_dataset(dataset)(DataOptions(directory=None if data is None else Path(data), allow_changed=True))
    return dataset, dataset.dataset.name if isinstance(dataset, LabelledDataset) else dataset


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


def named_rows(
    runs: str | Path | Store,
    detectors: Sequence[str],
    dataset: str | LabelledDataset | None,
    protocol: str | None,
    data: str | Path | None,
    *,
    against: bool,
) -> Rows:
    """Return these rows of a store; with ``against`` those that it lacks from the leaderboard that ships."""
    store = runs if isinstance(runs, Store) else Store.open(Path(runs))
    dataset, name = _named(dataset, data)
    own = records_of_one(store, dataset=name, protocol=protocol)
    first, stores = own[0], [store, Committed(LEADERBOARDS)] if against else [store]
    if against:
        stored_records(first.dataset, first.protocol)  # its error names what ships
    (rows,) = read_rows(stores, dataset=dataset or first.dataset, protocol=first.protocol, data=data)
    labels = [normal_label(one, rows.records) for one in detectors]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"expected different detectors, found {label!r} twice")
        if label not in rows.records:
            why = rows.left_out.get(label, f"there is no such row{nearest(label, rows.records)}")
            raise UsageError(f"{label}: {why}")
    if not {one.label for one in own}.intersection(labels):
        raise UsageError(f"none of {', '.join(labels)} is in {store.path}: name one of your own as well")
    return replace(rows, records={label: rows.records[label] for label in labels})
