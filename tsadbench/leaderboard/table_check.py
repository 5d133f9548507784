"""Holds an emitted table against the trials of a store, cell by cell and at the table's own precision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsadbench.errors import UsageError
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.table_reading import ReadTable, TableFormat, format_of, read_tables


@dataclass(frozen=True, slots=True)
class TableCheck:
    """The result of holding a file against a store.

    Parameters
    ----------
    faults
        What the file says otherwise than the store.
    remarks
        What could not be compared.
    n_tables, n_rows, n_cells
        What was compared.
    """

    faults: tuple[str, ...]
    remarks: tuple[str, ...]
    n_tables: int
    n_rows: int
    n_cells: int


def check_table(file: Path, board: Leaderboard) -> TableCheck:
    """Compare a file, as `Leaderboard` writes tables, with the tables of a store's trials.

    What stands below Markdown's and LaTeX's tables is not compared.

    Parameters
    ----------
    file
        CSV, JSON, Markdown or LaTeX.
    board
        The store's rows, of every split.

    Raises
    ------
    UsageError
        If the file cannot be read, or is no such table.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise UsageError(f"--table {file}: cannot be read ({reason})") from error
    form = format_of(file, text)
    try:
        tables = read_tables(text, form)
    except UsageError as error:
        raise UsageError(f"--table {file}: {error}") from error
    known = _expected(board, form, file)
    if form == "csv" and [one.title for one in tables] == [""]:
        known = {title: one for title, one in known.items() if not title} or known
    faults: list[str] = []
    remarks: list[str] = []
    n_rows = n_cells = 0
    for table in tables:
        title = table.title
        if title not in known:
            faults.append(f"table {title!r}: the store has none of this data set, protocol and split")
            continue
        expected = known[title]
        where = f"{title.partition(' (')[0]}: " if len(tables) > 1 else ""
        faults += [f"{where}{fault}" for fault in _row_faults(table, expected)]
        remarks += [f"{where}{remark}" for remark in _column_remarks(table, expected)]
        common = [name for name in table.rows if name in expected.rows]
        n_rows += len(common)
        n_cells += sum(len(table.rows[name].keys() & expected.rows[name].keys()) for name in common)
    if absent := [title.partition(" (")[0] for title in known if title and title not in {one.title for one in tables}]:
        remarks.append(f"the store has {len(absent)} tables more, which the file does not hold: {'; '.join(absent)}")
    if form in ("markdown", "latex"):
        remarks.append("the legend and the notes below the tables were not compared")
    return TableCheck(tuple(faults), tuple(dict.fromkeys(remarks)), len(tables), n_rows, n_cells)


def _expected(board: Leaderboard, form: TableFormat, file: Path) -> dict[str, ReadTable]:
    """Return the store's tables by title, as they would be read from a file of this format."""
    writers = {
        "csv": Leaderboard.to_csv,
        "json": Leaderboard.to_json,
        "markdown": Leaderboard.to_markdown,
        "latex": Leaderboard.to_latex,
    }
    known = {table.title: table for table in read_tables(writers[form](board), form)}
    if form != "csv":
        return known
    # A file of one table does not say which: `write` puts it at <data set>/<protocol>/<split>.csv.
    alone = board.alone()
    place = [*file.parts[-3:-1], file.stem]
    at_place = [
        one for one in alone.values() if [one.rows[0].dataset, one.rows[0].protocol, one.rows[0].split] == place
    ]
    for one in at_place or (alone.values() if len(alone) == 1 else ()):
        known[""] = read_tables(one.to_csv(), form)[0]
    return known


def _row_faults(table: ReadTable, expected: ReadTable) -> Iterator[str]:
    for name in [name for name in expected.rows if name not in table.rows]:
        yield f"row {name}: the store has it, the table does not"
    for name, row in table.rows.items():
        if name not in expected.rows:
            yield f"row {name}: the store has no such row"
            continue
        for column, found in row.items():
            right = expected.rows[name].get(column)
            if right is not None and right != found:
                yield f"row {name}, {column}: {found!r} in the table, {right!r} by the store"
    common = [name for name in table.rows if name in expected.rows]
    if common != [name for name in expected.rows if name in table.rows]:
        yield "the rows stand in another order than by the store"


def _column_remarks(table: ReadTable, expected: ReadTable) -> Iterator[str]:
    has, should = _columns(table), _columns(expected)
    if lacking := [column for column in should if column not in has]:
        yield f"the table lacks columns, which were not compared: {', '.join(lacking)}"
    if more := [column for column in has if column not in should]:
        yield f"the store gives no such columns, which were not compared: {', '.join(more)}"


def _columns(table: ReadTable) -> Sequence[str]:
    return list(dict.fromkeys(column for row in table.rows.values() for column in row))
