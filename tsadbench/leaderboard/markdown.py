"""Leaderboards as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tsadbench.leaderboard.cells import Cell, failure_lines, grids, legend
from tsadbench.leaderboard.formatting import plain, table_lines
from tsadbench.leaderboard.notes import Note
from tsadbench.leaderboard.ranking import Row


def markdown(rows: Sequence[Row], notes: Sequence[Note], columns: Sequence[str] = ()) -> str:
    """Return one Markdown table per data set, protocol and split, with the legend and the notes below."""
    parts = []
    for grid in grids(rows, columns=columns):
        cells = [[_cell(cell) for cell in row] for block in grid.blocks for row in block]
        parts += [f"### {plain(grid.title)}", "", *table_lines(list(map(plain, grid.header)), cells), ""]
    parts += [legend(rows), *(f"\n- {plain(str(note))}" for note in (*notes, *failure_lines(rows)))]
    return "\n".join(parts) + "\n"


def _cell(cell: Cell) -> str:
    text = plain(cell.marked)
    return {1: f"**{text}**", 2: f"<u>{text}</u>"}.get(cell.rank, text)
