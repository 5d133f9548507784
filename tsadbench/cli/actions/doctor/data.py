"""Data sets, available or not; the cache; a run store; a cluster."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pooch

from tsadbench.cli.actions.doctor.findings import Finding
from tsadbench.datasets.cards.by_request import HOW, OBTAINED
from tsadbench.datasets.location import VARIABLE, find, find_obtained, place
from tsadbench.datasets.source import Source, published
from tsadbench.errors import DataNotFoundError, TsadbenchError
from tsadbench.execution.run_store import Store
from tsadbench.registry import Entry, entries

_MIB = 2**20


def datasets(directory: Path | None) -> Iterator[Finding]:
    """Yield every registered data set and the location of its files; nothing is downloaded or read.

    Parameters
    ----------
    directory
        As ``--data``.
    """
    folder = os.environ.get(VARIABLE) if directory is None else None
    if folder and not Path(folder).expanduser().is_dir():
        text = f"names {folder}, which is not a folder"
        yield Finding("data sets", VARIABLE, "broken", text, f"correct or unset {VARIABLE}")
    for entry in {entry.name: entry for entry in entries("datasets")}.values():
        yield _dataset(entry, directory)


def _dataset(entry: Entry, directory: Path | None) -> Finding:
    name = entry.name
    try:
        if name in published():
            return _published(Source.load(name), directory)
        if name in OBTAINED:
            return Finding("data sets", name, "ok", str(find_obtained(name, directory, HOW)))
    except DataNotFoundError as error:
        return Finding("data sets", name, "missing", str(error).removeprefix(f"{name}: "))
    return Finding("data sets", name, "ok", f"comes with its package, {entry.package} {entry.version}")


def _published(source: Source, directory: Path | None) -> Finding:
    folder = place(source.name, directory)
    if not folder.is_dir():
        find(source, directory)  # raises, and says where it looked and how to get the files
    missing = source.missing(folder)
    n_files = len(source.sha256)
    if not missing:
        return Finding("data sets", source.name, "ok", f"{n_files} files in {folder}")
    text = f"{len(missing)} of {n_files} files are missing in {folder}"
    return Finding(
        "data sets", source.name, "broken", text, f"tsadbench data fetch {source.name} --data {folder.parent}"
    )


def cache() -> Iterator[Finding]:
    """Yield the folder of downloads and of stored answers, and its size."""
    folder = Path(pooch.os_cache("tsadbench"))
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        text = f"{folder} cannot be written to"
        yield Finding("cache", "folder", "broken", text, "give yourself access, or set --data")
    elif folder.is_dir():
        yield Finding("cache", "folder", "ok", f"{folder}, {_size(folder) / _MIB:.1f} MiB")
    else:
        yield Finding("cache", "folder", "ok", f"{folder}, nothing in it yet")


def store(path: Path) -> Iterator[Finding]:
    """Yield the state of a run store: its trials, its size, what is broken in it."""
    try:
        records, broken = Store.open(path).listed()
    except TsadbenchError as error:
        yield Finding("run store", str(path), "broken", str(error))
        return
    counts = Counter(record.status for record in records)
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items()) or "none"
    text = f"{len(records)} trials ({statuses}), {_size(path) / _MIB:.1f} MiB"
    yield Finding("run store", str(path), "ok", text)
    if broken:
        text = f"{len(broken)} trials cannot be read: {next(iter(broken.values()))}"
        yield Finding("run store", "broken trials", "broken", text, f"tsadbench runs rm {path} --broken")


def cluster(address: str) -> Iterator[Finding]:
    """Yield the workers of a Dask cluster."""
    # An extra may bring it, and the doctor works without any extra.
    from tsadbench.execution.dask_backend import workers

    try:
        addresses = workers(address)
    except TsadbenchError as error:
        yield Finding("cluster", address, "broken", str(error))
        return
    if addresses:
        yield Finding("cluster", address, "ok", f"{len(addresses)} workers: {', '.join(addresses)}")
    else:
        yield Finding("cluster", address, "broken", "has no worker", f"dask worker {address}")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
