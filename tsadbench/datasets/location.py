"""Find a data set's files: ``--data DIR``, else TSADBENCH_DATA, else the cache, else a download."""

from __future__ import annotations

import os
from pathlib import Path

from tsadbench.datasets.source import Source
from tsadbench.errors import DataError, DataNotFoundError
from tsadbench.utils.files import cache_folder

VARIABLE = "TSADBENCH_DATA"


def place(name: str, directory: Path | None) -> Path:
    """Return the folder in which a data set's files are or, once fetched, will be."""
    named = _named(directory)
    return (cache_folder() if named is None else named[1]) / name


def find(source: Source, directory: Path | None) -> Path:
    """Return the folder that holds a data set's files; never download.

    A DataNotFoundError if there is no such folder. If the user has named a folder that lacks the data set, the search
    ends there.
    """
    folder = place(source.name, directory)
    if folder.is_dir():
        return folder
    named = _named(directory)
    if named is None:
        raise _not_found(source, f"not found in the cache {folder}")
    option, above = named
    hint = "; it seems to be that folder itself: name its parent" if above.name == source.name else ""
    raise DataNotFoundError(
        f"{option} {above}: expected a folder that holds {source.name}/, found none{hint}; "
        f"name another one, or run  tsadbench data fetch {source.name} --data {above}  ({source.origin})"
    )


def find_or_download(source: Source, directory: Path | None) -> Path:
    """Return the folder that holds all files of a data set; only the cache is filled by downloading.

    A DataNotFoundError if a folder that the user has named lacks files, or if they cannot be downloaded. Without a
    network connection it is raised within seconds.
    """
    if _named(directory) is not None:
        folder = find(source, directory)
        source.require(folder)
        return folder
    folder = place(source.name, None)
    if source.missing(folder):
        from tsadbench.datasets.download import download, require_answer

        try:
            require_answer(source)
            download(source, folder)
        except DataError as error:
            reason = f"not in the cache {folder} and cannot be downloaded ({error})"
            raise _not_found(source, reason) from error
    return folder


def find_obtained(name: str, directory: Path | None, how: str) -> Path:
    """Return the folder that holds the files of a data set that may not be published.

    A DataNotFoundError if there is no such folder.
    """
    folder = place(name, directory)
    if folder.is_dir():
        return folder
    raise DataNotFoundError(
        f"{name}: there is no folder {folder}; {how}; then put its files into a folder {name}/ and name its parent "
        f"with --data DIR or {VARIABLE}=DIR"
    )


def _named(directory: Path | None) -> tuple[str, Path] | None:
    """Return how the user has named a folder, and the folder; None if no folder was named."""
    if directory is not None:
        return "--data", directory.expanduser()
    variable = os.environ.get(VARIABLE)
    return (VARIABLE, Path(variable).expanduser()) if variable else None


def _not_found(source: Source, reason: str) -> DataNotFoundError:
    return DataNotFoundError(
        f"{source.name}: {reason}; give --data DIR, set {VARIABLE}=DIR (a folder that holds {source.name}/), "
        f"or run  tsadbench data fetch {source.name}  on a machine with network ({source.origin})"
    )
