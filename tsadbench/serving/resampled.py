"""Files whose rows a model takes from a regular grid: long tables, and rows that were resampled to fit it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.files import File
from tsadbench.datasets.cards.gaps import fill_gaps
from tsadbench.datasets.cards.opening import open_tables
from tsadbench.datasets.cards.rows import RowReader
from tsadbench.datasets.cards.sections import Columns
from tsadbench.datasets.reading.header import header_faults
from tsadbench.datasets.reading.long import open_long
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.errors import DataError
from tsadbench.serving.rows import Rows
from tsadbench.utils.issues import Issue, raise_if_any


def read_resampled(path: Path, file_format: FileFormat, sensors: Sequence[str]) -> Rows:
    """Return the rows of a file on the grid that its format names.

    A DataError if the file is malformed; the message lists everything that is wrong, with its line.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; correct the name")
    columns = dict.fromkeys(file_format.time, "time column") | dict.fromkeys(sensors, "sensor")
    named = {*file_format.time, *(file_format.long or sensors)}
    tables, issues = open_tables(File(path, path.name, path.stem), file_format, lambda names: named <= set(names))
    raise_if_any(str(path), issues)
    try:
        table = next(iter(tables.values()))
        if file_format.long is not None:
            table = open_long(table, *file_format.long, file_format.time)
        faults = header_faults(table.header, columns)
        raise_if_any(str(path), [Issue(path.name, fault, getattr(table, "header_line", None)) for fault in faults])
        contents = RowReader([path.name], [table], file_format, Columns()).contents(sensors)
    except MalformedError as error:
        raise DataError(f"{path}{'' if error.line is None else f', line {error.line}'}: {error.text}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({' '.join(str(error).split())[:200]})") from error
    _, gaps = fill_gaps(contents, sensors, file_format, cut=False)
    raise_if_any(str(path), [*contents.issues, *gaps])
    return Rows(contents.values, contents.time)
