"""Renders tables: data frames with sentences, as terminal text, Markdown, LaTeX, HTML, CSV or JSON."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape as html_escape
from itertools import accumulate
from typing import Literal, TypeAlias

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tsadbench.leaderboard.formatting import csv_text, fitting, folded, number, plain, table_lines
from tsadbench.utils.text import printable

Form: TypeAlias = Literal["table", "markdown", "latex", "html", "csv", "json"]
SCHEMA = 2
# Of names and of other texts on a terminal: remarks are folded first, then columns left out, then names folded.
_WIDTHS = ((999, 999), (999, 24), (24, 24), (16, 16))
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
        ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", **{one: f"\\{one}" for one in "{}$&#%_"},
    }
)  # fmt: skip


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
        styles = {(at[row], name): one for (row, name), one in self.cell_styles.items() if row in at}
        of_rows = [self.row_styles[place] for place in places] if self.row_styles else ()
        frame = self.frame.iloc[list(places)].reset_index(drop=True)
        return replace(self, frame=frame, cell_styles=styles, row_styles=of_rows)

    def styled(self, bold: str, underline: str, plain: Callable[[str], str]) -> list[list[str]]:
        """Return the cells in a markup language: what bold and underlined texts look like in it, and any text."""
        forms = {"": "{}", "bold": bold, "underline": underline}
        return [
            [
                forms[self.cell_styles.get((place, name), "")].format(plain(one.strip()))
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
        first = r"% In the preamble: \usepackage{booktabs}"
        return "\n\n".join([first, *map(_latex, tables), *map(_latex_text, notes)]) + "\n"
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
        for part in _fitting(replace(table, title=""), console.width):
            console.print(part)
    for note in notes:
        console.print(Text(printable(note), style="dim"))


def _fitting(table: Table, width: int) -> Iterator[RichTable]:
    """Yield a table without its expendable columns, or in parts that each begin with the texts that name its rows."""

    def fits(shown: RichTable) -> bool:
        return Console(width=10_000).measure(shown).maximum <= width

    def without(table: Table, name: str) -> Table:
        return replace(table, frame=table.frame.drop(columns=name))

    # Built only until one fits: a table may have thousands of rows.
    narrower = [*accumulate(table.expendable, without, initial=table)]
    tried = [(table, _WIDTHS[0]), *((one, _WIDTHS[1]) for one in narrower), *((narrower[-1], w) for w in _WIDTHS[2:])]
    for one, widths in tried:
        if fits(shown := rich_table(one, *widths)):
            yield shown
            return
    table = narrower[-1]
    is_number = [*map(table.is_numeric, table.header), True]
    names = range(is_number.index(True, 0 if all(is_number) else is_number.index(False)))

    def part(columns: Sequence[int]) -> RichTable:
        return rich_table(replace(table, frame=table.frame.iloc[:, [*names, *columns]]), *_WIDTHS[-1])

    for columns in fitting(range(len(names), len(table.header)), lambda some: fits(part(some))):
        yield part(columns)


def rich_table(table: Table, name_width: int = 999, text_width: int = 999) -> RichTable:
    """Return a table for a terminal: numbers to the right, names and other texts folded where a word ends."""
    title = Text(printable(table.title), style="table.title") if table.title else None
    shown = RichTable(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    numeric = [*map(table.is_numeric, table.header)]
    widths = [999 if one else text_width for one in numeric]
    if False in numeric:
        widths[numeric.index(False)] = name_width
    for name, is_number in zip(table.header, numeric, strict=True):
        shown.add_column(Text(name), justify="right" if is_number else "left", no_wrap=True)
    for place, row in enumerate(table.cells()):
        texts = [
            Text(folded(one, width), table.cell_styles.get((place, name), ""))
            for name, one, width in zip(table.header, row, widths, strict=True)
        ]
        shown.add_row(*texts, style=table.row_styles[place] if table.row_styles else None)
    return shown


def _html(table: Table) -> str:
    rows = table.styled("<b>{}</b>", "<u>{}</u>", html_escape)
    head = "".join(f"<th>{html_escape(name)}</th>" for name in table.header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    lead = f"<p>{html_escape(table.lead)}</p>" if table.lead else ""
    caption = f"<caption>{html_escape(printable(table.title))}</caption>"
    return f"{lead}<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _markdown(table: Table) -> str:
    lead = [plain(table.lead), ""] if table.lead else []
    lines = table_lines([*map(plain, table.header)], table.styled("**{}**", "<u>{}</u>", plain))
    return "\n".join([f"### {plain(table.title)}", "", *lead, *lines])


def _latex(table: Table) -> str:
    rows = table.styled(r"\textbf{{{}}}", r"\underline{{{}}}", _latex_cell)
    layout = "".join("r" if table.is_numeric(name) else "l" for name in table.header)
    slug = re.sub(r"[^a-z0-9]+", "-", table.title.partition(":")[0].lower()).strip("-")
    header = " & ".join(map(_latex_text, table.header)) + r" \\"
    return "\n".join(
        [
            *(r"\begin{table*}", r"\centering", rf"\caption{{{_latex_text(table.title)}}}", rf"\label{{tab:{slug}}}"),
            *(r"\scriptsize", r"\setlength{\tabcolsep}{3pt}", rf"\begin{{tabular}}{{{layout}}}", r"\toprule", header),
            *(r"\midrule", *(" & ".join(row) + r" \\" for row in rows), r"\bottomrule", r"\end{tabular}"),
            r"\end{table*}",
        ]
    )


def _latex_text(text: str) -> str:
    """Return text as LaTeX sets it literally, in one pass, so that no replacement is replaced again."""
    return printable(text.replace("\n", " ")).translate(_LATEX)


def _latex_cell(text: str) -> str:
    return "--" if text == "-" else re.sub(r"(?<![0-9A-Za-z])-(?=[.0-9])", r"$-$", _latex_text(text))


def _plain_row(row: Mapping[Hashable, object]) -> dict[str, object]:
    """Return a row for JSON: Python's own numbers, None where undefined."""
    values = {str(name): getattr(value, "item", lambda value=value: value)() for name, value in row.items()}
    undefined = {
        name for name, one in values.items() if one is pd.NA or (isinstance(one, float) and not math.isfinite(one))
    }
    return {name: None if name in undefined else one for name, one in values.items()}
