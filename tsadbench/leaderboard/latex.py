"""Leaderboards as LaTeX tables for papers: booktabs' rules, mean(std), best bold, second underlined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
        "✗": r"$\times$",
        "±": r"$\pm$",
    }
)
PREAMBLE = r"% In the preamble: \usepackage{booktabs}"
_LEADS = r"$^{\dagger}$"
# The caption has it.
_LEFT_OUT = "Anomalous"


def latex(rows: Sequence[Row], notes: Sequence[Note], columns: Sequence[str] = ()) -> str:
    """Return ranked rows as LaTeX: a ``table*`` environment per data set, protocol and split; it needs booktabs."""
    tables = [
        _table(grid, table, [note for note in notes if note.concerns(table[0].dataset, table[0].protocol)])
        for grid, table in zip(grids(rows, columns=columns), by_table(rows).values(), strict=True)
    ]
    return "\n".join([PREAMBLE, *tables])


def escape(text: str) -> str:
    """Return text as LaTeX sets it literally; a line break becomes a space."""
    return printable(text.replace("\n", " ")).translate(_ESCAPES)


def tabular(layout: str, header: Sequence[str], blocks: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a tabular environment: a header and blocks of rows in LaTeX, rules of booktabs between."""
    return [
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        " & ".join(map(escape, header)) + r" \\",
        *(line for block in blocks if block for line in (r"\midrule", *block)),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def floating(caption: str, label: Sequence[str], tabulars: Sequence[str], below: str) -> str:
    """Return a ``table*`` environment, as wide as a page of two columns."""
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{'-'.join(map(_slug, label))}}}",
            r"\scriptsize",
            r"\setlength{\tabcolsep}{3pt}",
            *tabulars,
            "",
            r"\smallskip",
            r"\begin{minipage}{\textwidth}",
            r"\scriptsize",
            r"\raggedright",
            below,
            r"\end{minipage}",
            r"\end{table*}",
            "",
        ]
    )


def small_print(texts: Iterable[str]) -> str:
    """Return texts as LaTeX sets them literally, each a paragraph."""
    return r"\par ".join(map(escape, texts))


def label_text(text: str) -> str:
    """Return a row's label in LaTeX."""
    return rf"\texttt{{{escape(text)}}}"


def numeral(text: str) -> str:
    """Return a cell's text in LaTeX: a dash for what is undefined, and the minus signs of numbers."""
    return "--" if text == "-" else re.sub(r"(?<![0-9A-Za-z])-(?=[.0-9])", r"$-$", escape(text))


def _table(full: Grid, rows: Sequence[Row], notes: Sequence[Note]) -> str:
    grid = full.columns([i for i, name in enumerate(full.header) if name != _LEFT_OUT])
    failures = zip(grid.failures, [row for row in rows if not row.ok], strict=True)
    blocks = [
        [_line(cells) for cells in grid.detectors],
        [_line(cells) for cells in grid.floors],
        [_failed(cells[0], row.failure_count, len(grid.header)) for cells, row in failures],
    ]
    first = rows[0]
    return floating(
        _caption(grid, rows),
        (first.dataset, first.rules, first.split),
        tabular("l" + "r" * (len(grid.header) - 1), grid.header, blocks),
        _about_floors(grid) + small_print([legend(rows), *map(str, notes), *failure_lines(rows)]),
    )


def _line(cells: Sequence[Cell]) -> str:
    name, *others = cells
    return " & ".join([label_text(name.text), *map(_cell, others)]) + r" \\"


def _failed(name: Cell, count: str, n_columns: int) -> str:
    """Return the row of a detector without numbers: what happened, over all columns."""
    what = rf"\multicolumn{{{n_columns - 1}}}{{l}}{{{escape(count)}}}"
    return rf"{label_text(name.text)} & {what} \\"


def _cell(cell: Cell) -> str:
    text = numeral(cell.text)
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
