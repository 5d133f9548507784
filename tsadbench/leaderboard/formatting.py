"""Numbers and Markdown tables as text: one format for terminals, pages and figures."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tsadbench.utils.text import printable

if TYPE_CHECKING:
    import pandas as pd

# What begins code, emphasis, HTML, an entity, a formula, a strike-through, or makes brackets a link; and a backslash
# that would take the escape from what follows.
_ACTIVE = re.compile(
    r"""[`$] | \\(?=[!-/:-@\[-`{-~]|$) | \*(?=\S) | (?<![A-Za-z0-9])_(?=\S) | <(?=[A-Za-z/!?])
    | &(?=\#?\w+;) | ~(?=~) | (?<=\])\( | ^\[""",
    re.X,
)
_ENTITIES = {"<": "&lt;", "&": "&amp;"}
# What a spreadsheet takes for the beginning of a formula, in the widths that it knows; it skips white space before it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", " ", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def number(value: float | None, decimals: int = 4, *, signed: bool = False) -> str:
    """Return a number as tables show it: without the zero before the decimal point, or a dash if it is undefined.

    >>> number(0.5, 2), number(-0.5, 2), number(0.5, 1, signed=True), number(12, 1), number(None)
    ('.50', '-.50', '+.5', '12.0', '-')
    """
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:{'+' if signed else ''}.{decimals}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def plain(text: str) -> str:
    r"""Return text that Markdown shows literally: no HTML, link, image, code or emphasis of it comes alive.

    >>> print(plain("<b>1 < 2</b> [a](b) `c` *d* e_f max-z[mean=10]"))
    &lt;b>1 < 2&lt;/b> [a]\(b) \`c\` \*d* e_f max-z[mean=10]
    """
    shown = printable(text.replace("\n", " "))
    return _ACTIVE.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), shown)


def table_lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; no cell ends early, but markup in them is kept."""
    table = [[cell.replace("|", "\\|").replace("\n", " ") for cell in cells] for cells in (header, *rows)]
    return [f"| {' | '.join(cells)} |" for cells in (table[0], ["---"] * len(header), *table[1:])]


def fill_blocks(text: str, lines_of: Callable[[str], Sequence[str] | None]) -> str:
    r"""Return a page with ``lines_of(NAME)`` from ``<!-- generated: NAME -->`` to ``<!-- end -->``; None: unchanged.

    >>> fill_blocks("<!-- generated: sum -->\nold\n<!-- end -->\n", lambda name: [f"{name}: 4"])
    '<!-- generated: sum -->\nsum: 4\n<!-- end -->\n'
    """

    def filled(found: re.Match[str]) -> str:
        lines = lines_of(found[2])
        return found[0] if lines is None else "\n".join([found[1], *lines, found[3]])

    return re.sub(r"(<!-- generated: (.+?) -->)\n.*?(<!-- end -->)", filled, text, flags=re.S)


def inert(value: object) -> object:
    r"""Return a cell of a spreadsheet, a text that would be taken for a formula with an apostrophe in front.

    >>> inert("=1+1"), inert("-1"), inert(-1), inert("a=1")
    ("'=1+1", "'-1", -1, 'a=1')
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def csv_text(frame: pd.DataFrame) -> str:
    """Return a data frame as CSV, full precision, every text inert."""
    return frame.map(inert).rename(columns=inert).to_csv(index=False, lineterminator="\n")


def folded(text: str, width: int) -> str:
    """Return a text on lines of at most ``width`` characters if possible, broken behind ``[``, ``,``, ``-`` or a space.

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
