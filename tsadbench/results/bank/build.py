"""Writes the files of a score bank from run stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tsadbench.errors import BrokenTrialError, StoreError, UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.records_file import RECORDS, read_records
from tsadbench.execution.run_store import Store
from tsadbench.execution.score_arrays import arrays_hash
from tsadbench.results.bank.bank_file import MOST_FILE_BYTES, lasting
from tsadbench.results.bank.index import INDEX, MOST_FILES, BankEntry, BankIndex, index_of, is_bank_file
from tsadbench.results.bank.parquet_form import bank_bytes, read_bank_file
from tsadbench.results.verification import judged_faults
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.digests import digest
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.progress import progress

# All files together: one and a half times what the committed tables need (docs/bank.md).
BUDGET_BYTES = 256 * 10**6


@dataclass(frozen=True, slots=True)
class Choice:
    """Which trials a bank is built of, besides that they are ok.

    Parameters
    ----------
    datasets, protocols
        Only these; empty: all. A protocol's name stands for all its labels.
    one_seed
        Whether to take the lowest seed of each row alone.
    """

    datasets: Sequence[str] = ()
    protocols: Sequence[str] = ()
    one_seed: bool = False

    def of(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield those of the records that are chosen, in their order."""
        asked = [record for record in records if record.status == "ok" and self._asked(record)]
        lowest: dict[tuple[str, str, str], int] = {}
        for record in asked:
            lowest[_row(record)] = min(record.seed, lowest.get(_row(record), record.seed))
        for record in asked:
            if not self.one_seed or record.seed == lowest[_row(record)]:
                yield record

    def _asked(self, record: Record) -> bool:
        names = {record.protocol, parse_label(record.protocol).target}
        return (not self.datasets or record.dataset in self.datasets) and (
            not self.protocols or not names.isdisjoint(self.protocols)
        )


EVERY_TRIAL = Choice()


@dataclass(frozen=True, slots=True)
class Built:
    """A bank that was written.

    Parameters
    ----------
    index
        Its index.
    left_out
        Why trials are not in it, by what they are called.
    """

    index: BankIndex
    left_out: dict[str, str] = field(default_factory=dict)


def build_bank(
    stores: Sequence[Store],
    out: Path,
    *,
    tables: Path | None = None,
    choice: Choice = EVERY_TRIAL,
    address: str = "",
    budget: int = BUDGET_BYTES,
) -> Built:
    """Write the scores of trials, a file each, and their index, ``bank.json``, into a folder.

    A file's record holds nothing that another run of the same trial would have otherwise (`lasting`): the same scores
    give the same file on every machine.

    Parameters
    ----------
    stores
        Run stores. Of several trials of one row and seed the one that began last counts.
    out
        The folder; files that a former bank left there stay if the new one has them, and are removed otherwise.
    tables
        A folder of committed tables: only their trials are taken, if the store's metrics are the committed ones, with
        the committed records. None: every trial of the stores that is ok.
    choice
        Which of them.
    address
        Where the files will lie, for the index.
    budget
        Most bytes of all files together.

    Raises
    ------
    UsageError
        If the files need more than the budget, there are none or too many, or the folder cannot be written to;
        there is no index then.
    """
    index_of([], address)  # a wrong address is found before the work
    _require_own_folder(out)
    left_out: dict[str, str] = {}
    chosen = _newest(stores, choice) if tables is None else [*_committed(stores, tables, choice, left_out)]
    if not chosen and not left_out:
        raise UsageError("there is nothing to build: none of the stores has a trial that is ok and was asked for")
    if len(chosen) > MOST_FILES:
        raise UsageError(
            f"{len(chosen)} trials: a bank has at most {MOST_FILES} files; build one for some --dataset, or --one-seed"
        )
    (out / INDEX).unlink(missing_ok=True)
    entries: list[BankEntry] = []
    n_bytes = 0
    for done, (record, store) in enumerate(chosen):
        progress(done, len(chosen), f"{n_bytes / 1e6:.1f} MB")
        try:
            content = _content(record, store)
        except StoreError as error:
            left_out[called(record)] = str(error)
            continue
        entry = BankEntry.of(read_bank_file(content, record.trial), len(content), digest(content))
        n_bytes += entry.size
        if n_bytes > budget:
            raise UsageError(
                f"{out}: after {len(entries)} of {len(chosen)} files the budget of {budget / 1e6:g} MB is used up: "
                "raise --budget, or build a bank for some --dataset, or with --one-seed"
            )
        write_file(out / entry.file, content)
        entries.append(entry)
    index = index_of(entries, address)
    kept = {entry.file for entry in entries}
    for file in out.iterdir():
        if is_bank_file(file.name) and file.name not in kept:
            file.unlink()
    index.write(out / INDEX)
    return Built(index, left_out)


def called(record: Record) -> str:
    """Return what messages call a trial."""
    return f"{record.label}, seed {record.seed} ({record.dataset}, {record.protocol})"


def _require_own_folder(out: Path) -> None:
    """Raise a UsageError if a folder holds anything but a bank."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out}: expected a new folder or that of a bank, found a file")
    if out.is_dir() and not all(one.name == INDEX or is_bank_file(one.name) for one in out.iterdir()):
        raise UsageError(f"--out {out}: expected a new folder or that of a bank, found a folder of other files")


def _newest(stores: Iterable[Store], choice: Choice) -> list[tuple[Record, Store]]:
    """Return the newest chosen trial of each row and seed, with its store."""
    found: dict[tuple[str, str, str, int], tuple[Record, Store]] = {}
    for store in stores:
        for record in store.readable():
            key = *_row(record), record.seed
            newer = key not in found or _started(record) >= _started(found[key][0])
            if newer and record.status == "ok" and store.has_scores(record.trial):
                found[key] = record, store
    return [found[*_row(record), record.seed] for record in choice.of(record for record, _ in found.values())]


def _committed(
    stores: Sequence[Store], tables: Path, choice: Choice, left_out: dict[str, str]
) -> Iterable[tuple[Record, Store]]:
    """Yield each chosen trial of committed tables with the store that holds its scores."""
    files = sorted(tables.glob(f"*/*/{RECORDS}"))
    if not files:
        raise UsageError(f"--tables {tables}: expected a folder of committed tables, found no */*/{RECORDS} in it")
    for record in choice.of(record for file in files for record in read_records(file)):
        why = "none of these stores has its scores"
        for store in stores:
            if not store.has_scores(record.trial):
                continue
            try:
                faults = [*judged_faults(store.record(record.trial), record)]
            except BrokenTrialError as error:
                faults = [str(error)]
            if not faults:
                yield record, store
                break
            why = f"it is another in {store.path}: {faults[0]}"
        else:
            left_out[called(record)] = why


def _row(record: Record) -> tuple[str, str, str]:
    return record.dataset, record.protocol, record.label


def _started(record: Record) -> str:
    return str(record.manifest.get("started"))


def _content(record: Record, store: Store) -> bytes:
    """Return the file of a trial; a StoreError if its scores are not those that its run wrote."""
    scores = store.scores(record.trial)
    if (recorded := store.record(record.trial).manifest.get("scores_hash")) is not None:
        named = {name: array for name, array in scores.items() if "/" in name}
        if arrays_hash(named) != recorded:
            raise StoreError("its scores are not those that its run wrote: their hash is another")
    content = bank_bytes(lasting(record), scores)
    if len(content) > MOST_FILE_BYTES:
        raise StoreError(f"its file has {len(content):,} bytes, and the bank takes at most {MOST_FILE_BYTES:,} each")
    return content
