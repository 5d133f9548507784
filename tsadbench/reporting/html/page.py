"""The page itself: template, styles, scripts and content in one file that makes no requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

from tsadbench.utils.extras import extra
from tsadbench.utils.parameters import JsonValue

# In the order in which the page needs them.
_SCRIPTS = (
    "data.js",
    "hover.js",
    "paper.js",
    "columns.js",
    "table.js",
    "charts.js",
    "heatmap.js",
    "recording.js",
    "pair.js",
    "statistics.js",
    "link.js",
    "main.js",
)


def render(content: Mapping[str, JsonValue]) -> str:
    """Return the page.

    Parameters
    ----------
    content
        What `build.report_content` gathers. Its texts are escaped: none can end the script element that holds them.

    Raises
    ------
    MissingExtraError
        If plotly is not installed.
    """
    with extra("a report", "report"):
        from plotly.offline import get_plotlyjs
    assets = files(__package__) / "assets"
    parts = {
        "style": (assets / "report.css").read_text(encoding="utf-8"),
        "plotly": str(get_plotlyjs()),
        "script": "\n".join((assets / name).read_text(encoding="utf-8") for name in _SCRIPTS),
        "content": _embedded(content),
    }
    html = (assets / "index.html").read_text(encoding="utf-8")
    # One pass, so that inserted text is not searched for placeholders.
    pieces = html.split("%%")
    return "".join(piece if i % 2 == 0 else parts[piece] for i, piece in enumerate(pieces))


def _embedded(content: Mapping[str, JsonValue]) -> str:
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
