"""How leaderboards reach standard output, whatever the format."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from tsadbench.leaderboard.board import Leaderboard


class Format(StrEnum):
    """The formats of a leaderboard on standard output."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"
    html = "html"


def show(leaderboard: Leaderboard, form: Format) -> None:
    """Print a leaderboard on standard output."""
    if form is Format.table:
        _show_table(leaderboard)
        return
    texts = {
        Format.json: leaderboard.to_json,
        Format.csv: leaderboard.to_csv,
        Format.markdown: leaderboard.to_markdown,
        Format.latex: leaderboard.to_latex,
        Format.html: leaderboard.to_html,
    }
    sys.stdout.write(texts[form]())


def wide_console() -> Console:
    """Return a console on standard output: a pipe or a file has no width, and whoever reads it wants every column."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=240)


def print_table(console: Console, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of plain text."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _show_table(leaderboard: Leaderboard) -> None:
    from rich.text import Text

    from tsadbench.leaderboard.cells import failure_lines, legend
    from tsadbench.leaderboard.terminal import terminal

    console = wide_console()
    for table in terminal(leaderboard.rows, console.width):
        console.print(table)
    console.print(Text(legend(leaderboard.rows), style="dim"))
    for line in (*leaderboard.notes, *failure_lines(leaderboard.rows)):
        console.print(Text(str(line)))
