"""Leaderboards as LaTeX tables for papers: booktabs' rules, mean(std), best bold, second underlined."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tsadbench.leaderboard.cells import Cell, Grid, failure_lines, grids, legend
from tsadbench.leaderboard.notes import Note
from tsadbench.leaderboard.ranking import Row, by_table
from tsadbench.utils.text import printable

# One pass over the text, so that no replacement is replaced again. The marks are those of `cells` and `marks`.
_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "↓": r"$\downarrow$",
        "⇊": r"$\Downarrow$",
        "⚠": r"$\ddagger$",
        "△": r"$\triangle$",
        "∞": r"$\infty$",
        "≠": r"$\neq$",
        "◇": r"$\diamond$",
        "°": r"$^{\circ}$",
        "±": r"$\pm$",
    }
)
_LEADS = r"$^{\dagger}$"
# The caption has it.
_LEFT_OUT = "Anomalous"


def latex(rows: Sequence[Row], notes: Sequence[Note]) -> str:
    """Return ranked rows as LaTeX: a ``table*`` environment per data set, protocol and split; it needs booktabs."""
    tables = [
        _table(table, [note for note in notes if note.concerns(table[0].dataset, table[0].protocol)])
        for table in by_table(rows).values()
    ]
    return "\n".join([r"% In the preamble: \usepackage{booktabs}", *tables])


def escape(text: str) -> str:
    """Return text as LaTeX sets it literally; a line break becomes a space."""
    return printable(text.replace("\n", " ")).translate(_ESCAPES)


def _table(rows: Sequence[Row], notes: Sequence[Note]) -> str:
    (full,) = grids(rows)
    grid = full.columns([i for i, name in enumerate(full.header) if name != _LEFT_OUT])
    blocks = [
        [_line(cells) for cells in grid.detectors],
        [_line(cells) for cells in grid.floors],
        [_failed(cells[0], cells[full.n_metrics - 1], len(grid.header)) for cells in full.failures],
    ]
    first = rows[0]
    texts = [legend(rows), *map(str, notes), *failure_lines(rows)]
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering",
            rf"\caption{{{_caption(grid, rows)}}}",
            rf"\label{{tab:{_slug(first.dataset)}-{_slug(first.rules)}-{_slug(first.split)}}}",
            r"\scriptsize",
            r"\setlength{\tabcolsep}{3pt}",
            rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}",
            r"\toprule",
            " & ".join(map(escape, grid.header)) + r" \\",
            *(line for block in blocks if block for line in (r"\midrule", *block)),
            r"\bottomrule",
            r"\end{tabular}",
            "",
            r"\smallskip",
            r"\begin{minipage}{\textwidth}",
            r"\scriptsize",
            r"\raggedright",
            _about_floors(grid) + r"\par ".join(escape(text) for text in texts),
            r"\end{minipage}",
            r"\end{table*}",
            "",
        ]
    )


def _line(cells: Sequence[Cell]) -> str:
    """Return a row; its first cell begins with a command, since LaTeX takes a bracket after a row's end for its own."""
    name, *others = cells
    return " & ".join([rf"\texttt{{{escape(name.text)}}}", *map(_cell, others)]) + r" \\"


def _failed(name: Cell, count: Cell, n_columns: int) -> str:
    """Return the row of a detector without numbers: what happened, over all columns."""
    what = rf"\multicolumn{{{n_columns - 1}}}{{l}}{{{escape(count.text)}}}"
    return rf"\texttt{{{escape(name.text)}}} & {what} \\"


def _cell(cell: Cell) -> str:
    text = "--" if cell.text == "-" else re.sub(r"^-", r"$-$", escape(cell.text))
    style = {1: r"\textbf", 2: r"\underline"}.get(cell.rank)
    marks = ("↓".translate(_ESCAPES) if cell.below else "") + (_LEADS if cell.leads else "")
    return (text if style is None else f"{style}{{{text}}}") + marks


def _caption(grid: Grid, rows: Sequence[Row]) -> str:
    seeds = sorted({seed for row in rows for seed in row.seeds})
    run = len(seeds) > 1 and seeds == list(range(seeds[0], seeds[-1] + 1))
    named = f"{seeds[0]}--{seeds[-1]}" if run else ", ".join(map(str, seeds))
    over = f"seeds {named}; where no spread stands, one seed" if len(seeds) > 1 else f"seed {named}"
    return f"{escape(grid.title)}. Mean(standard deviation) over {over}."


def _about_floors(grid: Grid) -> str:
    if not grid.floors:
        return ""
    leads = any(cell.leads for row in grid.floors for cell in row)
    return ("Below the second rule: the floors, out of the ranking. " if grid.detectors else "The floors. ") + (
        f"{_LEADS} a floor that no detector beats. " if leads else ""
    )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
