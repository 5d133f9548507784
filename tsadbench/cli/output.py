"""How commands print tables on standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from tsadbench.leaderboard.formatting import fitting, folded

if TYPE_CHECKING:
    from tsadbench.execution.record import Record

# A cell that is longer is a text, which may be folded.
_TEXT_WIDTH = 40

ResultFormat: TypeAlias = Literal["table", "json", "csv", "markdown", "latex"]
BoardFormat: TypeAlias = Literal["table", "json", "csv", "markdown", "latex", "html"]


def in_words(record: Record | None) -> str:
    """Return which trial a record is of, to be put behind its name; empty if there is none."""
    if record is None:
        return ""
    return f" ({record.label}, seed {record.seed}, {record.dataset}, {record.protocol})"


def wide_console() -> Console:
    """Return a console on standard output, wide if that is a pipe or a file: its readers want every column."""
    return Console() if sys.stdout.isatty() else Console(width=240)


def table_width() -> int | None:
    """Return the width of the terminal; None for a pipe or a file."""
    return Console().width if sys.stdout.isatty() else None


def print_table(
    console: Console, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], n_names: int = 1
) -> None:
    """Print a table of plain text: brackets in it are no markup.

    No number is cut: a table that is too wide becomes several, each with the first ``n_names`` columns, whose cells
    name a row. Headers, long names and texts are folded.
    """
    names = range(n_names)
    others = range(n_names, len(header))
    natural = [max(map(cell_len, (name, *(row[i] for row in rows)))) for i, name in enumerate(header)]
    if _total(natural) <= console.width:
        console.print(_table(title, header, rows, {}))
        return
    most = console.width // (n_names + 1)
    folded_rows = [[*(folded(name, most) for name in row[:n_names]), *row[n_names:]] for row in rows]
    widths = [_narrowest(name, [row[i] for row in folded_rows]) for i, name in enumerate(header)]

    def fits(columns: Sequence[int]) -> bool:
        return _total([widths[i] for i in (*names, *columns)]) <= console.width

    for columns in fitting(others, fits):
        chosen = (*names, *columns)
        part = [[row[i] for i in chosen] for row in folded_rows]
        console.print(_table(title, [header[i] for i in chosen], part, {j: widths[i] for j, i in enumerate(chosen)}))


def _total(widths: Sequence[int]) -> int:
    """Return the width of a table: three characters between two columns, one at either end."""
    return sum(width + 3 for width in widths) - 1


def _narrowest(header: str, cells: Sequence[str]) -> int:
    """Return the width of a column whose header is broken between words, and whose cells only if they are long."""
    lines = (line for cell in cells for line in cell.split("\n"))
    return max(*map(cell_len, header.split()), min(_TEXT_WIDTH, max(map(cell_len, lines), default=0)), 1)


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], widths: Mapping[int, int]) -> Table:
    table = Table(
        *(Column(Text(name), width=widths.get(i), overflow="fold") for i, name in enumerate(header)),
        title=Text(title),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    for row in rows:
        table.add_row(*map(Text, row))
    return table
