"""Renders tables as sortable HTML, and the templates of all pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import jinja2
from markupsafe import Markup

from tsadbench.leaderboard.render import Table

ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("tsadbench.reporting"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
WON, LOST, NONE = "●", "○", "·"
_DOTS = {WON: "dot won", LOST: "dot", NONE: "dot"}
_NUMBER = re.compile(r"[+-]?(\d[\d,]*)?\.?\d+")


def html_table(table: Table, links: Mapping[str, str] | None = None) -> Markup:
    """Return a table as HTML: the first text column names the rows and may link to other pages; floors are dimmed.

    DataTables sorts by a cell's ``data-order``, which is empty for undefined cells.
    """
    texts = [name for name in table.header if not table.is_numeric(name)]
    columns = {name: "name" if [name] == texts[:1] else "text" if name in texts else "number" for name in table.header}
    body = []
    for place, row in enumerate(table.cells()):
        cells = []
        for (name, kind), text in zip(columns.items(), row, strict=True):
            if text in _DOTS:
                columns[name] = "dot"
            style = "up" if kind == "number" and text.startswith("+") else ""
            cells.append(
                {
                    "text": text.strip(),
                    "kind": " ".join([_DOTS.get(text, kind), style, table.cell_styles.get((place, name), "")]).strip(),
                    "value": text if kind in ("name", "text") and text not in _DOTS else _value(text),
                    "link": (links or {}).get(text, "") if kind == "name" else "",
                }
            )
        style = table.row_styles[place] if table.row_styles else ""
        body.append({"kind": {"dim": "floor", "red": "failed"}.get(style, ""), "cells": cells})
    module = ENVIRONMENT.get_template("table.html.j2").module
    return Markup(module.table(columns, body, table.title))  # type: ignore[attr-defined]  # of the template


def _value(text: str) -> float | None:
    """Return the first number of a cell, or None.

    >>> _value(".74 ± .01"), _value("-.05"), _value("12,000"), _value("3 of 8"), _value("-"), _value("●")
    (0.74, -0.05, 12000.0, 3.0, None, 1.0)
    """
    if text in _DOTS:
        return [NONE, LOST, WON].index(text) - 1.0
    found = _NUMBER.search(text)
    return None if found is None else float(found[0].replace(",", ""))


def datatables() -> str:
    """Return the library DataTables, which sorts and searches tables, as a script."""
    import itables

    module = Path(itables.__file__).with_name("html").joinpath("dt_bundle.js").read_text(encoding="utf-8")
    # Pages opened as files cannot load modules.
    script = re.sub(r"export\s*\{[^}]*?(\w+) as default[^}]*\}", r"window.DataTable = \1", module)
    return f"(() => {{{script}}})();"
