"""The index of the score bank: which files there are, and what each must be to the byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from tsadbench.base.status import Trust
from tsadbench.errors import StoreError, UsageError
from tsadbench.execution.stored_files import open_regular
from tsadbench.results.bank.bank_file import MOST_FILE_BYTES, MOST_ROWS, BankFile
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.names import label_fault, name_fault
from tsadbench.utils.parameters import nearest, parse_label
from tsadbench.utils.shipped_tables import LEADERBOARDS

INDEX = "bank.json"
# The folder of the files where the index lies beside it, as in the repository.
FILES = "bank"
# 1: the first.
SCHEMA = 1
# The index of the committed tables has a third of that.
MOST_INDEX_BYTES = 10**6
# A release of GitHub holds a thousand files; the index is one of them.
MOST_FILES = 999
ENDING = ".parquet"
# A longer list of names than this in a message helps nobody.
_LONGEST_HINT = 200
_DIGEST = re.compile(r"[0-9a-f]{64}")
_IDENTITY = re.compile(r"[0-9a-f]{8,64}")
_ADDRESS = re.compile(r"https?://[^\s\"'<>\\]{1,500}")
_MARKUP = set("<>&\"'")

# Of pydantic's: a field that is not known is an error, and a text is no number. Each class names it: pydantic 2.10 does
# not apply one dataclass's to another inside it.
_STRICT: ConfigDict = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class BankEntry:
    """One file of the bank: the scores of one trial.

    Parameters
    ----------
    dataset, dataset_version, protocol, protocol_version, label, seed, trust
        As in the trial's record (`Record`).
    trial, scoring
        The trial's name and its scoring identity, as in its record.
    recordings, rows
        Number of scored test recordings, and of rows of training, calibration and test recordings.
    size, sha256
        The file's bytes, and their digest, by which it is named.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    dataset: str
    dataset_version: int
    protocol: str
    protocol_version: int
    label: str
    seed: int
    trial: str
    scoring: str
    trust: Trust
    recordings: int
    rows: int
    size: int
    sha256: str

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.sha256}{ENDING}"

    @classmethod
    def of(cls, content: BankFile, size: int, sha256: str) -> BankEntry:
        """Return the entry of a file with this content."""
        record = content.record
        return cls(
            **{name: getattr(record, name) for name in _OF_RECORD},
            recordings=content.n_recordings,
            rows=content.n_rows,
            size=size,
            sha256=sha256,
        )

    def faults(self, content: BankFile) -> Iterator[str]:
        """Yield in what a file is not what its entry says."""
        found = BankEntry.of(content, self.size, self.sha256)
        for name, value in asdict(self).items():
            if getattr(found, name) != value:
                yield f"{name}: {getattr(found, name)!r}, in the index {value!r}"


_OF_RECORD = (
    *("dataset", "dataset_version", "protocol", "protocol_version", "label", "seed"),
    *("trial", "scoring", "trust"),
)


@dataclass(frozen=True, slots=True)
class BankIndex:
    """All files of a bank.

    Parameters
    ----------
    entries
        Sorted by data set, protocol, label and seed.
    address
        Where the files lie: a folder on a server; empty if nobody has said so.
    schema
        Version of this layout.
    kind
        What the file is.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    entries: tuple[BankEntry, ...]
    address: str = ""
    schema: int = SCHEMA
    kind: Literal["score bank"] = "score bank"

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)

    def chosen(
        self, datasets: Sequence[str] = (), detectors: Sequence[str] = (), protocols: Sequence[str] = ()
    ) -> tuple[BankEntry, ...]:
        """Return the entries of these data sets, detectors (labels, or names for all their labels) and protocols.

        Raises
        ------
        UsageError
            If one of them is in no entry, or no entry has all of them; empty stands for all.
        """
        names = [_names(entry) for entry in self.entries]
        for place, (what, asked) in enumerate(
            (("data set", datasets), ("detector", detectors), ("protocol", protocols))
        ):
            known = {name for one in names for name in one[place]}
            for name in asked:
                if name not in known:
                    hint = nearest(name, tuple(sorted(known)))
                    if len(hint) > _LONGEST_HINT:
                        hint = "; `tsadbench bank list` shows what it has"
                    raise UsageError(f"the bank has no {what} {name!r}{hint}")
        asked_for = (datasets, detectors, protocols)
        found = tuple(
            entry
            for entry, of in zip(self.entries, names, strict=True)
            if all(not asked or of[place] & set(asked) for place, asked in enumerate(asked_for))
        )
        if not found and any(asked_for):
            raise UsageError("the bank has each of the names, but no file has all of them; leave one of them out")
        return found

    def write(self, file: Path) -> Path:
        """Write the index, one entry a line, and return the file."""
        head = json.dumps({"kind": self.kind, "schema": self.schema, "address": self.address})[:-1]
        lines = ",\n".join(json.dumps(asdict(entry), ensure_ascii=False) for entry in self.entries)
        return write_file(file, f'{head}, "entries": [\n{lines}\n]}}\n')

    @classmethod
    def read(cls, file: Path) -> BankIndex:
        """Return an index, which may hold anything: its author need not be known.

        Raises
        ------
        UsageError
            If there is no such file.
        StoreError
            If it is no index, or an entry cannot be right.
        """
        try:
            with open_regular(file, MOST_INDEX_BYTES) as content:
                index = _adapter().validate_json(content.read())
        except FileNotFoundError:
            raise UsageError(f"{file}: there is no index of a score bank; `tsadbench bank build` writes one") from None
        except OSError as error:
            raise StoreError(f"{file}: cannot be read ({error.strerror or error})") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            raise StoreError(f"{file}: not an index of a score bank ({where:.100}: {first['msg']})") from error
        if fault := next(_faults(index), None):
            raise StoreError(f"{file}: not an index of a score bank ({fault})")
        return index


def shipped_index() -> Path:
    """Return the index that lies beside the committed tables; a UsageError if there is none."""
    shipped = LEADERBOARDS / INDEX
    if not shipped.is_file():
        raise UsageError("no index of a score bank ships with this version: name one with --index FILE")
    return shipped


def index_for(folder: Path) -> Path | None:
    """Return the index of a folder of the bank: in it, or beside it if it is called ``bank``; None if it has none."""
    places = [folder / INDEX]
    if folder.is_dir() and folder.resolve().name == FILES:
        places.append(folder.resolve().parent / INDEX)
    return next((place for place in places if place.is_file()), None)


def index_of(entries: Iterable[BankEntry], address: str = "") -> BankIndex:
    """Return the index of these files.

    Raises
    ------
    UsageError
        If the address is none.
    """
    if address and not _ADDRESS.fullmatch(address):
        raise UsageError(f"address {address!r:.200}: expected http://... or https://..., the folder of the files")
    ordered = sorted(entries, key=lambda one: (one.dataset, one.protocol, one.label, one.seed, one.trial))
    return BankIndex(tuple(ordered), address)


def is_bank_file(name: str) -> bool:
    """Whether a file is named as those of a bank are: by a SHA-256."""
    return name.endswith(ENDING) and _DIGEST.fullmatch(name.removesuffix(ENDING)) is not None


def _names(entry: BankEntry) -> tuple[set[str], set[str], set[str]]:
    detector, protocol = parse_label(entry.label).target, parse_label(entry.protocol).target
    return {entry.dataset}, {entry.label, detector}, {entry.protocol, protocol}


def _faults(index: BankIndex) -> Iterator[str]:
    """Yield what is wrong with an index whose types are right."""
    if index.schema != SCHEMA:
        yield f"expected schema {SCHEMA}, found {index.schema}"
    if index.address and not _ADDRESS.fullmatch(index.address):
        yield "address: expected http://... or https://..."
    if len(index.entries) > MOST_FILES:
        yield f"expected at most {MOST_FILES} entries, found {len(index.entries)}"
    for number, entry in enumerate(index.entries, start=1):
        yield from (f"entry {number}: {fault}" for fault in _entry_faults(entry))
    for name in ("sha256", "trial"):
        values = [getattr(entry, name) for entry in index.entries]
        if len(set(values)) < len(values):
            yield f"two entries have the same {name}"


def _entry_faults(entry: BankEntry) -> Iterator[str]:
    for name in ("dataset", "protocol", "label"):
        text = getattr(entry, name)
        fault = label_fault(text) if name == "label" else name_fault(text.partition("[")[0]) or label_fault(text)
        if fault:
            yield f"{name}: {fault}"
        if _MARKUP & set(text):
            yield f"{name}: it contains one of {' '.join(sorted(_MARKUP))}"
    for name in ("protocol", "label"):
        try:
            parse_label(getattr(entry, name))
        except UsageError as error:
            yield f"{name}: {error}"
    for name, pattern in (("sha256", _DIGEST), ("trial", _IDENTITY), ("scoring", _IDENTITY)):
        if not pattern.fullmatch(getattr(entry, name)):
            yield f"{name}: expected hexadecimal digits"
    limits = {
        **dict.fromkeys(("dataset_version", "protocol_version", "recordings"), (1, MOST_ROWS)),
        "seed": (0, 2**63),
        "rows": (1, MOST_ROWS),
        "size": (1, MOST_FILE_BYTES),
    }
    for name, (least, most) in limits.items():
        if not least <= getattr(entry, name) <= most:
            yield f"{name}: expected a number from {least} to {most}, found {getattr(entry, name)}"


@cache
def _adapter() -> TypeAdapter[BankIndex]:
    return TypeAdapter(BankIndex)
