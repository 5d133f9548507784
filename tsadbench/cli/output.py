"""How leaderboards reach standard output, whatever the format."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsadbench.leaderboard import Leaderboard


class Format(StrEnum):
    """The formats of a leaderboard on standard output."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


def show(leaderboard: Leaderboard, form: Format) -> None:
    """Print a leaderboard on standard output."""
    if form is Format.table:
        _show_table(leaderboard)
    elif form is Format.json:
        sys.stdout.write(leaderboard.to_json())
    elif form is Format.csv:
        sys.stdout.write(leaderboard.to_csv())
    else:
        sys.stdout.write(leaderboard.to_markdown())


def _show_table(leaderboard: Leaderboard) -> None:
    from rich.console import Console
    from rich.text import Text

    from tsadbench.render import failure_lines, legend, terminal

    # A pipe or a file has no width: whoever reads it wants every column.
    console = Console() if sys.stdout.isatty() else Console(width=240)
    for table in terminal(leaderboard, console.width):
        console.print(table)
    console.print(Text(legend(leaderboard), style="dim"))
    for line in (*leaderboard.notes, *failure_lines(leaderboard)):
        console.print(Text(line))
