"""Files of arrays (MATLAB, R, NumPy), opened by a sealed process: a forged file reaches nothing else."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import resource
import struct
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from tsadbench.datasets.unpickling import read_pickle
from tsadbench.errors import MissingExtraError
from tsadbench.sandbox.seal import kernel
from tsadbench.sandbox.seal.seccomp import filter_calls
from tsadbench.utils.text import one_line

ARRAYS = (".mat", ".rda", ".rdata", ".pkl", ".pickle", ".npy")
_LIBRARIES = {".mat": "scipy.io", ".rda": "rdata", ".rdata": "rdata"}
_MOST_BYTES, _MOST_MEMORY = 2**31, 2**33
# Of processor time, for each file and each MiB of it.
_SECONDS = 10, 0.5
_FRAME = struct.Struct("<?Q")  # whether arrays follow, or a text that says why not; their length
# Between the names of an array and of its column.
_OF = "\n"


def read_arrays(paths: Sequence[Path]) -> dict[Path, dict[str, pd.DataFrame] | str]:
    """Return the arrays of files as tables by the arrays' names, or what is wrong with a file.

    The columns of an array have no names (`RangeIndex`); those of a data frame of R have. A MissingExtraError if the
    package that reads R's files is not installed.
    """
    suffixes = [path.suffix.lower() for path in paths]
    if any(_LIBRARIES.get(suffix) == "rdata" for suffix in suffixes) and not importlib.util.find_spec("rdata"):
        raise MissingExtraError("reading files of R", "r")
    found: dict[Path, dict[str, pd.DataFrame] | str] = {}
    with contextlib.ExitStack() as opened:
        files = dict[Path, int]()
        for path in paths:
            try:
                file = opened.enter_context(path.open("rb"))
                size = os.fstat(file.fileno()).st_size
                if size > _MOST_BYTES:
                    raise ValueError(f"it has {size / 2**30:.0f} GiB; split it into several files")
                files[path] = file.fileno()
            except (OSError, ValueError) as error:
                found[path] = f"cannot be read: {one_line(str(error), 200)}"
        if not files:
            return found
        arguments = [f"{number}{path.suffix.lower()}" for path, number in files.items()]
        child = opened.enter_context(
            subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=[*files.values()],
            )
        )  # fmt: skip
        assert child.stdout is not None
        for path in files:
            found[path] = _answer(child.stdout)
    return found


def _answer(stream: IO[bytes]) -> dict[str, pd.DataFrame] | str:
    """Return what the process sends of one file; nothing of it is unpickled."""
    head = stream.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return "cannot be read: the process that read it ended; the file seems to be damaged, or is too large"
    is_read, size = _FRAME.unpack(head)
    content = stream.read(size)
    if not is_read:
        return f"cannot be read: {one_line(content.decode(errors='replace'), 200)}"
    columns: dict[str, dict[str, npt.NDArray[np.generic]]] = {}
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            names = [str(name) for name in stored["names"]]
            for number, name in enumerate(names):
                array, _, column = name.partition(_OF)
                columns.setdefault(array, {})[column] = stored[str(number)]
    except (ValueError, KeyError, OSError) as error:
        return f"cannot be read: {one_line(str(error), 200)}"
    return {
        array: pd.DataFrame(found[""], copy=False) if [*found] == [""] else pd.DataFrame(found)
        for array, found in columns.items()
    }


def _arrays(suffix: str, file: BinaryIO) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
    """Yield the arrays of a file with their names, those of data frames column by column."""
    if suffix == ".mat":
        import scipy.io

        for name, array in scipy.io.loadmat(file).items():  # type: ignore[arg-type]  # the stubs know paths alone
            if not name.startswith("__"):
                yield name + _OF, array
    elif suffix in (".rda", ".rdata"):
        import rdata

        for name, table in rdata.conversion.convert(rdata.parser.parse_file(file)).items():
            if isinstance(table, pd.DataFrame):
                for column in table:
                    yield f"{name}{_OF}{column}", _plain(table[column])
            else:
                yield name + _OF, np.asarray(table)
    else:
        yield _OF, np.load(file, allow_pickle=False) if suffix == ".npy" else np.asarray(read_pickle(file))


def _plain(column: pd.Series) -> npt.NDArray[np.generic]:
    """Return numbers as they are, missing ones NaN, and others as texts, empty where one is missing."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(np.float64, na_value=np.nan)
    return column.astype(object).where(column.notna(), "").astype(str).to_numpy(dtype=np.str_)


def _checked(suffix: str, file: BinaryIO) -> dict[str, npt.NDArray[np.generic]]:
    """Return what is sent: names, and arrays of numbers by rows and columns. A ValueError if one is anything else."""
    found = {}
    for name, array in _arrays(suffix, file):
        if array.dtype.kind not in "biufU" or array.ndim not in (1, 2) or (array.ndim == 2 and not array.shape[1]):
            if suffix == ".mat":  # others may lie there
                continue
            raise ValueError(f"expected numbers in rows and columns, found {array.dtype.name} of {list(array.shape)}")
        found[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    if not found:
        raise ValueError("it holds no array of numbers")
    return {"names": np.array([*found]), **{str(number): array for number, array in enumerate(found.values())}}


def _seal(sizes: Sequence[int]) -> None:
    """Close this process off from files, sockets and other processes, as far as the kernel can."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    seconds = round(sum(_SECONDS[0] + size / 2**20 * _SECONDS[1] for size in sizes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        kernel.drop_capabilities()
        if kernel.landlock_version():  # libraries import more of themselves later
            kernel.restrict((path, kernel.READ) for path in sys.path)
    with contextlib.suppress(OSError):  # a wall of its own: it stands where the other one is refused
        filter_calls()


def _main(arguments: Sequence[str]) -> None:
    for suffix in {f".{argument.partition('.')[2]}" for argument in arguments}.intersection(_LIBRARIES):
        importlib.import_module(_LIBRARIES[suffix])
    _seal([os.fstat(int(argument.partition(".")[0])).st_size for argument in arguments])
    warnings.simplefilter("ignore")
    for argument in arguments:
        number, _, suffix = argument.partition(".")
        content = io.BytesIO()
        try:
            with open(int(number), "rb") as file:
                np.savez(content, allow_pickle=False, **_checked(f".{suffix}", file))
            is_read = True
        except Exception as error:  # a damaged file ends in nearly every exception that there is
            content, is_read = io.BytesIO(f"{type(error).__name__}: {error}".encode()), False
        sys.stdout.buffer.write(_FRAME.pack(is_read, len(content.getbuffer())))
        sys.stdout.buffer.write(content.getbuffer())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _main(sys.argv[1:])
