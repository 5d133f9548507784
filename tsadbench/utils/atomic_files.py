"""Write files completely or not at all, and report those that cannot be written."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tsadbench.errors import UsageError

# Of Linux's renameat2: paths are relative to the working folder; two names exchange what they stand for.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
# What it answers on systems and file systems that cannot do that (NFS).
_NOT_OFFERED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def write_file(file: Path, content: str | bytes) -> Path:
    """Write a file and return it. Its folder is created; the former content stays until the new one is on the disk.

    Parameters
    ----------
    file
        A link is followed. What is not a regular file (``/dev/stdout``, a pipe) is written to and stays what it is.
    content
        Text is written as UTF-8, its line ends as they are.

    Raises
    ------
    UsageError
        If it cannot be written.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with _reported(file):
        _make_folder(file.parent)
        if file.exists() and not file.is_file():
            with file.open("wb") as special:
                special.write(data)
        else:
            _replace(file.resolve(), data)
    return file


def require_writable(file: Path) -> None:
    """Raise a UsageError before long work if its result could not be written; the file's folder is created."""
    with _reported(file):
        _make_folder(file.parent)
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(file if file.exists() else file.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def require_own_folder(folder: Path, marker: str, kind: str) -> None:
    """Raise a UsageError before anything is written among other people's files.

    Parameters
    ----------
    folder
        The one that --out names. It may be missing or empty.
    marker
        The file by which a folder that the same command has written is known, from the folder's top.
    kind
        What messages call such a folder.
    """
    with _reported(folder):
        if not folder.exists() or (folder / marker).is_file():
            return
        expected = f"--out {folder}: expected a new folder or {kind}"
        if not folder.is_dir():
            raise UsageError(f"{expected}, found a file")
        if any(folder.iterdir()):
            raise UsageError(f"{expected}, found a folder of other files")


def require_not_read(written: Path | int, read: Iterable[Path | int]) -> None:
    """Raise a UsageError if a file is to be written that is also read, before it is opened and its content is lost.

    Parameters
    ----------
    written
        The file, or the descriptor of an open one. One that does not exist yet is nobody's input.
    read
        Files, or descriptors of open ones. It does not matter by which path or link they are named.
    """
    try:
        target = os.stat(written)
    except OSError:
        return
    for one in read if stat.S_ISREG(target.st_mode) else ():
        with contextlib.suppress(OSError):  # whoever reads it says what is wrong
            if os.path.samestat(os.stat(one), target):
                name = written if isinstance(written, Path) else "standard output"
                raise UsageError(f"{name}: this file is also an input; choose another output")


def open_text(file: Path) -> TextIO:
    """Open a file to write line by line, as UTF-8 with its line ends unchanged; its folder is created.

    Raises
    ------
    UsageError
        If it cannot be written.
    """
    with _reported(file):
        _make_folder(file.parent)
        return file.open("w", encoding="utf-8", newline="")


def exchange(first: Path, second: Path) -> bool:
    """Let two files or folders exchange their names at once, so that neither name is ever missing.

    Returns
    -------
    bool
        False if the system or the file system cannot do that; nothing has happened then.

    Raises
    ------
    OSError
        If one of them does not exist, or may not be renamed.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_OFFERED:
        return False
    raise OSError(number, os.strerror(number), str(first))


def append_text(file: Path, text: str) -> None:
    """Append text to a file that others may append to as well; it is created if necessary.

    Raises
    ------
    UsageError
        If it cannot be written.
    """
    with _reported(file):
        _make_folder(file.parent)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)


@contextmanager
def _reported(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror or error}); choose another place") from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error


def _replace(file: Path, data: bytes) -> None:
    unfinished = file.with_name(f".unfinished-{secrets.token_hex(8)}")
    try:
        with unfinished.open("xb") as stream:
            if file.exists():
                shutil.copymode(file, unfinished)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
