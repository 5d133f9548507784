"""How commands print tables on standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    from tsadbench.execution.record import Record

BoardFormat: TypeAlias = Literal["table", "json", "csv", "markdown", "latex", "html"]


def in_words(record: Record | None) -> str:
    """Return which trial a record is of, to be put behind its name; empty if there is none."""
    if record is None:
        return ""
    return f" ({record.label}, seed {record.seed}, {record.dataset}, {record.protocol})"


def wide_console() -> Console:
    """Return a console on standard output, wide if that is a pipe or a file: its readers want every column."""
    return Console() if sys.stdout.isatty() else Console(width=240)


def print_table(console: Console, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of plain text: brackets in it are no markup."""
    table = Table(
        *(Column(Text(name)) for name in header),
        title=Text(title),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
