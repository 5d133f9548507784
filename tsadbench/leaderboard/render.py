"""Renders tables: data frames with sentences, as terminal text, Markdown, LaTeX, HTML, CSV or JSON."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape as html_escape
from typing import Literal, TypeAlias

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tsadbench.leaderboard.formatting import csv_text, fitting, number, plain, table_lines
from tsadbench.leaderboard.latex import PREAMBLE, escape, tabular
from tsadbench.utils.text import printable

Form: TypeAlias = Literal["table", "markdown", "latex", "html", "csv", "json"]
SCHEMA = 2
# Longer names and remarks are folded before a terminal leaves columns out.
_TEXT_WIDTH = 24


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
    lead
        A sentence above the table.
    numeric
        Columns of texts that are numbers.
    cell_styles, row_styles
        "bold" or "underline" by the place of a row and the name of a column; a terminal's style for each row.
    expendable
        Columns that a narrow terminal leaves out, the first one first.
    """

    title: str
    frame: pd.DataFrame
    decimals: Mapping[str, int | None] = field(default_factory=dict)
    lead: str = ""
    numeric: Collection[str] = ()
    cell_styles: Mapping[tuple[int, str], str] = field(default_factory=dict)
    row_styles: Sequence[str] = ()
    expendable: Sequence[str] = ()

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

    def only(self, places: Sequence[int]) -> Table:
        """Return the table with the rows at some places."""
        at = {place: new for new, place in enumerate(places)}
        return replace(
            self,
            frame=self.frame.iloc[list(places)].reset_index(drop=True),
            cell_styles={(at[row], name): one for (row, name), one in self.cell_styles.items() if row in at},
            row_styles=[self.row_styles[place] for place in places] if self.row_styles else (),
        )

    def styled(self, text: Mapping[str, str], plain: Callable[[str], str]) -> list[list[str]]:
        """Return the cells in a markup language: ``text`` has what bold and underlined texts look like in it."""
        return [
            [
                text.get(self.cell_styles.get((place, name), ""), "{}").format(plain(one.strip()))
                for name, one in zip(self.header, row, strict=True)
            ]
            for place, row in enumerate(self.cells())
        ]

    def is_numeric(self, name: str) -> bool:
        """Return whether a column has numbers, which stand to the right and are never broken."""
        return name in self.numeric or pd.api.types.is_numeric_dtype(self.frame[name].dtype)


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
    if form == "html":
        return "".join([*map(_html, tables), *(f"<p>{html_escape(note)}</p>" for note in notes)])
    if form == "latex":
        return "\n\n".join([PREAMBLE, *map(_latex, tables), *(escape(note) for note in notes)]) + "\n"
    if form == "markdown":
        parts = [*map(_markdown, tables), "\n".join(f"- {plain(note)}" for note in notes)]
        return "\n\n".join(parts).rstrip() + "\n"
    file = io.StringIO()
    console = Console(file=file, width=width or 10_000, color_system=None, force_terminal=False, force_jupyter=False)
    print_tables(console, tables, notes)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def print_tables(console: Console, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
    """Print tables and the sentences about them; columns that do not fit are left out, or stand in further tables."""
    for table in tables:
        console.print(Text(printable(table.title), style="bold"))
        if table.lead:
            console.print(Text(printable(table.lead)))
        for part in _fitting(table, console.width):
            console.print(rich_table(replace(part, title="")))
    for note in notes:
        console.print(Text(printable(note), style="dim"))


def _fits(table: Table, width: int) -> bool:
    return Console(width=10_000).measure(rich_table(table, _TEXT_WIDTH)).maximum <= width


def _fitting(table: Table, width: int) -> Iterator[Table]:
    """Yield a table without its expendable columns, or in parts that each begin with the texts that name its rows."""
    for name in table.expendable:
        if _fits(table, width):
            break
        table = replace(table, frame=table.frame.drop(columns=name))
    is_number = [*map(table.is_numeric, table.header), True]
    names = range(is_number.index(True, 0 if all(is_number) else is_number.index(False)))

    def part(columns: Sequence[int]) -> Table:
        return replace(table, frame=table.frame.iloc[:, [*names, *columns]])

    for columns in fitting(range(len(names), len(table.header)), lambda some: _fits(part(some), width)):
        yield part(columns)


def rich_table(table: Table, text_width: int | None = None) -> RichTable:
    """Return a table for a terminal: numbers to the right; texts are folded where it is narrow, numbers never."""
    shown = RichTable(
        title=Text(printable(table.title), style="table.title") if table.title else None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    for name in table.header:
        numeric = table.is_numeric(name)
        shown.add_column(
            Text(name),
            justify="right" if numeric else "left",
            no_wrap=numeric,
            max_width=None if numeric else text_width,
            overflow="ellipsis" if numeric else "fold",
        )
    for place, row in enumerate(table.cells()):
        texts = [
            Text(one, table.cell_styles.get((place, name), "")) for name, one in zip(table.header, row, strict=True)
        ]
        shown.add_row(*texts, style=table.row_styles[place] if table.row_styles else None)
    return shown


def _html(table: Table) -> str:
    rows = table.styled({"bold": "<b>{}</b>", "underline": "<u>{}</u>"}, html_escape)
    head = "".join(f"<th>{html_escape(name)}</th>" for name in table.header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    lead = f"<p>{html_escape(table.lead)}</p>" if table.lead else ""
    caption = f"<caption>{html_escape(printable(table.title))}</caption>"
    return f"{lead}<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _markdown(table: Table) -> str:
    rows = table.styled({"bold": "**{}**", "underline": "<u>{}</u>"}, plain)
    lead = [plain(table.lead), ""] if table.lead else []
    lines = table_lines([*map(plain, table.header)], rows)
    return "\n".join([f"### {plain(table.title)}", "", *lead, *lines])


def _latex(table: Table) -> str:
    rows = table.styled({"bold": r"\textbf{{{}}}", "underline": r"\underline{{{}}}"}, _latex_cell)
    layout = "".join("r" if table.is_numeric(name) else "l" for name in table.header)
    slug = re.sub(r"[^a-z0-9]+", "-", table.title.partition(":")[0].lower()).strip("-")
    caption = [r"\begin{table*}", r"\centering", rf"\caption{{{escape(table.title)}}}", rf"\label{{tab:{slug}}}"]
    small = [r"\scriptsize", r"\setlength{\tabcolsep}{3pt}"]
    lines = [" & ".join(row) + r" \\" for row in rows]
    return "\n".join([*caption, *small, *tabular(layout, table.header, [lines]), r"\end{table*}"])


def _latex_cell(text: str) -> str:
    return "--" if text == "-" else re.sub(r"(?<![0-9A-Za-z])-(?=[.0-9])", r"$-$", escape(text))


def _plain_row(row: Mapping[Hashable, object]) -> dict[str, object]:
    """Return a row for JSON: Python's own numbers, None where undefined."""
    values = {str(name): getattr(value, "item", lambda value=value: value)() for name, value in row.items()}
    undefined = {
        name for name, one in values.items() if one is pd.NA or (isinstance(one, float) and not math.isfinite(one))
    }
    return {name: None if name in undefined else one for name, one in values.items()}
