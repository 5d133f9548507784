"""Leaderboards as plain text: the tables, what their marks mean, notes and failures."""

from __future__ import annotations

import io
import shutil
from collections.abc import Collection, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from tsadbench.leaderboard.cells import failure_lines, legend
from tsadbench.leaderboard.notes import Note
from tsadbench.leaderboard.ranking import Row
from tsadbench.leaderboard.terminal import terminal

# How many detectors, and how many failures, each table shows.
ROWS = 50
# Characters, where nothing says how many a line has.
_WIDTH = 120


def on_screen(
    rows: Sequence[Row],
    notes: Sequence[Note],
    width: int,
    most: int | None = ROWS,
    floors: Collection[str] | None = (),
    columns: Sequence[str] = (),
) -> Iterator[RenderableType]:
    """Yield what a terminal shows of a leaderboard; parameters as `terminal`'s."""
    yield from terminal(rows, width, most, floors, columns)
    yield Text(legend(rows), style="dim")
    failures = failure_lines(rows)
    for line in (*notes, *failures[:most]):
        yield Text(str(line))
    if most is not None and len(failures) > most:
        yield Text(f"{len(failures) - most:,} more detectors failed: --rows 0 lists them")


def text_of(
    rows: Sequence[Row],
    notes: Sequence[Note] = (),
    columns: Sequence[str] = (),
    *,
    width: int | None = None,
    floors: Collection[str] | None = (),
) -> str:
    """Return a leaderboard as plain text."""
    if not rows:
        return "no rows"
    n_columns = shutil.get_terminal_size((_WIDTH, 0)).columns if width is None else width
    file = io.StringIO()
    console = Console(file=file, width=n_columns, color_system=None, force_terminal=False, force_jupyter=False)
    for part in on_screen(rows, notes, n_columns, floors=floors, columns=columns):
        console.print(part)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
