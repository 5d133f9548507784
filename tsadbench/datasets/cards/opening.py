"""Open a card's files as tables, and report those that cannot be opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.files import File
from tsadbench.datasets.cards.sections import NUMBER, Columns
from tsadbench.datasets.reading.arrays import open_arrays
from tsadbench.datasets.reading.csv import encoding_issue, open_csv
from tsadbench.datasets.reading.header import find_header, lines_needed, no_header
from tsadbench.datasets.reading.parquet import open_parquet
from tsadbench.datasets.reading.table import NamedTable, Table
from tsadbench.datasets.reading.text import MalformedError, first_lines
from tsadbench.utils.issues import Issue


def open_tables(
    file: File,
    file_format: FileFormat,
    has_all: Callable[[Sequence[str]], bool],
    *,
    is_label: Callable[[str], bool] | None = None,
) -> tuple[Mapping[str, Table], list[Issue]]:
    """Open a file.

    Parameters
    ----------
    file, file_format
        The file, and how it is written.
    has_all
        Whether names are all that are needed, if a CSV file's header is searched for.
    is_label
        For a CSV file with a column of labels alone, which may have no header: whether a text is a label.

    Returns
    -------
    tuple
        Its tables by the names of its arrays, "" for a file that is one table; what is wrong with it; no table then.
    """
    issues: list[Issue] = []
    try:
        if file.is_array:
            return open_arrays(file.path, file_format), issues
        if file.is_parquet:
            return {"": open_parquet(file.path, file_format)}, issues
        lines = first_lines(file.path, file_format.encoding, lines_needed(file_format))
        header = find_header(lines, file_format, has_all, one_column=is_label is not None)
        if header is None:
            raise MalformedError(no_header(file_format, lines))
        if is_label is not None and all(map(is_label, header[1])):
            header = 0, [""]
        table, issues = open_csv(file.path, file.name, file_format, *header)
        return ({} if table is None else {"": table}), issues
    except MalformedError as error:
        return {}, [Issue(file.name, error.text, error.line)]
    except UnicodeDecodeError:
        return {}, [encoding_issue(file.path, file.name, file_format.encoding)]
    except OSError as error:
        return {}, [Issue(file.name, f"cannot be read ({error.strerror or error}); check its permissions")]


def named(table: Table, columns: Columns) -> Table:
    """Return a table with names for its columns: its own, or else those of the card.

    A MalformedError if its columns have no names, and the card has none, or another number of them.
    """
    n_columns = len(table.header)
    if any(table.header) or n_columns == 0:
        return table
    if columns.names is None:
        raise MalformedError(f"its {n_columns} columns have no names; give columns.names")
    if isinstance(columns.names, str):
        return NamedTable(table, tuple(columns.names.replace(NUMBER, str(i + 1)) for i in range(n_columns)))
    more = n_columns - len(columns.names)
    if more < 0 or (more > 0 and columns.extra_columns == "error"):
        advice = ', or set columns.extra_columns = "ignore"' if more > 0 else ""
        raise MalformedError(
            f"expected {len(columns.names)} columns, as many as columns.names has, found {n_columns}; "
            f"correct the names{advice}"
        )
    return NamedTable(table, (*columns.names, *[""] * more))
