"""Renders the tables of an analysis: data frames with sentences, as terminal text, Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tsadbench.leaderboard.formatting import csv_text, number, plain, plain_table
from tsadbench.leaderboard.latex import PREAMBLE, escape, tabular
from tsadbench.utils.text import printable

Form: TypeAlias = Literal["table", "markdown", "latex", "csv", "json"]
SCHEMA = 2


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
        console.print(rich_table(table))
    for note in notes:
        console.print(Text(printable(note)))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def rich_table(table: Table) -> RichTable:
    """Return a table for a terminal: numbers to the right; texts are folded where it is narrow, numbers never."""
    shown = RichTable(
        title=Text(printable(table.title), style="table.title"),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    for place, name in enumerate(table.header):
        numeric = pd.api.types.is_numeric_dtype(table.frame.dtypes.iloc[place])
        shown.add_column(
            Text(name),
            justify="right" if numeric else "left",
            no_wrap=numeric,
            overflow="ellipsis" if numeric else "fold",
        )
    for row in table.cells():
        shown.add_row(*map(Text, row))
    return shown


def _latex(table: Table) -> str:
    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in table.frame.dtypes]
    lines = [" & ".join(map(_latex_cell, row)) + r" \\" for row in table.cells()]
    layout = "".join("r" if one else "l" for one in numeric)
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
