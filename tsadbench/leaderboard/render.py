"""Renders tables: data frames with sentences, as terminal text, Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import pandas as pd
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tsadbench.leaderboard.formatting import csv_text, folded, number, plain, table_lines
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.text import printable

Form: TypeAlias = Literal["table", "markdown", "latex", "csv", "json"]
SCHEMA = 2
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
        "bold" or "underline" by a row's index and a column's name; a terminal's style by a row's index.
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
        columns = [[cell(one, self.decimals.get(name, 4)) for one in self.frame[name]] for name in self.header]
        return [list(row) for row in zip(*columns, strict=True)]

    def only(self, places: Sequence[int]) -> Table:
        """Return the table with the rows at some places."""
        return replace(self, frame=self.frame.iloc[[*places]])

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
        return json_text(
            tables=[{"title": one.title, "rows": one.frame.to_dict("records")} for one in tables], notes=notes
        )
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


def json_text(**content: object) -> str:
    """Return an object with the schema's number as JSON, null where a number is undefined."""
    return json.dumps(_defined({"schema": SCHEMA, **content}), indent=1, allow_nan=False) + "\n"


def _defined(value: Any) -> JsonValue:
    if isinstance(value, Mapping):
        return {str(name): _defined(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_defined(one) for one in value]
    value = value.item() if hasattr(value, "item") else value
    return None if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)) else value


def print_tables(console: Console, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
    """Print tables and the sentences about them; columns that do not fit are left out, or stand in further tables."""
    for table in tables:
        console.print(Text(printable(table.title), style="bold"))
        if table.lead:
            console.print(Text(printable(table.lead)))
        for part in _fitting(table, console.width):
            console.print(part)
    for note in notes:
        console.print(Text(printable(note), style="dim"))


def _fitting(table: Table, width: int) -> Iterator[RichTable]:
    """Yield a table without its expendable columns, or in parts that each begin with the texts that name its rows."""
    texts = dict(zip(table.header, [[*one] for one in zip(table.header, *table.cells(), strict=True)], strict=True))
    numeric = {name: table.is_numeric(name) for name in texts}
    sizes = {name: max(map(cell_len, texts[name])) + 3 for name in texts}
    # Texts keep at least 24 characters as long as columns can be left out instead, then 16.
    shown, limits = [*texts], {name: 0 if numeric[name] else min(sizes[name], 27) for name in texts}
    for name in table.expendable:
        if sum(limits[one] or sizes[one] for one in shown) > width + 1:
            shown.remove(name)
    folding = sorted((name for name in shown if not numeric[name]), key=sizes.__getitem__)
    room = width + 1 - sum(sizes[name] for name in shown if numeric[name])
    for place, name in enumerate(folding):
        sizes[name] = max(19, min(sizes[name], room // (len(folding) - place)))
        room -= sizes[name]
        texts[name] = [folded(text, sizes[name] - 3) for text in texts[name]]
        sizes[name] = 3 + max(cell_len(line) for text in texts[name] for line in text.split("\n"))
    n_first = next(
        (i for i, name in enumerate(shown) if numeric[name] and not all(numeric[one] for one in shown[:i])), 0
    )
    parts: list[list[str]] = [shown[:n_first]]
    for name in shown[n_first:]:
        if len(parts[-1]) > n_first and sum(sizes[one] for one in (*parts[-1], name)) > width + 1:
            parts.append(shown[:n_first])
        parts[-1].append(name)
    for part in parts:
        found = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in part:
            found.add_column(Text(name), justify="right" if numeric[name] else "left", no_wrap=numeric[name])
        for place, row in enumerate(table.frame.index, start=1):
            of_row = [Text(texts[name][place], table.cell_styles.get((row, name), "")) for name in part]
            found.add_row(*of_row, style=table.row_styles[row] if table.row_styles else None)
        yield found


def _styled(table: Table, bold: str, underline: str, plain: Callable[[str], str]) -> list[list[str]]:
    """Return the cells in a markup language: what bold and underlined texts look like in it, and any text."""
    forms = {"": "{}", "bold": bold, "underline": underline}
    return [
        [
            forms[table.cell_styles.get((row, name), "")].format(plain(text.strip()))
            for name, text in zip(table.header, of_row, strict=True)
        ]
        for row, of_row in zip(table.frame.index, table.cells(), strict=True)
    ]


def _markdown(table: Table) -> str:
    lead = [plain(table.lead), ""] if table.lead else []
    lines = table_lines([*map(plain, table.header)], _styled(table, "**{}**", "<u>{}</u>", plain))
    return "\n".join([f"### {plain(table.title)}", "", *lead, *lines])


def _latex(table: Table) -> str:
    layout = "".join("r" if table.is_numeric(name) else "l" for name in table.header)
    slug = re.sub(r"[^a-z0-9]+", "-", table.title.partition(":")[0].lower()).strip("-")
    rows = [map(_latex_text, table.header), *_styled(table, r"\textbf{{{}}}", r"\underline{{{}}}", _latex_cell)]
    header, *body = (" & ".join(row) + r" \\" for row in rows)
    return "\n".join(
        [
            *(r"\begin{table*}", r"\centering", rf"\caption{{{_latex_text(table.title)}}}", rf"\label{{tab:{slug}}}"),
            *(r"\scriptsize", r"\setlength{\tabcolsep}{3pt}", rf"\begin{{tabular}}{{{layout}}}", r"\toprule", header),
            *(r"\midrule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table*}"),
        ]
    )


def _latex_text(text: str) -> str:
    """Return text as LaTeX sets it literally, in one pass, so that no replacement is replaced again."""
    return printable(text.replace("\n", " ")).translate(_LATEX)


def _latex_cell(text: str) -> str:
    return "--" if text == "-" else re.sub(r"(?<![0-9A-Za-z])-(?=[.0-9])", r"$-$", _latex_text(text))
