"""Where a data set's files lie: ``--data DIR``, else TSADBENCH_DATA, else the cache, else a download."""

from __future__ import annotations

import os
from pathlib import Path

import pooch

from tsadbench.datasets.download import download, require_answer
from tsadbench.datasets.source import Source
from tsadbench.errors import DataError, DataNotFoundError

VARIABLE = "TSADBENCH_DATA"


def place(source: Source, directory: Path | None) -> Path:
    """Return the folder in which the data set's files are or, once fetched, will be.

    Parameters
    ----------
    source
        The data set's source.
    directory
        The folder that holds a folder for each data set; None takes TSADBENCH_DATA or else the cache.
    """
    return _place(source.name, directory)


def find(source: Source, directory: Path | None) -> Path:
    """Return the folder that holds the data set's files; never download.

    Parameters
    ----------
    source, directory
        As for `place`.

    Raises
    ------
    DataNotFoundError
        If there is no such folder. A folder that the user named and that lacks the data set is an error:
        the search does not go on elsewhere.
    """
    folder = place(source, directory)
    if folder.is_dir():
        return folder
    named = _named(directory)
    if named is None:
        raise _nowhere(source, f"not found in the cache {folder}")
    option, above = named
    here = "; it seems to be that folder itself: give the one above it" if above.name == source.name else ""
    raise DataNotFoundError(
        f"{option} {above}: expected a folder that holds {source.name}/, found none{here}; "
        f"give another one, or run  tsadbench data fetch {source.name} --data {above}"
    )


def find_or_download(source: Source, directory: Path | None) -> Path:
    """Return the folder that holds the data set's files; fill the cache if it is the cache and lacks any.

    Parameters
    ----------
    source, directory
        As for `place`.

    Raises
    ------
    DataNotFoundError
        If a folder that the user named lacks the data set, or the files cannot be downloaded. Without a network
        it is raised within seconds.
    """
    if _named(directory) is not None:
        return find(source, directory)
    folder = place(source, None)
    if source.missing(folder):
        try:
            require_answer(source)
            download(source, folder)
        except DataError as error:
            raise _nowhere(source, f"not in the cache {folder} and not to be downloaded ({error})") from error
    return folder


def find_obtained(name: str, directory: Path | None, how: str) -> Path:
    """Return the folder that holds the files of a data set that nobody may publish.

    Parameters
    ----------
    name
        The data set's name, and that of the folder.
    directory
        As for `place`.
    how
        How one gets its files.

    Raises
    ------
    DataNotFoundError
        If there is no such folder.
    """
    folder = _place(name, directory)
    if folder.is_dir():
        return folder
    raise DataNotFoundError(
        f"{name}: there is no folder {folder}; {how}; then put its files into a folder {name}/ and name the folder "
        f"above it with --data DIR or {VARIABLE}=DIR"
    )


def _place(name: str, directory: Path | None) -> Path:
    named = _named(directory)
    above = pooch.os_cache("tsadbench") if named is None else named[1]
    return above / name


def _named(directory: Path | None) -> tuple[str, Path] | None:
    """Return how the user named a folder, and the folder; None if no folder was named."""
    if directory is not None:
        return "--data", directory.expanduser()
    variable = os.environ.get(VARIABLE)
    return (VARIABLE, Path(variable).expanduser()) if variable else None


def _nowhere(source: Source, found: str) -> DataNotFoundError:
    return DataNotFoundError(
        f"{source.name}: {found}; give --data DIR, set {VARIABLE}=DIR (a folder that holds {source.name}/), "
        f"or run  tsadbench data fetch {source.name}  on a machine with network"
    )
