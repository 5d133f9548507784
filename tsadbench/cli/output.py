"""How commands print tables on standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.console import Console

if TYPE_CHECKING:
    from tsadbench.execution.record import Record

ResultFormat: TypeAlias = Literal["table", "json", "csv", "markdown", "latex"]
BoardFormat: TypeAlias = ResultFormat


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
