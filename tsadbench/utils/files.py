"""Write files completely or not at all, read them up to a stated size, and say which cannot be written."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TextIO, cast

import platformdirs

from tsadbench.errors import UsageError

# Prefix of the names of files that are being written.
UNFINISHED = ".unfinished-"
_AT_ONCE = 2**20
_PACKAGE = Path(__file__).parents[1]
# A wheel has the leaderboards inside the package (see setup.py), a checkout next to it.
_INSTALLED = _PACKAGE / "shipped"
LEADERBOARDS = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "leaderboards"


def cache_folder() -> Path:
    """Return the folder for downloaded data sets and descriptions of detectors."""
    return Path(platformdirs.user_cache_dir("tsadbench"))


def write_file(file: Path, content: str | bytes) -> Path:
    """Write a file (text as UTF-8) and return it. The old content stays until the new content is on the disk.

    Creates the folder, follows links, and writes to pipes and devices such as ``/dev/stdout`` directly. Raises a
    UsageError if the file cannot be written.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with _reported(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():
            file.write_bytes(data)
            return file
        target = file.resolve()
        unfinished = target.with_name(f"{UNFINISHED}{secrets.token_hex(8)}")
        try:
            with unfinished.open("xb") as stream:
                if target.exists():
                    shutil.copymode(target, unfinished)
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    return file


def open_text(file: Path, mode: str = "w") -> TextIO:
    """Open a file to write it line by line, as UTF-8 with unchanged line ends; errors as for `write_file`."""
    with _reported(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        return cast("TextIO", file.open(mode, encoding="utf-8", newline=""))


def require_writable(file: Path) -> None:
    """Raise a UsageError if a file cannot be written; called before long work. Creates the file's folder."""
    with _reported(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            raise IsADirectoryError("Is a directory")
        if not os.access(file if file.exists() else file.parent, os.W_OK):
            raise PermissionError("Permission denied")


def require_own_folder(folder: Path, marker: str, kind: str) -> None:
    """Raise a UsageError unless an output folder is missing, is empty, or contains the file ``marker``.

    ``kind`` is what the message calls folders that contain it.
    """
    with _reported(folder):
        # List before looking for the marker: another process may be about to write it.
        own = folder.is_dir() and all(one.name.startswith(UNFINISHED) for one in folder.iterdir())
        if folder.exists() and not own and not (folder / marker).is_file():
            found = "a folder of other files" if folder.is_dir() else "a file"
            raise UsageError(f"{folder}: expected a new folder or {kind}, found {found}", field="out")


@contextmanager
def _reported(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror or error}); choose another place") from error


def read_bytes(file: Path, most: int) -> bytes:
    """Return the content of a file, a pipe or a device. Raises an OSError if it holds more than ``most`` bytes."""
    with file.open("rb") as stream:
        fits = os.fstat(stream.fileno()).st_size <= most  # 0 unless it is a regular file
        parts = iter(partial(stream.read, _AT_ONCE), b"")
        content = b"".join(islice(parts, most // _AT_ONCE + 1 if fits else 0))
    if not fits or len(content) > most:
        raise OSError(f"the file is too large: expected at most {most:,} bytes")
    return content


def read_text(file: Path, most: int, encoding: str = "utf-8") -> str:
    """Return a text file's content with universal newlines; errors as for `read_bytes`."""
    return read_bytes(file, most).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content, 64 hex digits."""
    return hashlib.sha256(content).hexdigest()
