"""The page itself: template, styles, scripts and content in one file that makes no requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

from tsadbench.utils.extras import extra
from tsadbench.utils.parameters import JsonValue

_ASSETS = files(__package__) / "assets"
# What a page with a leaderboard needs, in this order: the report and the site.
TABLE_SCRIPTS = (
    "data.js",
    "controls.js",
    "figures.js",
    "paper.js",
    "columns.js",
    "table.js",
    "heatmap.js",
    "moments.js",
    "statistics.js",
    "address.js",
    "sections.js",
)
_SCRIPTS = (
    "content.js",
    *TABLE_SCRIPTS,
    "hover.js",
    "charts.js",
    "recording.js",
    "pair.js",
    "link.js",
    "main.js",
)
STYLES = "report.css"


def asset(name: str) -> str:
    """Return a script, a style sheet or a template of the report."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def render(content: Mapping[str, JsonValue]) -> str:
    """Return the page. A MissingExtraError if plotly is not installed."""
    with extra("a report", "report"):
        from plotly.offline import get_plotlyjs
    parts = {
        "style": asset(STYLES),
        "plotly": str(get_plotlyjs()),
        "script": "\n".join(map(asset, _SCRIPTS)),
        "content": embedded(content),
    }
    html = asset("index.html")
    # One pass, so that inserted text is not searched for placeholders.
    pieces = html.split("%%")
    return "".join(piece if i % 2 == 0 else parts[piece] for i, piece in enumerate(pieces))


def embedded(content: Mapping[str, JsonValue]) -> str:
    """Return content as JSON that is safe inside a script element and in a script of its own."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
