"""Renders the tables of an analysis: data frames with sentences, as terminal text, Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import pandas as pd
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tsadbench.leaderboard.formatting import csv_text, fitting, number, plain, plain_table
from tsadbench.leaderboard.latex import PREAMBLE, escape, tabular
from tsadbench.utils.text import printable

Form: TypeAlias = Literal["table", "markdown", "latex", "csv", "json"]
SCHEMA = 2
# Longer texts are folded on narrow terminals.
_FOLDED = 24


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A data frame as readers see it.

    Parameters
    ----------
    title
        Its heading.
    frame
        A row a line, values instead of texts; the columns' names are the header. The index is not shown.
    decimals
        Of columns with other than four decimals, by name; None for four significant digits, in a unit of the data's.
        Whole numbers have none.
    """

    title: str
    frame: pd.DataFrame
    decimals: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def header(self) -> list[str]:
        """The columns' names."""
        return [str(name) for name in self.frame.columns]

    def cells(self) -> list[list[str]]:
        """Return the rows as texts, a dash for an undefined value."""
        columns = [
            [cell(value, self.decimals.get(name, 4)) for value in self.frame.iloc[:, place]]
            for place, name in enumerate(self.header)
        ]
        return [list(row) for row in zip(*columns, strict=True)]


def cell(value: object, decimals: int | None = 4) -> str:
    """Return one value as tables show it.

    >>> cell(0.5), cell(12000), cell(None), cell(True), cell("t2"), cell(float("nan"))
    ('.5000', '12,000', '-', 'yes', 't2', '-')
    """
    if isinstance(value, str):
        return printable(value)
    if value is None or pd.isna(value):  # type: ignore[call-overload]  # any object may be asked
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if decimals is None else number(float(value), decimals)
    return f"{value:,}"


def render(
    tables: Sequence[Table], notes: Sequence[str] = (), form: Form = "table", *, width: int | None = None
) -> str:
    """Return tables, and the sentences about them below, in a form.

    CSV has full precision and no sentences. JSON is one object, ``{"schema": 2, "tables": [{"title", "rows"}],
    "notes"}``, null where undefined. ``width`` is the terminal's, by default as wide as the tables need.
    """
    if form == "csv":
        return "\n".join(csv_text(table.frame) for table in tables)
    if form == "json":
        content = [
            {"title": table.title, "rows": [*map(_plain_row, table.frame.to_dict("records"))]} for table in tables
        ]
        return json.dumps({"schema": SCHEMA, "tables": content, "notes": [*notes]}, indent=1, allow_nan=False) + "\n"
    if form == "latex":
        return "\n\n".join([PREAMBLE, *map(_latex, tables), *(escape(note) for note in notes)]) + "\n"
    if form == "markdown":
        parts = [
            f"### {plain(table.title)}\n\n" + "\n".join(plain_table(table.header, table.cells())) for table in tables
        ]
        return "\n\n".join([*parts, "\n".join(f"- {plain(note)}" for note in notes)]).rstrip() + "\n"
    file = io.StringIO()
    console = Console(file=file, width=width or 10_000, color_system=None, force_terminal=False, force_jupyter=False)
    for table in tables:
        for part in _fitting(table, console.width):
            console.print(rich_table(part))
    for note in notes:
        console.print(Text(printable(note)))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def rich_table(table: Table) -> RichTable:
    """Return a table for a terminal: numbers to the right; texts and headers are folded where it is narrow."""
    shown = RichTable(
        title=Text(printable(table.title), style="table.title"),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    for name, width, numeric in zip(table.header, _narrowest(table), _numeric(table), strict=True):
        shown.add_column(Text(name), justify="right" if numeric else "left", min_width=width, overflow="fold")
    for row in table.cells():
        shown.add_row(*map(Text, row))
    return shown


def _numeric(table: Table) -> list[bool]:
    return [pd.api.types.is_numeric_dtype(dtype) for dtype in table.frame.dtypes]


def _narrowest(table: Table) -> list[int]:
    """Return how narrow each column can be: texts and headers may be folded, numbers not."""
    limits = [1000 if one else _FOLDED for one in _numeric(table)]
    columns = [*zip(*table.cells(), strict=True)] or [()] * len(table.header)
    return [
        max([1, *map(cell_len, name.split()), *(min(cell_len(one), most) for one in cells)])
        for name, cells, most in zip(table.header, columns, limits, strict=True)
    ]


def _fitting(table: Table, width: int) -> Iterator[Table]:
    """Yield a table in parts that fit a terminal, each with the columns up to the first texts, which name its rows."""
    narrowest, numeric = _narrowest(table), [*_numeric(table), True]
    first = numeric.index(False) if False in numeric else 0
    names = range(numeric.index(True, first))
    for chosen in fitting(
        range(len(names), len(narrowest)), lambda some: sum(narrowest[i] + 3 for i in (*names, *some)) - 1 <= width
    ):
        yield replace(table, frame=table.frame.iloc[:, [*names, *chosen]])


def _latex(table: Table) -> str:
    lines = [" & ".join(map(_latex_cell, row)) + r" \\" for row in table.cells()]
    layout = "".join("r" if one else "l" for one in _numeric(table))
    caption = [r"\begin{table}", r"\centering", rf"\caption{{{escape(table.title)}}}"]
    return "\n".join([*caption, *tabular(layout, table.header, [lines]), r"\end{table}"])


def _latex_cell(text: str) -> str:
    if text == "-":
        return "--"
    return f"${text}$" if text[:1] == "-" and text[1:2] in "0123456789." else escape(text)


def _plain_row(row: Mapping[Hashable, object]) -> dict[str, object]:
    """Return a row for JSON: Python's own numbers, None where undefined."""
    values = {str(name): getattr(value, "item", lambda value=value: value)() for name, value in row.items()}
    undefined = {
        name for name, one in values.items() if one is pd.NA or (isinstance(one, float) and not math.isfinite(one))
    }
    return {name: None if name in undefined else one for name, one in values.items()}
