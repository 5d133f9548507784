"""Download a data set's files one by one, checked, so that an interrupted download continues where it stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pooch
import requests

from tsadbench.datasets.source import Source
from tsadbench.errors import DataError
from tsadbench.utils.progress import progress

_CHUNK_BYTES = 65_536
_CONNECT_SECONDS = 10.0
_READ_SECONDS = 30.0
# How long `require_answer` waits for a server; a person sits in front of it.
ANSWER_SECONDS = 3.0
_NO_ANSWER = "no answer in time"


def download(source: Source, folder: Path) -> list[str]:
    """Download every file that is missing in the folder or differs from the published one; return their names.

    A file appears under its name only when it is complete and its checksum is right. Progress is reported by
    `tsadbench.progress`, one step per file.

    Parameters
    ----------
    source
        The data set's source.
    folder
        The folder for its files; it is created if necessary.

    Raises
    ------
    DataError
        If a file cannot be downloaded or written, or is not the published one.
    """
    fetched: list[str] = []
    for done, file in enumerate(source.sha256):
        progress(done, len(source.sha256), file)
        if source.state(folder, file) != "as published":
            _fetch(source, folder, file)
            fetched.append(file)
    progress(len(source.sha256), len(source.sha256))
    return fetched


def require_answer(source: Source) -> None:
    """Raise a DataError unless the data set's server answers within seconds.

    A socket's timeout covers neither the name look-up nor the server's further addresses, so the request is made in a
    thread that may be abandoned.
    """
    address = source.address(next(iter(source.sha256)))
    reasons: list[str | None] = []

    def ask() -> None:
        try:
            requests.head(address, timeout=ANSWER_SECONDS).close()
            reasons.append(None)
        except requests.RequestException as error:
            reasons.append(_reason(error))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(ANSWER_SECONDS)
    reason = reasons[0] if reasons else _NO_ANSWER
    if reason is not None:
        raise DataError(f"{address}: {reason}")


def _fetch(source: Source, folder: Path, file: str) -> None:
    address, target = source.address(file), folder / file
    try:
        with _quiet_pooch():
            pooch.retrieve(
                address,
                known_hash=f"sha256:{source.sha256[file]}",
                fname=target.name,
                path=target.parent,
                downloader=_write,
            )
        target.chmod(0o644)  # pooch leaves it readable by its owner only, and folders of data are shared
    except (OSError, ValueError) as error:
        present = len(source.sha256) - len(source.missing(folder))
        raise DataError(
            f"{file} cannot be downloaded from {address}: {_reason(error)}; "
            f"{present} of {len(source.sha256)} files are there, running it again continues from them"
        ) from error


def _write(url: str, output_file: str, _pooch: object) -> None:
    """Download one file as `pooch.HTTPDownloader` does, but close the connection also after a failure."""
    with requests.get(url, stream=True, timeout=(_CONNECT_SECONDS, _READ_SECONDS)) as response:
        response.raise_for_status()
        with open(output_file, "wb") as file:
            file.writelines(response.iter_content(_CHUNK_BYTES))


def _reason(error: Exception) -> str:
    """Return in a few words why a download failed; requests' own texts are several lines long."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered with status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return _NO_ANSWER
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection was lost"
    if isinstance(error, requests.ConnectionError):
        return "no connection to the server"
    if isinstance(error, requests.RequestException):
        return str(error)
    if isinstance(error, PermissionError):
        return "the folder may not be written to"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "the server sent another file than the published one (its SHA-256 differs)"


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Keep pooch from logging to standard error what a progress bar already shows."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
