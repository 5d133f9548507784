"""Write files completely or not at all, read them up to a stated size, and report those that cannot be written."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO, cast

import platformdirs

from tsadbench.errors import UsageError

UNFINISHED = ".unfinished-"  # prefix of files that are being written; host, process and a random number follow
# A wheel has the leaderboards inside the package (see setup.py), a checkout next to it.
LEADERBOARDS = Path(__file__).parents[1] / "shipped"
LEADERBOARDS = LEADERBOARDS if LEADERBOARDS.is_dir() else LEADERBOARDS.parents[1] / "leaderboards"


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
        target = Path(os.path.realpath(file))
        with replacing(target) as stream:
            if target.exists():
                shutil.copymode(target, stream.name)
            stream.write(data)
    return file


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file that takes a file's place, once it is on the disk, unless the block raises an error."""
    unfinished = file.with_name(f"{UNFINISHED}{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}")
    try:
        with unfinished.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def open_text(file: Path) -> TextIO:
    """Open a file to write it line by line, as UTF-8 with unchanged line ends; errors as for `write_file`."""
    with _reported(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        return cast("TextIO", file.open("w", encoding="utf-8", newline=""))


def require_writable(file: Path) -> None:
    """Raise a UsageError if a file cannot be written; called before long work. Creates the file's folder."""
    with _reported(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            raise IsADirectoryError("Is a directory")
        folder = Path(os.path.realpath(file)).parent  # `replacing` writes into it
        replaced = os.access(folder, os.W_OK) or not file.is_file()
        if not (replaced and os.access(file if file.exists() else folder, os.W_OK)):
            raise PermissionError("Permission denied")


def require_own_folder(folder: Path, marker: str, kind: str) -> None:
    """Raise a UsageError unless an output folder, of a ``kind``, is missing, empty, or contains the file ``marker``."""
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


def open_regular(file: str | os.PathLike[str], most: int, *, links: bool = False) -> IO[bytes]:
    """Open a file of at most ``most`` bytes; an OSError if it is a pipe, a device or, without ``links``, a link."""
    if not links and os.path.islink(file):
        raise OSError(0, "it is a link, and could lead anywhere")
    # Without O_NONBLOCK opening a pipe would wait for its writer.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | (0 if links else os.O_NOFOLLOW))
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_size <= most:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(0, f"it is not a file of at most {most:,} bytes")


def read_bytes(file: Path, most: int) -> bytes:
    """Return a file's content, following links; other errors as for `open_regular`."""
    with open_regular(file, most, links=True) as stream:
        return stream.read()


def read_text(file: Path, most: int, encoding: str = "utf-8") -> str:
    """Return a text file's content with universal newlines; errors as for `read_bytes`."""
    return read_bytes(file, most).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content, 64 hex digits."""
    return hashlib.sha256(content).hexdigest()
