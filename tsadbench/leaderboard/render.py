"""Renders tables: data frames with sentences, as terminal text, Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import pandas as pd
from pydantic_core import to_json
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tsadbench.utils.text import printable

Form: TypeAlias = Literal["table", "markdown", "latex", "csv", "json"]
SCHEMA = 2
BLOCK = re.compile(r"(<!-- generated: (.+?) -->).*?(?=<!-- end -->)", re.S)  # in a page that a script fills
# Characters that begin code, emphasis, HTML, an entity, a formula or a strike-through, or turn brackets into a link;
# and backslashes, which would escape our own.
_ACTIVE = re.compile(
    r"""[`$] | \\(?=[!-/:-@\[-`{-~]|$) | \*(?=\S) | (?<![A-Za-z0-9])_(?=\S) | <(?=[A-Za-z/!?])
    | &(?=\#?\w+;) | ~(?=~) | (?<=\])\( | ^\[""",
    re.X,
)
_ENTITIES = {"<": "&lt;", "&": "&amp;"}
# Characters that begin a formula in a spreadsheet, in both widths; it skips white space before them.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", " ", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
        ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", **{one: f"\\{one}" for one in "{}$&#%_"},
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A data frame as readers see it: a line per row, column names as the header, no index."""

    title: str
    frame: pd.DataFrame
    # By column, if not four; None for four significant digits. Integers have no decimals.
    decimals: Mapping[str, int | None] = field(default_factory=dict)
    lead: str = ""  # a sentence above
    numeric: Collection[str] = ()  # text columns that hold numbers
    cell_styles: Mapping[tuple[int, str], str] = field(default_factory=dict)  # "bold", "underline" by index and column
    row_styles: Sequence[str] = ()  # Rich styles, by index
    expendable: Sequence[str] = ()  # columns that a narrow terminal leaves out, in this order

    @property
    def header(self) -> list[str]:
        """The columns' names."""
        return [str(name) for name in self.frame]

    def cells(self) -> list[list[str]]:
        """Return the rows as texts, a dash for an undefined value."""
        columns = [[cell(one, self.decimals.get(name, 4)) for one in self.frame[name]] for name in self.header]
        return [list(row) for row in zip(*columns, strict=True)]

    def only(self, places: Sequence[int]) -> Table:
        """Return the table with only the rows at these places."""
        return replace(self, frame=self.frame.iloc[[*places]])

    def is_numeric(self, name: str) -> bool:
        """Return whether a column has numbers, which are right-aligned and never wrapped."""
        return name in self.numeric or pd.api.types.is_numeric_dtype(self.frame[name].dtype)


def number(value: float | None, decimals: int = 4, *, signed: bool = False) -> str:
    """Return a number as tables show it: without the zero before the decimal point, or a dash if it is undefined.

    >>> number(0.5, 2), number(-0.5, 2), number(0.5, 1, signed=True), number(12, 1), number(None)
    ('.50', '-.50', '+.5', '12.0', '-')
    """
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:{'+' if signed else ''}.{decimals}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def cell(value: object, decimals: int | None = 4) -> str:
    """Return one value as tables show it.

    >>> cell(0.5), cell(12000), cell(None), cell(True), cell("t2"), cell(float("nan"))
    ('.5000', '12,000', '-', 'yes', 't2', '-')
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or pd.isna(value):  # type: ignore[call-overload]  # any object may be asked
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if decimals is None else number(value, decimals)
    return f"{value:,}"


def plain(text: str) -> str:
    r"""Escape text so that Markdown shows it literally, without HTML, links, images, code or emphasis.

    >>> print(plain("<b>1 < 2</b> [a](b) `c` *d* e_f max-z[mean=10]"))
    &lt;b>1 < 2&lt;/b> [a]\(b) \`c\` \*d* e_f max-z[mean=10]
    """
    shown = printable(text.replace("\n", " "))
    return _ACTIVE.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), shown)


def table_lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; pipes and line breaks in cells are escaped, other markup is kept."""
    table = [[cell.replace("|", "\\|").replace("\n", " ") for cell in cells] for cells in (header, *rows)]
    return [f"| {' | '.join(cells)} |" for cells in (table[0], ["---"] * len(header), *table[1:])]


def inert(value: object) -> object:
    r"""Return a spreadsheet cell; a text that would be taken for a formula gets a leading apostrophe.

    >>> inert("=1+1"), inert("-1"), inert(-1), inert("a=1")
    ("'=1+1", "'-1", -1, 'a=1')
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def csv_text(frame: pd.DataFrame) -> str:
    """Return a data frame as CSV in full precision, with texts that cannot act as formulas (`inert`)."""
    return frame.astype(object).map(inert).rename(columns=inert).to_csv(index=False, lineterminator="\n")


def json_text(**content: object) -> str:
    """Return a JSON object with the schema number; undefined numbers are null."""
    options: Any = {"indent": 1, "inf_nan_mode": "null", "fallback": lambda one: None if one is pd.NA else one.item()}
    return to_json({"schema": SCHEMA, **content}, **options).decode() + "\n"


def render(
    tables: Sequence[Table], notes: Sequence[str] = (), form: Form = "table", *, width: int | None = None
) -> str:
    """Return tables in a format, with the notes below.

    CSV has full precision and no notes. JSON is one object, ``{"schema": 2, "tables": [{"title", "rows"}],
    "notes"}``, null where undefined. ``width`` is the terminal's, by default as wide as the tables need.
    """
    if form == "csv":
        return "\n".join(csv_text(table.frame) for table in tables)
    if form == "json":
        rows = [{"title": one.title, "rows": one.frame.to_dict("records")} for one in tables]
        return json_text(tables=rows, notes=notes)
    if form == "latex":
        first = r"% In the preamble: \usepackage{booktabs}"
        return "\n\n".join([first, *map(_latex, tables), *map(_latex_text, notes)]) + "\n"
    if form == "markdown":
        parts = [*map(_markdown, tables), "\n".join(f"- {plain(note)}" for note in notes)]
        return "\n\n".join(parts).rstrip() + "\n"
    console = Console(width=width or 10_000, color_system=None, force_terminal=False, force_jupyter=False)
    with console.capture() as captured:
        print_tables(console, tables, notes)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def print_tables(console: Console, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
    """Print tables with the notes below; expendable columns that do not fit are left out."""
    for table in tables:
        console.print(Text(printable(table.title), style="bold"))
        if table.lead:
            console.print(Text(printable(table.lead)))
        console.print(_rich(table, console.width), "", crop=False, sep="\n")
    for note in notes:
        console.print(Text(printable(note), style="dim"))


def _rich(table: Table, width: int) -> RichTable:
    """Return a table that fits a width if possible: leave out expendable columns, then fold texts."""
    texts = {name: [name, *of_rows] for name, *of_rows in zip(table.header, *table.cells(), strict=True)}
    numeric = {name: table.is_numeric(name) for name in texts}
    sizes = {name: max(map(cell_len, texts[name])) + 2 for name in texts}
    for name in table.expendable:
        # Texts keep 24 characters as long as columns can be left out instead, then 14.
        if sum(sizes[one] if numeric[one] else min(sizes[one], 26) for one in texts) > width + 2:
            del texts[name]
    words = sorted((name for name in texts if not numeric[name]), key=sizes.__getitem__)
    room = width + 2 - sum(sizes[name] for name in texts if numeric[name])
    for left, name in zip(range(len(words), 0, -1), words, strict=True):
        limit = max(14, min(sizes[name], room // left) - 2)
        texts[name] = [folded(text, limit) for text in texts[name]]
        sizes[name] = 2 + max(cell_len(line) for text in texts[name] for line in text.split("\n"))
        room -= sizes[name]
    total = sum(sizes[name] for name in texts) - 2
    found = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), width=total)
    for name, (header, *_) in texts.items():
        found.add_column(Text(header), justify="right" if numeric[name] else "left", no_wrap=True)
    for place, row in enumerate(table.frame.index, start=1):
        of_row = [Text(texts[name][place], table.cell_styles.get((row, name), "")) for name in texts]
        found.add_row(*of_row, style=table.row_styles[row] if table.row_styles else None)
    return found


def folded(text: str, width: int) -> str:
    """Wrap a text to lines of at most ``width`` characters if possible, after ``[``, ``,``, ``-`` or a space.

    >>> print(folded("dprgm[graph=none,node_weights=off]", 20))
    dprgm[graph=none,
      node_weights=off]
    """
    if len(text) <= width:
        return text
    lines, indent = [""], "" if " " in text else "  "
    for part in re.split(r"(?<=[,\[ -])", text):
        if lines[-1].strip() and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append(indent)
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _styled(table: Table, bold: str, underline: str, plain: Callable[[str], str]) -> list[list[str]]:
    """Return the cells in a markup language, given its formats of bold and underlined text and how to escape text."""
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
    slug = re.sub(r"[^a-z0-9]+", "-", table.title.partition(":")[0].lower()).strip("-")
    cells = _styled(table, r"\textbf{{{}}}", r"\underline{{{}}}", _latex_cell)
    text = (
        pd.DataFrame(cells, columns=[*map(_latex_text, table.header)])
        .style.hide(axis="index")
        .to_latex(
            column_format="".join("r" if table.is_numeric(name) else "l" for name in table.header),
            environment="table*",
            position_float="centering",
            hrules=True,
            caption=_latex_text(table.title),
            label=f"tab:{slug}",
        )
    )
    return text.replace("\\centering\n", "\\centering\n\\scriptsize\n\\setlength{\\tabcolsep}{3pt}\n").rstrip()


def _latex_text(text: str) -> str:
    """Return text as LaTeX sets it literally, in one pass, so that no replacement is replaced again."""
    return printable(text.replace("\n", " ")).translate(_LATEX)


def _latex_cell(text: str) -> str:
    return "--" if text == "-" else re.sub(r"(?<![0-9A-Za-z])-(?=[.0-9])", r"$-$", _latex_text(text))
