"""Bytes and lines as they arrive: from standard input, or from a file that others append to."""

from __future__ import annotations

import codecs
import io
import os
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from tsadbench.datasets.formats import codec, encoding_fault
from tsadbench.errors import DataError

_BYTES_AT_ONCE = 2**18
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Restarted:
    """The file has begun anew: what follows is another recording.

    Parameters
    ----------
    reason
        What happened to it.
    """

    reason: str


Piece: TypeAlias = bytes | Restarted


def follow_input(descriptor: int, idle: float | None) -> Iterator[Piece]:
    """Yield what arrives from a pipe, a terminal or a file, until it ends."""
    while True:
        ready, _, _ = select.select([descriptor], [], [], idle)
        data = os.read(descriptor, _BYTES_AT_ONCE) if ready else b""
        if not data:
            return
        yield data


def follow_file(path: Path, idle: float | None) -> Iterator[Piece]:
    """Yield what a file holds and what is appended to it.

    A file that becomes shorter, or whose name passes to another file, has begun anew: `Restarted`. One that is
    truncated and outgrows its former length between two polls, 50 ms apart, looks like one that only grows. A DataError
    if it cannot be opened.
    """
    file = _open(path)
    try:
        last_arrival = time.monotonic()
        while True:
            data = file.read(_BYTES_AT_ONCE)
            if data:
                last_arrival = time.monotonic()
                yield data
                continue
            restarted = _restarted(path, file)
            if restarted is not None:
                rest = file.read()  # written after the read above, before the file was replaced
                if rest and restarted.reason == _REPLACED:
                    yield rest
                yield restarted
                file.close()
                file = _open(path)
                last_arrival = time.monotonic()
            elif idle is not None and time.monotonic() - last_arrival >= idle:
                return
            else:
                time.sleep(_POLL_SECONDS)
    finally:
        file.close()


_REPLACED = "another file has taken its name"
_CUT = "it has become shorter"


def _restarted(path: Path, file: BinaryIO) -> Restarted | None:
    opened = os.fstat(file.fileno())
    try:
        current = path.stat()
    except FileNotFoundError:
        return None  # it has been moved away, and its successor is not there yet
    if (current.st_dev, current.st_ino) != (opened.st_dev, opened.st_ino):
        return Restarted(_REPLACED)
    return Restarted(_CUT) if opened.st_size < file.tell() else None


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb", buffering=0)
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file; correct the name") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


class Lines:
    """Cuts bytes into lines, which may end with LF, CRLF or CR; a line counts once its end has arrived.

    Parameters
    ----------
    name
        What messages call the input.
    encoding
        As Python names it.
    tolerant
        Whether bytes that the encoding does not allow become the replacement character, which no number has.
    """

    def __init__(self, name: str, encoding: str, *, tolerant: bool = False) -> None:
        decoder = codecs.getincrementaldecoder(codec(encoding))("replace" if tolerant else "strict")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._name = name
        self._encoding = encoding
        self._rest = ""
        self._n_lines = 0

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that the next bytes complete."""
        return self._cut(data, final=False)

    def end(self) -> list[str]:
        """Return the last line, if it has no end."""
        lines = self._cut(b"", final=True)
        return lines if not self._rest else [*lines, self._rest]

    @property
    def unfinished(self) -> bool:
        """Whether a line has begun whose end has not arrived."""
        return bool(self._rest)

    def _cut(self, data: bytes, *, final: bool) -> list[str]:
        try:
            text = self._decoder.decode(data, final=final)
        except UnicodeDecodeError as error:
            line = self._n_lines + error.object.count(b"\n", 0, error.start) + 1
            fault = encoding_fault(self._encoding, error.object[error.start])
            raise DataError(f"{self._name}, line {line}: {fault}") from error
        *lines, self._rest = (self._rest + text).split("\n")
        self._n_lines += len(lines)
        return lines
