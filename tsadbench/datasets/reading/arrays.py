"""Files of arrays, by their endings: MATLAB, R and pickles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.array_table import MOST_BYTES
from tsadbench.datasets.reading.matlab import read_matlab
from tsadbench.datasets.reading.pickled import read_pickle
from tsadbench.datasets.reading.r_data import read_r
from tsadbench.datasets.reading.table import Table
from tsadbench.utils.files import read_bytes

_READERS: Mapping[str, Callable[[bytes, str], Mapping[str, Table]]] = {
    ".mat": read_matlab,
    ".rda": read_r,
    ".rdata": read_r,
    ".pkl": read_pickle,
    ".pickle": read_pickle,
}
ARRAYS = tuple(_READERS)


def open_arrays(path: Path, file_format: FileFormat) -> Mapping[str, Table]:
    """Return the tables of a file of arrays, by the arrays' names; an array without a name is called "".

    A MissingExtraError if the package that reads R's files is not installed. A MalformedError if it is not what its
    ending says, is damaged or asks for more than arrays; for a single array that is no table of numbers, when the
    mapping is asked for it. An OSError if it cannot be read, or is too large.
    """
    return _READERS[path.suffix.lower()](read_bytes(path, MOST_BYTES), file_format.remove_prefix)
