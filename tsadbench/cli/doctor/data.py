"""Data sets, found or not; the cache; a run store; a cluster."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pooch

from tsadbench.cli.doctor.finding import Finding
from tsadbench.datasets.cards.by_request import HOW, OBTAINED
from tsadbench.datasets.location import VARIABLE, find, find_obtained, place
from tsadbench.datasets.source import Source, published
from tsadbench.errors import DataNotFoundError, TsadbenchError
from tsadbench.execution.run_store import Store
from tsadbench.registry import Entry, entries

_MIB = 2**20


def datasets(directory: Path | None) -> Iterator[Finding]:
    """Give every registered data set and where its files are; nothing is downloaded or read.

    Parameters
    ----------
    directory
        As ``--data``.
    """
    named = os.environ.get(VARIABLE) if directory is None else None
    if named and not Path(named).expanduser().is_dir():
        yield Finding(
            "data sets", VARIABLE, "broken", f"names {named}, which is no folder", f"correct or unset {VARIABLE}"
        )
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
    if not place(source, directory).is_dir():
        find(source, directory)  # tells where it looked, and how to get it
    folder = place(source, directory)
    missing = source.missing(folder)
    n_files = len(source.sha256)
    if missing:
        advice = f"tsadbench data fetch {source.name} --data {folder.parent}"
        return Finding(
            "data sets", source.name, "broken", f"{len(missing)} of {n_files} files lack in {folder}", advice
        )
    return Finding("data sets", source.name, "ok", f"{n_files} files in {folder}")


def cache() -> Iterator[Finding]:
    """Give the folder of downloads and of kept answers, and its size."""
    folder = Path(pooch.os_cache("tsadbench"))
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        yield Finding(
            "cache", "folder", "broken", f"{folder} cannot be written to", "give yourself access, or set --data"
        )
    elif folder.is_dir():
        yield Finding("cache", "folder", "ok", f"{folder}, {_size(folder) / _MIB:.1f} MiB")
    else:
        yield Finding("cache", "folder", "ok", f"{folder}, nothing in it yet")


def store(path: Path) -> Iterator[Finding]:
    """Give the state of a run store: its trials, its size, what is broken in it."""
    try:
        records, broken = Store.open(path).readable()
    except TsadbenchError as error:
        yield Finding("run store", str(path), "broken", str(error))
        return
    statuses = ", ".join(f"{count} {status}" for status, count in Counter(one.status for one in records).items())
    yield Finding(
        "run store", str(path), "ok", f"{len(records)} trials ({statuses or 'none'}), {_size(path) / _MIB:.1f} MiB"
    )
    if broken:
        first = next(iter(broken.values()))
        text = f"{len(broken)} trials cannot be read: {first}"
        yield Finding("run store", "broken trials", "broken", text, f"tsadbench runs rm {path} --broken")


def cluster(address: str) -> Iterator[Finding]:
    """Give the workers of a Dask cluster."""
    from tsadbench.execution.dask_backend import workers

    try:
        found = workers(address)
    except TsadbenchError as error:
        yield Finding("cluster", address, "broken", str(error))
        return
    if found:
        yield Finding("cluster", address, "ok", f"{len(found)} workers: {', '.join(found)}")
    else:
        yield Finding("cluster", address, "broken", "has no worker", f"dask worker {address}")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
