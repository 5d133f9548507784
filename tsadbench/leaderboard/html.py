"""Leaderboards as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tsadbench.leaderboard.cells import Cell, failure_lines, grids, legend
from tsadbench.leaderboard.notes import Note
from tsadbench.leaderboard.ranking import Row


def html(rows: Sequence[Row], notes: Sequence[Note], columns: Sequence[str] = ()) -> str:
    """Return one HTML table per data set, protocol and split, with the legend and the notes below."""
    parts = []
    for grid in grids(rows, columns=columns):
        head = "".join(f"<th>{escape(name)}</th>" for name in grid.header)
        lines = ("".join(f"<td>{_cell(cell)}</td>" for cell in row) for block in grid.blocks for row in block)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        caption = f"<caption>{escape(grid.title)}</caption>"
        parts.append(f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    parts += [f"<p>{escape(str(text))}</p>" for text in (legend(rows), *notes, *failure_lines(rows))]
    return "".join(parts)


def _cell(cell: Cell) -> str:
    text = escape(cell.marked)
    return {1: f"<b>{text}</b>", 2: f"<u>{text}</u>"}.get(cell.rank, text)
