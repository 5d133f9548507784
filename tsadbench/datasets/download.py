"""Download a data set's files one by one, checked, so that an interrupted download continues where it stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pooch
import requests
from urllib3.exceptions import ReadTimeoutError

from tsadbench.datasets.source import Source, megabytes
from tsadbench.errors import DataError
from tsadbench.utils.progress import progress

_CHUNK_BYTES = 65_536
_CONNECT_SECONDS = 10.0
# How long a server may send nothing.
READ_SECONDS = 30.0
# How long `require_answer` waits for a server; a person sits in front of it.
ANSWER_SECONDS = 3.0
_NO_ANSWER = "no answer in time"


def download(source: Source, folder: Path) -> list[str]:
    """Download every file that is missing in the folder or differs from the published one; return their names.

    A file appears under its name only when it is complete and its checksum is right. Progress is reported by
    `tsadbench.progress`: a step is a file, the note says how many bytes are there. A DataError if a file cannot be
    downloaded or written, or is not the published one.
    """
    fetched: list[str] = []
    so_far = _SoFar(source)
    for file in source.sha256:
        so_far.tell()
        if source.state(folder, file) != "as published":
            _fetch(source, folder, file, so_far)
            fetched.append(file)
        so_far.n_files += 1
        so_far.n_bytes += (folder / file).stat().st_size
    so_far.tell()
    return fetched


@dataclass(slots=True)
class _SoFar:
    """How much of a data set is there."""

    source: Source
    n_files: int = 0
    n_bytes: int = 0

    def tell(self, received: int = 0) -> None:
        """Report it, with the bytes received of the file that is being downloaded."""
        note = f"{megabytes(self.n_bytes + received)} of {megabytes(self.source.n_bytes)} MB"
        progress(self.n_files, len(self.source.sha256), note)


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


def _fetch(source: Source, folder: Path, file: str, so_far: _SoFar) -> None:
    address, target = source.address(file), folder / file
    most = source.sizes.get(file, source.n_bytes)  # no file is larger than all together

    def write(url: str, output_file: str, _pooch: object) -> None:
        """Download the file as `pooch.HTTPDownloader` does, but close the connection also after a failure."""
        with requests.get(url, stream=True, timeout=(_CONNECT_SECONDS, READ_SECONDS)) as response:
            response.raise_for_status()
            with open(output_file, "wb") as output:
                for chunk in response.iter_content(_CHUNK_BYTES):
                    output.write(chunk)
                    so_far.tell(output.tell())
                    if output.tell() > most:  # it may have no end
                        raise ValueError("too long")

    try:
        with _quiet_pooch():
            pooch.retrieve(
                address,
                known_hash=f"sha256:{source.sha256[file]}",
                fname=target.name,
                path=target.parent,
                downloader=write,
            )
        target.chmod(0o644)  # pooch leaves it readable by its owner only, and folders of data are shared
    except (OSError, ValueError) as error:
        present = len(source.sha256) - len(source.missing(folder))
        raise DataError(
            f"{file} cannot be downloaded from {address}: {_reason(error)}; "
            f"{present} of {len(source.sha256)} files are there, running it again continues from them"
        ) from error


def _reason(error: Exception) -> str:
    """Return in a few words why a download failed; requests' own texts are several lines long."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered with status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return _NO_ANSWER
    if isinstance(error, requests.ConnectionError) and isinstance(error.args[0], ReadTimeoutError):
        return "the server stopped sending"
    if isinstance(error, requests.TooManyRedirects):
        return "the server redirects in a circle"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection was lost"
    if isinstance(error, requests.ConnectionError):
        return "no connection to the server"
    if isinstance(error, requests.RequestException):
        return str(error)
    if isinstance(error, PermissionError):
        return "the folder may not be written to"
    if isinstance(error, NotADirectoryError | FileExistsError):
        wanted = Path(error.filename)
        return f"{next((one for one in (wanted, *wanted.parents) if one.is_file()), wanted)} is a file, not a folder"
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
