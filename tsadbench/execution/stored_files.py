"""Reads the files of a run store, which anybody may have made: within limits, and nothing but data."""

from __future__ import annotations

import math
import os
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.lib import format as npy

from tsadbench.utils.arrays import Float32Array, FloatArray
from tsadbench.utils.names import label_fault

if TYPE_CHECKING:
    from tsadbench.execution.record import Record

# By the name of each array.
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]

# The folder of a store that holds no trial, but reports of checks.
CHECKS = "checks"
_ENDING = ".npy"
# The header of an array of floats has 128 bytes.
_LONGEST_HEADER = 1000


class StoredScores(Protocol):
    """Trials with their scores: a run store, or a folder of the score bank."""

    path: Path

    def trials(self) -> list[str]:
        """Return the names of all trials."""

    def record(self, trial: str) -> Record:
        """Return a trial's record; a BrokenTrialError if it cannot be read."""

    def has_scores(self, trial: str) -> bool:
        """Whether a trial's scores are here."""

    def scores(self, trial: str, shapes: Shapes | None = None) -> dict[str, FloatArray]:
        """Return a trial's scores by ``<role>/<episode>/<recording>``; a BrokenTrialError if they cannot be read."""

    def contributions(self, trial: str, shapes: Shapes | None = None) -> dict[str, Float32Array]:
        """Return a trial's contributions by ``<episode>/<recording>``; empty if there are none. As for `scores`."""


def open_regular(file: str | os.PathLike[str], most_bytes: int) -> IO[bytes]:
    """Open a file that is neither a link nor a pipe or device, and not larger than ``most_bytes``.

    Raises
    ------
    OSError
        If it is none, or cannot be opened; the error's ``strerror`` says why.
    """
    if os.path.islink(file):
        raise OSError(0, "it is a link, and could lead anywhere")
    # Without O_NONBLOCK opening a pipe would wait for its writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(file, flags)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a file")
        if found.st_size > most_bytes:
            raise OSError(0, f"it has {found.st_size} bytes, expected at most {most_bytes}")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_arrays(content: IO[bytes], shapes: Shapes | None = None) -> dict[str, FloatArray]:
    """Return the arrays of a file that `numpy.savez` wrote, float64 or float32, read-only; no header is believed.

    Parameters
    ----------
    content
        The open file. No more memory is taken than it has bytes.
    shapes
        Those of the arrays to read; others in the file are passed over. None reads all.

    Raises
    ------
    Exception
        If the file is no such file, or an array is not of floating-point numbers or not of its shape: a ValueError
        that says so, or whatever NumPy and `zipfile` raise.
    """
    with zipfile.ZipFile(content) as archive:
        members = {one.filename.removesuffix(_ENDING): one for one in archive.infolist()}
        if sum(one.file_size for one in archive.infolist()) > os.fstat(content.fileno()).st_size:
            raise ValueError("its arrays are larger than the file: expected them uncompressed")
        if shapes is not None:
            return {name: _read(archive, members[name], shapes[name]) for name in shapes if name in members}
        for name in members:
            if fault := label_fault(name):
                raise ValueError(f"the name of an array: {fault}")
        return {name: _read(archive, member) for name, member in members.items()}


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, expected: tuple[int, ...] | None = None) -> FloatArray:
    name = member.filename.removesuffix(_ENDING)
    with archive.open(member) as stream:
        if npy.read_magic(stream) != (1, 0):
            raise ValueError(f"{name}: expected an array in NumPy's format 1.0")
        shape, fortran, dtype = npy.read_array_header_1_0(stream, max_header_size=_LONGEST_HEADER)
        if dtype not in (np.float64, np.float32):
            raise ValueError(f"{name}: expected floating-point numbers, found {dtype}")
        if expected is not None and shape != expected:
            raise ValueError(f"{name}: expected {list(expected)}, found {list(shape)}")
        if math.prod(shape) * dtype.itemsize != member.file_size - stream.tell() or min(shape, default=0) < 0:
            raise ValueError(f"{name}: expected {list(shape)}, found {member.file_size} bytes")
        content = stream.read()  # to its end, at which the checksum is compared
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")
