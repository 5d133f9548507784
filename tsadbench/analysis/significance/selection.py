"""Which trials of a store are compared, and the data they were made on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.protocol import Metric
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.selection import records_of_one
from tsadbench.results.trial_result import protocol_of
from tsadbench.utils.parameters import nearest, parse_label


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Trials of one data set and protocol, by detector.

    Parameters
    ----------
    store
        Holds their scores.
    records
        By label, in the order they were asked for: one a seed, the newest of each.
    data
        What they were made on.
    """

    store: Store
    records: Mapping[str, tuple[Record, ...]]
    data: LabelledDataset

    @property
    def first(self) -> Record:
        """Any of the records: they have the data set and the protocol in common."""
        return next(iter(self.records.values()))[0]

    @property
    def metrics(self) -> dict[str, Metric]:
        """The protocol's metrics by name."""
        return {metric.name: metric for metric in protocol_of(self.first).metrics}

    @property
    def failures(self) -> dict[str, str]:
        """What went wrong with detectors whose trials are not all "ok": these take no part."""
        bad = {
            label: [record for record in records if record.status != "ok"] for label, records in self.records.items()
        }
        return {
            label: f"{label} takes no part: {of_label[0].status} in {len(of_label)} of {len(self.records[label])} "
            f"trials (seed {of_label[0].seed}: {of_label[0].reason}); a mean over the seeds that survived is another "
            f"number. Run it again."
            for label, of_label in bad.items()
            if of_label
        }

    def metric(self, name: str) -> Metric:
        """Return the protocol's metric of this name.

        Raises
        ------
        UsageError
            If there is none, or a higher value is neither better nor worse.
        """
        if name not in self.metrics:
            raise UsageError(f"protocol {self.first.protocol} has no metric {name!r}{nearest(name, self.metrics)}")
        if self.metrics[name].better is None:
            sensible = ", ".join(one.name for one in self.metrics.values() if one.better is not None)
            raise UsageError(
                f"{name!r} is neither better high nor low, there is nothing to test; choose of: {sensible}"
            )
        return self.metrics[name]

    def members(self, split: str | None) -> tuple[str, ...]:
        """Return the ids of a split's recordings in the data set's order; None: of all test recordings.

        Raises
        ------
        UsageError
            If there is no such split.
        """
        everything = tuple(recording.id for recording in self.data.dataset.test)
        if split is None:
            return everything
        splits = self.data.dataset.splits
        if split not in splits:
            raise UsageError(f"data set {self.data.dataset.name!r} has no split {split!r}{nearest(split, splits)}")
        return tuple(one for one in everything if one in splits[split])


def select(
    runs: Path,
    detectors: Sequence[str],
    *,
    dataset: str | LabelledDataset | None,
    protocol: str | None,
    directory: Path | None,
) -> Selection:
    """Find the trials of these detectors; errors as `tsadbench.compare`'s."""
    labels = _distinct(detectors)
    store = Store.open(runs)
    given = _given(dataset)
    name = given.dataset.name if given is not None else dataset if isinstance(dataset, str) else None
    records = records_of_one(store, dataset=name, protocol=protocol)
    by_label = _by_label(records)
    for label in labels:
        if label not in by_label:
            raise UsageError(f"{runs} holds no trials of {label!r}{nearest(label, by_label)}")
    data = given if given is not None else _load(records[0].dataset, directory)
    return Selection(store, {label: by_label[label] for label in labels}, data)


def _distinct(detectors: Sequence[str]) -> tuple[str, ...]:
    labels = tuple(_normal(one) for one in detectors)
    if len(labels) < 2:
        raise UsageError(f"expected two detectors or more to compare, found {', '.join(labels) or 'none'}")
    twice = [label for label in dict.fromkeys(labels) if labels.count(label) > 1]
    if twice:
        raise UsageError(f"expected different detectors, found {twice[0]!r} twice")
    return labels


def _normal(text: str) -> str:
    """Return a label as tables show it: keys sorted, no spaces."""
    request = parse_label(text)
    arguments = ",".join(f"{key}={request.arguments[key]}" for key in sorted(request.arguments))
    return f"{request.target}[{arguments}]" if arguments else request.target


def _by_label(records: Iterable[Record]) -> dict[str, tuple[Record, ...]]:
    """Return the records of each label, by seed."""
    by_label: dict[str, tuple[Record, ...]] = {}
    for record in sorted(records, key=lambda one: (one.label, one.seed)):
        by_label[record.label] = (*by_label.get(record.label, ()), record)
    return by_label


def _given(dataset: str | LabelledDataset | None) -> LabelledDataset | None:
    """Return the data where they themselves, or the path of their card, were given."""
    if isinstance(dataset, str):
        return load_dataset(dataset)(DataOptions()) if dataset.endswith(CARD_ENDING) else None
    return dataset


def _load(name: str, directory: Path | None) -> LabelledDataset:
    try:
        loader = load_dataset(name)
    except UsageError as error:
        raise UsageError(f"{error}. Trials on data of your own: give its card, --dataset path/card.toml") from error
    return loader(DataOptions(directory=directory, allow_changed=True))
