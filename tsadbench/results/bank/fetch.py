"""Fetches files of a score bank from a server or a folder, each checked by its digest before it has its name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsadbench.datasets.download import download
from tsadbench.datasets.source import Source
from tsadbench.errors import StoreError, UsageError
from tsadbench.execution.stored_files import open_regular
from tsadbench.results.bank.index import FILES, INDEX, BankEntry, BankIndex
from tsadbench.utils.atomic_files import require_own_folder, write_file
from tsadbench.utils.digests import digest
from tsadbench.utils.progress import progress

# Holds the address, a folder or that of one on a server, for those who name none.
ADDRESS_VARIABLE = "TSADBENCH_BANK_URL"


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of fetching: the names of files that were fetched, and how many were here already."""

    new: tuple[str, ...]
    n_before: int


def fetch_bank(
    index: BankIndex, entries: Sequence[BankEntry], out: Path, address: str | None = None, *, beside: Path | None = None
) -> Fetched:
    """Fetch files of the bank that are not in a folder yet, or differ from the index; the index is put beside them.

    Parameters
    ----------
    index
        The bank's index; what it says of a file is what is accepted.
    entries
        Those of its files that are wanted.
    out
        The folder, a new one or one that holds a bank.
    address
        A folder, or the address of one on a server (http, https); None: that of the environment variable
        `ADDRESS_VARIABLE`, otherwise the folder `FILES` beside the index if it is there, otherwise the index's.
    beside
        The index's file, to look beside it.

    Raises
    ------
    UsageError
        If it is not known where the files lie, or the folder is one of other files.
    DataError
        If a file cannot be downloaded, or is not the one of the index; those before it are kept.
    StoreError
        The same, of a file in a folder.
    """
    folder = "" if beside is None or not (beside.parent / FILES).is_dir() else str(beside.parent / FILES)
    where = address or os.environ.get(ADDRESS_VARIABLE) or folder or index.address
    if not where:
        raise UsageError(
            f"no folder {FILES!r} lies beside the index, and the index names no address: say where the files lie with "
            f"--from (leaderboards/{FILES} of a clone of the repository, any other folder, or http://...) or with "
            f"{ADDRESS_VARIABLE}"
        )
    require_own_folder(out, INDEX, "that of a bank")
    source = _source(where, entries)
    index.write(out / INDEX)
    if where.startswith(("http://", "https://")):
        new = download(source, out)
    elif "://" in where or not Path(where).is_dir():
        raise UsageError(f"{where!r:.200}: expected a folder, or an address that begins with http:// or https://")
    else:
        new = _copy(Path(where), source, out)
    return Fetched(tuple(new), len(entries) - len(new))


def _source(where: str, entries: Sequence[BankEntry]) -> Source:
    sizes = {entry.file: entry.size for entry in entries}
    digests: Mapping[str, str] = {entry.file: entry.sha256 for entry in entries}
    # No variable of the environment can have the name of this source's mirror: an address that is asked for counts.
    return Source("score-bank", where.rstrip("/"), "", sum(sizes.values()), digests, sizes=sizes)


def _copy(folder: Path, source: Source, out: Path) -> list[str]:
    """Copy the files that are not there yet; return their names."""
    new = []
    for done, (file, expected) in enumerate(source.sha256.items()):
        progress(done, len(source.sha256))
        if source.state(out, file) == "as published":
            continue
        try:
            with open_regular(folder / file, source.sizes[file]) as stream:
                content = stream.read()
        except OSError as error:
            raise StoreError(f"{folder / file}: cannot be read ({error.strerror or error})") from error
        if digest(content) != expected:
            raise StoreError(f"{folder / file}: its SHA-256 is another than that of the index")
        write_file(out / file, content)
        new.append(file)
    return new
