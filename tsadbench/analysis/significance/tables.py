"""The rows that are ranked: of a data set under a protocol, from run stores and from committed leaderboards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.protocol import Metric
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.record import RECORDS, Record, read_records
from tsadbench.execution.store import Store
from tsadbench.leaderboard.ranking import Row
from tsadbench.leaderboard.selection import Selection, all_records, select
from tsadbench.results.trial_result import TrialResult, protocol_of
from tsadbench.utils.parameters import nearest

FLOOR = "†"


class Committed(Store):
    """Committed leaderboards, read like a store: records without scores.

    Parameters
    ----------
    path
        Their folder.
    """

    def records(self) -> tuple[Record, ...]:
        """Return the records of all tables."""
        return self._records

    @cached_property
    def _records(self) -> tuple[Record, ...]:
        return tuple(record for file in _record_files(self.path) for record in read_records(file))


def _record_files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*/*/{RECORDS}"))


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of a data set under a protocol. Leaky and unforgetting ones take no part.

    Parameters
    ----------
    parts
        What each store has of it, no label twice.
    unfit
        The rows that take no part.
    """

    parts: tuple[Selection, ...]
    unfit: tuple[Row, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all stores."""
        return tuple(row for part in self.parts for row in part.rows)

    @property
    def failed(self) -> tuple[Row, ...]:
        """The rows that failed in each store that has them."""
        ok = {row.label for row in (*self.rows, *self.unfit)}
        failed = {row.label: row for part in reversed(self.parts) for row in part.failed if row.label not in ok}
        return tuple(failed.values())

    @property
    def all_rows(self) -> tuple[Row, ...]:
        """The rows that take part, those that do not, and those that failed."""
        return (*self.rows, *self.unfit, *self.failed)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Which rows take no part, each with its reason."""
        present = {row.label for row in self.rows}
        reasons = dict.fromkeys(reason for part in self.parts for reason in part.left_out)
        return tuple(reason for reason in reasons if reason.partition(": ")[0] not in present)

    @property
    def first(self) -> Record:
        """A trial of it: data set and protocol are those of all."""
        return (self.rows or self.unfit)[0].first

    @property
    def scored(self) -> Table:
        """The table of those rows whose scores a store may hold."""
        return replace(self, parts=tuple(_without_scores(part) for part in self.parts))

    @property
    def stores(self) -> str:
        """The folders that hold its rows."""
        return ", ".join(dict.fromkeys(str(part.store.path) for part in self.parts))

    def load(self) -> LabelledDataset:
        """Return the data set; errors as for `Selection.load`."""
        return self.parts[0].load()

    def without_broken(self, data: LabelledDataset) -> Table:
        """Return the table without the rows of which a trial's arrays are broken; a warning tells of each trial."""
        return replace(self, parts=tuple(part.without_broken(data) if part.rows else part for part in self.parts))

    def results(self, row: Row, data: LabelledDataset, *, one_each: bool = False) -> list[TrialResult]:
        """Return the trials of one of its rows beside the data; parameters and errors as for `Selection.results`."""
        (part,) = (part for part in self.parts if any(one.label == row.label for one in part.rows))
        return part.only(row).results(data, one_each=one_each)


def read_tables(
    folders: Sequence[str | Path | Store],
    *,
    dataset: str | LabelledDataset | None = None,
    datasets: Sequence[str] = (),
    protocol: str | None = None,
    data: str | Path | None = None,
) -> list[Table]:
    """Return the rows of each data set and protocol in several folders, by their first trials.

    A label that several of them have is the first's in which it did not fail. A UsageError if a folder is neither, or
    nothing in them fits.
    """
    if isinstance(dataset, str) and dataset.endswith(CARD_ENDING):
        dataset = load_dataset(dataset)(DataOptions(allow_changed=True))
    asked = dataset.dataset.name if isinstance(dataset, LabelledDataset) else dataset
    found: dict[tuple[str, str], list[Selection]] = {}
    stores = [folder if isinstance(folder, Store) else _opened(Path(folder)) for folder in folders]
    for store in stores:
        for name, rules in dict.fromkeys(
            (one.dataset, one.protocol) for one in all_records(store) if one.status == "ok"
        ):
            if asked in (None, name) and protocol in (None, rules) and (not datasets or name in datasets):
                source = dataset if asked == name else name
                chosen = select(store, dataset=source, protocol=rules, data=data, everything=True)
                found.setdefault((name, rules), []).append(chosen)
    if not found:
        if len(stores) == 1 and not datasets:
            select(stores[0], dataset=dataset, protocol=protocol)
        names = datasets or ([] if asked is None else [asked])
        wanted = f" of the data set {' or '.join(map(repr, names))}" if names else ""
        rules = "" if protocol is None else f" under the protocol {protocol!r}"
        places = ", ".join(str(store.path) for store in stores)
        raise UsageError(f"{places}: no trial{wanted}{rules} has status ok")
    return [_joined(selections) for selections in found.values()]


def _without_scores(part: Selection) -> Selection:
    """Return the rows of a store; of committed leaderboards none."""
    if not isinstance(part.store, Committed):
        return part
    reasons = (f"{row.label}: {part.store.path} holds no scores" for row in part.rows)
    return replace(part, rows=(), left_out=(*part.left_out, *reasons))


def _opened(folder: Path) -> Store:
    try:
        return Store.open(folder)
    except UsageError:
        if _record_files(folder):
            return Committed(folder)
        raise


def _joined(selections: Sequence[Selection]) -> Table:
    """Return what several stores have of a data set and protocol, in the newest versions of both."""
    newest = max(map(_versions, selections))
    parts: list[Selection] = []
    unfit: list[Row] = []
    labels: set[str] = set()
    for selection in selections:
        if _versions(selection) != newest:
            version, rules = _versions(selection)
            reason = (
                f"{selection.store.path} has it on version {version} of the data set, by version {rules} of the rules"
            )
            left_out = tuple(f"{row.label}: {reason}" for row in selection.rows)
            parts.append(replace(selection, rows=(), left_out=left_out, failed=()))
            continue
        rows = [row for row in selection.rows if row.label not in labels]
        labels |= {row.label for row in rows}
        out = {row.label: "it is leaky" for row in rows if row.leaky}
        out |= {row.label: "it does not forget" for row in rows if not (row.floor or row.forgets)}
        unfit += [row for row in rows if row.label in out]
        part = replace(
            selection,
            rows=tuple(row for row in rows if row.label not in out),
            left_out=(*selection.left_out, *(f"{label}: {reason}" for label, reason in out.items())),
        )
        parts.append(part)
    return Table(tuple(parts), tuple(unfit))


def _versions(selection: Selection) -> tuple[int, int]:
    first = selection.rows[0].first
    return first.dataset_version, first.protocol_version


def metric_of(name: str, table: Table) -> Metric:
    """Return a metric of a table's protocol; a UsageError if it has none of this name that is better high or low."""
    first = table.first
    metrics = {metric.name: metric for metric in protocol_of(first).metrics if metric.better is not None}
    if name not in metrics:
        raise UsageError(
            f"protocol {first.protocol} has no metric {name!r} that is better high or low{nearest(name, metrics)}"
        )
    return metrics[name]
