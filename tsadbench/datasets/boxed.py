"""Files of arrays (MATLAB, R, NumPy), opened by a sealed process: a forged file reaches nothing else."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pickle
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from tsadbench.errors import MissingExtraError
from tsadbench.sandbox.seal import kernel
from tsadbench.sandbox.seal.seccomp import filter_calls
from tsadbench.utils.text import one_line

ARRAYS = (".mat", ".rda", ".rdata", ".pkl", ".pickle", ".npy", ".dat")
_LIBRARIES = {".mat": "scipy.io", ".rda": "rdata", ".rdata": "rdata"}
_MOST_BYTES, _MOST_MEMORY = 2**31, 2**33
# Of processor time, for each file and each MiB of it.
_SECONDS = 10, 0.5
_FAULT = "fault"  # the key of a text that says why there are no arrays
# Between the names of an array and of its column.
_OF = "\n"


def read_arrays(paths: Sequence[Path]) -> dict[Path, dict[str, pd.DataFrame] | str]:
    """Return the arrays of files as tables by the arrays' names, or why a file cannot be read.

    The columns of an array have no names (`RangeIndex`); those of a data frame of R have. A MissingExtraError if the
    package that reads R's files is not installed.
    """
    if any(_LIBRARIES.get(path.suffix.lower()) == "rdata" for path in paths) and not importlib.util.find_spec("rdata"):
        raise MissingExtraError("reading files of R", "r")
    found: dict[Path, dict[str, pd.DataFrame] | str] = {}
    with contextlib.ExitStack() as opened:
        files = dict[Path, int]()
        for path in paths:
            try:
                files[path] = opened.enter_context(path.open("rb")).fileno()
            except OSError as error:
                found[path] = one_line(str(error), 200)
        if files:
            ours, theirs = Pipe(duplex=False)
            passed, none = [theirs.fileno(), *files.values()], subprocess.DEVNULL
            command = [sys.executable, "-P", "-m", __name__, str(theirs.fileno())]
            command += [f"{number}{path.suffix.lower()}" for path, number in files.items()]
            opened.enter_context(subprocess.Popen(command, stdin=none, stdout=none, stderr=none, pass_fds=passed))
            theirs.close()
            with ours:
                found |= {path: _answer(ours) for path in files}
    return found


def _answer(sent: Connection) -> dict[str, pd.DataFrame] | str:
    """Return what the process sends of one file; nothing of it is unpickled."""
    tables: dict[str, dict[str, npt.NDArray[np.generic]]] = {}
    try:
        with np.load(io.BytesIO(sent.recv_bytes(_MOST_MEMORY)), allow_pickle=False) as stored:
            if _FAULT in stored:
                return one_line(str(stored[_FAULT]), 200)
            for number, name in enumerate(map(str, stored["names"])):
                array, _, column = name.partition(_OF)
                tables.setdefault(array, {})[column] = stored[str(number)]
        return {
            array: pd.DataFrame(found[""], copy=False) if [*found] == [""] else pd.DataFrame(found)
            for array, found in tables.items()
        }
    except Exception:  # a file that has taken the process over may send anything
        return "the process that read it ended; the file is damaged or too large"


def _arrays(suffix: str, file: BinaryIO) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
    """Yield the arrays of a file with their names, those of data frames column by column."""
    if suffix == ".mat":
        import scipy.io

        arrays = scipy.io.loadmat(file)  # type: ignore[arg-type]  # the stubs know paths alone
        yield from ((name + _OF, array) for name, array in arrays.items() if not name.startswith("__"))
    elif suffix in (".rda", ".rdata"):
        import rdata

        for name, table in rdata.conversion.convert(rdata.parser.parse_file(file)).items():
            for column in table if isinstance(table, pd.DataFrame) else ():
                is_number = pd.api.types.is_numeric_dtype(table[column].dtype)
                kind = {"dtype": np.float64, "na_value": np.nan} if is_number else {"dtype": np.str_, "na_value": ""}
                yield f"{name}{_OF}{column}", table[column].astype(object).to_numpy(**kind)
            if not isinstance(table, pd.DataFrame):
                yield name + _OF, np.asarray(table)
    elif suffix == ".dat":  # numbers between spaces
        yield _OF, np.loadtxt(file)
    else:
        content = np.load(file, allow_pickle=False) if suffix == ".npy" else _Unpickler(file, encoding="latin1").load()
        yield _OF, np.asarray(content)


class _Unpickler(pickle.Unpickler):
    """Reads an array of numbers; a pickle that asks for anything else is refused before it is run."""

    def find_class(self, module: str, name: str, /) -> object:
        """Return the stand-in for a global that arrays need."""
        if (found := _GLOBALS.get((module.replace("_core", "core"), name))) is None:
            raise ValueError(f"the pickle asks for {f'{module}.{name}'[:80]!a}; expected an array of numbers alone")
        return found


class _NdArray:
    """Stands in for `numpy.ndarray`, which reads any memory if a pickle calls it."""

    def __init__(self) -> None:
        raise ValueError("the pickle calls what arrays never call")


def _dtype(text: object, *_: object) -> np.dtype[np.generic]:
    """Stand in for `numpy.dtype`: types of numbers only."""
    found = np.dtype(text, False, True) if isinstance(text, str) else None  # a copy: the pickle sets its byte order
    if found is None or found.kind not in "biuf":
        raise ValueError("expected an array of numbers, found another kind")
    return found


_GLOBALS: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy", "dtype"): _dtype,
    ("numpy", "ndarray"): _NdArray,
    ("_codecs", "encode"): lambda text, *_: text.encode("latin1"),  # with which old protocols write bytes
    # The array gets its shape, type and bytes later, and checks that they agree.
    ("numpy.core.multiarray", "_reconstruct"): lambda *_: np.empty(0),
    ("numpy.core.numeric", "_frombuffer"): lambda data, dtype, shape, order: np.frombuffer(data, dtype).reshape(
        shape, order="F" if order == "F" else "C"
    ),
}


def _checked(suffix: str, file: BinaryIO) -> dict[str, npt.NDArray[np.generic]]:
    """Return what is sent: names, and arrays of numbers by rows and columns. A ValueError if one is anything else."""
    if (size := os.fstat(file.fileno()).st_size) > _MOST_BYTES:
        raise ValueError(f"it has {size / 2**30:.0f} GiB; split it into several files")
    found = {}
    for name, array in _arrays(suffix, file):
        if array.dtype.kind in "biufU" and array.ndim in (1, 2) and array.shape[1:] != (0,):
            found[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
        elif suffix != ".mat":  # others may lie there
            raise ValueError(f"expected numbers in rows and columns, found {array.dtype.name} of {list(array.shape)}")
    if not found:
        raise ValueError("it holds no array of numbers")
    return {"names": np.array([*found]), **{str(number): array for number, array in enumerate(found.values())}}


def _seal(sizes: Sequence[int]) -> None:
    """Close this process off from files, sockets and other processes, as far as the kernel can."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    seconds = round(sum(_SECONDS[0] + min(size, _MOST_BYTES) / 2**20 * _SECONDS[1] for size in sizes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        kernel.drop_capabilities()
        if kernel.landlock_version():  # libraries import more of themselves later
            kernel.restrict((path, kernel.READ) for path in sys.path)
    with contextlib.suppress(OSError):  # a wall of its own: it stands where the other one is refused
        filter_calls()


def _main(output: str, *inputs: str) -> None:
    files = [(int(number), f".{suffix}") for number, _, suffix in (one.partition(".") for one in inputs)]
    for _, suffix in files:
        importlib.import_module(_LIBRARIES.get(suffix, "numpy"))
    _seal([os.fstat(number).st_size for number, _ in files])
    warnings.simplefilter("ignore")
    sent = Connection(int(output), readable=False)
    for number, suffix in files:
        content = io.BytesIO()
        try:
            with open(number, "rb") as file:
                np.savez(content, allow_pickle=False, **_checked(suffix, file))
        except Exception as error:  # a damaged file ends in nearly every exception that there is
            content = io.BytesIO()
            np.savez(content, allow_pickle=False, **{_FAULT: np.array(f"{type(error).__name__}: {error}"[:2000])})
        sent.send_bytes(content.getbuffer())


if __name__ == "__main__":
    _main(*sys.argv[1:])
