"""Trials of a store chosen as figures and explanations show them: one data set, one protocol, some detectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.ranking import Row, check_split, ranked_rows, splits_of
from tsadbench.results.trial_result import TrialResult, protocol_of
from tsadbench.utils.parameters import nearest

# Detectors that a figure shows where nobody says which.
SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Detectors of one data set, protocol and split.

    Parameters
    ----------
    store
        The store that holds them.
    source
        What the data set is loaded by: its name, or the path of its card.
    directory
        Folder with the data sets' files; None searches as the documentation says.
    split
        The split that ranks them.
    rows
        The chosen ones, as asked for, or by rank.
    left_out
        What was not chosen since it failed, and why.
    """

    store: Store
    source: str
    directory: Path | None
    split: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...]

    def only(self, row: Row) -> Selection:
        """Return the selection of one of its rows."""
        return replace(self, rows=(row,))

    def load(self) -> LabelledDataset:
        """Return the data set."""
        return load_dataset(self.source)(DataOptions(directory=self.directory, allow_changed=True))

    def results(self, data: LabelledDataset | None = None, *, one_each: bool = False) -> list[TrialResult]:
        """Return the trials that came out "ok", laid beside the data.

        Parameters
        ----------
        data
            The data set; loaded where it is not given.
        one_each
            Whether only each detector's trial of the lowest seed is wanted.

        Raises
        ------
        DataError, StoreError
            As `TrialResult` does.
        """
        loaded = self.load() if data is None else data
        chosen = [record for row in self.rows for record in (_good(row)[:1] if one_each else _good(row))]
        episodes = tuple(protocol_of(chosen[0]).episodes(loaded.dataset))
        return [TrialResult(record, self.store, loaded, episodes) for record in chosen]


def select(
    runs: str | Path,
    *,
    dataset: str | None = None,
    protocol: str | None = None,
    detectors: Sequence[str] = (),
    split: str | None = None,
    seed: int | None = None,
    data: str | Path | None = None,
    everything: bool = False,
) -> Selection:
    """Choose trials of a run store; of several of the same label and seed the newest counts.

    Parameters
    ----------
    runs
        The store's folder.
    dataset, protocol
        Name of the data set, or its card; the protocol's as tables show it. Needed where the store holds several.
    detectors
        Labels, as `leaderboard` shows them; none given: the best five by AUPRC on the split that are not leaky,
        and the best floor.
    split
        A split of the data set; by default ``overall``.
    seed
        The one seed to show; a detector that ran once is shown whatever its seed.
    data
        Folder with the data sets' files.
    everything
        Whether none given means all detectors and floors.

    Raises
    ------
    UsageError
        If there is no store, data set, protocol, split, label or seed of this name, or no trial came out "ok".
    """
    store = Store.open(Path(runs))
    directory = None if data is None else Path(data)
    source, name = _source(dataset, directory)
    records = list(records_of_one(store, dataset=name, protocol=protocol))
    _check_labels(detectors, records)
    if seed is not None:
        records = _of_seed(records, seed, detectors)
    shown = _split(split, records)
    rows = _with_good_trials(_chosen(ranked_rows(records, shown), detectors, everything), strictly=bool(detectors))
    return Selection(
        store=store,
        source=source or records[0].dataset,
        directory=directory,
        split=shown,
        rows=rows,
        left_out=tuple(_left_out(ranked_rows(records, shown), detectors)),
    )


def records_of_one(store: Store, *, dataset: str | None, protocol: str | None) -> tuple[Record, ...]:
    """Return a store's records of one data set and protocol, the newest of each label and seed.

    Parameters
    ----------
    store
        The store.
    dataset, protocol
        As records call them. Needed where the store holds several.

    Raises
    ------
    UsageError
        If the store holds none, or no trial of these.
    """
    found: Sequence[Record] = store.records()
    if not found:
        raise UsageError(f"{store.path} holds no trials yet: run some with `tsadbench run --out {store.path}`")
    for attribute, what, wanted in (("dataset", "data set", dataset), ("protocol", "protocol", protocol)):
        known = tuple(sorted({str(getattr(record, attribute)) for record in found}))
        if wanted is None and len(known) > 1:
            raise UsageError(
                f"{store.path} holds trials of several {what}s, {', '.join(known)}: choose one by --{attribute}"
            )
        if wanted is not None and wanted not in known:
            raise UsageError(f"{store.path} holds no trial of the {what} {wanted!r}{nearest(wanted, known)}")
        found = [record for record in found if wanted in (None, getattr(record, attribute))]
    return tuple({(record.label, record.seed): record for record in found}.values())


def _source(dataset: str | None, directory: Path | None) -> tuple[str | None, str | None]:
    """Return what a data set is loaded by, and its name in records: a card's file is not named like its data set."""
    if dataset is None or not dataset.endswith(CARD_ENDING):
        return dataset, dataset
    return dataset, load_dataset(dataset)(DataOptions(directory=directory)).dataset.name


def _check_labels(wanted: Sequence[str], records: Sequence[Record]) -> None:
    known = tuple(dict.fromkeys(record.label for record in records))
    for label in wanted:
        if label not in known:
            raise UsageError(f"there is no detector {label!r} among these trials{nearest(label, known)}")


def _of_seed(records: Sequence[Record], seed: int, labels: Sequence[str]) -> list[Record]:
    by_label: dict[str, list[Record]] = {}
    for record in records:
        if not labels or record.label in labels:
            by_label.setdefault(record.label, []).append(record)
    known = sorted({record.seed for of_label in by_label.values() for record in of_label})
    if seed not in known:
        raise UsageError(f"no trial has the seed {seed}; there are: {', '.join(map(str, known))}")
    found = []
    for label, of_label in by_label.items():
        chosen = [record for record in of_label if record.seed == seed or len(of_label) == 1]
        if not chosen and label in labels:
            seeds = ", ".join(str(record.seed) for record in sorted(of_label, key=lambda record: record.seed))
            raise UsageError(f"{label} has no trial of seed {seed}; there are: {seeds}")
        found += chosen
    return found


def _split(wanted: str | None, records: Sequence[Record]) -> str:
    if wanted is not None:
        check_split(wanted, records)
    known = splits_of(records)
    return wanted or ("overall" if "overall" in known or not known else known[0])


def _chosen(rows: Sequence[Row], labels: Sequence[str], everything: bool) -> list[Row]:
    if labels:
        by_label = {row.label: row for row in rows}
        return [by_label[label] for label in dict.fromkeys(labels)]
    good = [row for row in rows if row.ok]
    if everything:
        return good
    return [*[row for row in good if not row.floor and not row.leaky][:SHOWN], *[row for row in good if row.floor][:1]]


def _with_good_trials(rows: Sequence[Row], *, strictly: bool) -> tuple[Row, ...]:
    """Return the rows with a trial that came out "ok"; a row that was asked for by its name must have one."""
    good = tuple(row for row in rows if _good(row))
    for row in rows if strictly else ():
        if not _good(row):
            first = row.failed[0]
            raise UsageError(f"no trial of {row.label} came out ok: {first.status}, {first.reason}")
    if not good:
        raise UsageError("no trial came out ok: there are no scores to show; `tsadbench runs list` says why")
    return good


def _good(row: Row) -> list[Record]:
    return [record for record in row.records if record.status == "ok"]


def _left_out(rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    return [
        f"{row.label}: {row.status} in {len(row.failed)} of {len(row.seeds)} trials"
        for row in rows
        if not row.ok and (not labels or row.label in labels)
    ]
