"""Templates, and the texts in them: escaped, but for what is made of them here. Needs the extra ``report``."""

from __future__ import annotations

import re
from importlib.resources import files

from tsadbench._version import __version__
from tsadbench.leaderboard.formatting import number
from tsadbench.reporting.html.page import STYLES, TABLE_SCRIPTS, asset
from tsadbench.utils.extras import extra

with extra("a site", "report"):
    from jinja2 import Environment, FunctionLoader
    from markdown_it import MarkdownIt
    from markupsafe import Markup, escape

_PACKAGE = files("tsadbench.reporting.site")
_SCRIPTS = ("load.js", "svg.js", "filters.js", "own-columns.js", "own-figures.js", "series.js", "site.js")
_CODE = re.compile(r"``([^`]+)``|`([^`]+)`")
_BLANK = re.compile(r"\n\s*\n")


class Pages:
    """Renders the pages of one site.

    Parameters
    ----------
    menu
        Addresses from the site's top and their words, for the menu of every page.
    """

    def __init__(self, menu: tuple[tuple[str, str], ...]) -> None:
        # HTML in a description is shown, not obeyed, links to scripts are no links, and pictures are not fetched.
        self._markdown = MarkdownIt("js-default", {"linkify": False}).disable("image")
        self._environment = Environment(
            loader=FunctionLoader(_template), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        self._environment.filters |= {
            "code": _code,
            "markdown": self._marked_down,
            "number": number,
            "paragraphs": _paragraphs,
            "share": lambda value: f"{100 * value:.0f} %",
            "signed": lambda value: number(value, 4, signed=True),
        }
        self._menu = menu

    def page(self, template: str, address: str, title: str, **content: object) -> str:
        """Return a page."""
        usual = {"kind": "", "name": "", "file": "", "lead": "", "here": address}
        return self._environment.get_template(f"{template}.html").render(
            {**usual, "root": "../" * address.count("/"), "title": title, "pages": self._menu, "version": __version__}
            | content
        )

    def _marked_down(self, text: str) -> Markup:
        return Markup(self._markdown.render(text))


def _template(name: str) -> str:
    return (_PACKAGE / "templates" / name).read_text(encoding="utf-8")


def assets() -> dict[str, str]:
    """Return the scripts and the styles that all pages share, by file name."""
    own = _PACKAGE / "assets"

    def read(name: str) -> str:
        return (own / name).read_text(encoding="utf-8")

    return {
        "site.css": asset(STYLES) + read("site.css"),
        "site.js": "\n".join([*map(asset, TABLE_SCRIPTS), *map(read, _SCRIPTS)]),
        "theme.js": read("theme.js"),
    }


def _code(text: str) -> Markup:
    """Return a text whose parts in backquotes are set as code."""
    return Markup(_CODE.sub(lambda found: f"<code>{found[1] or found[2]}</code>", str(escape(text))))


def _paragraphs(text: str) -> Markup:
    """Return a docstring's text as paragraphs; an indented one keeps its lines."""
    blocks = [block for block in _BLANK.split(text.strip("\n")) if block.strip()]
    parts = (
        Markup("<pre>{}</pre>").format(block) if block.startswith("    ") else Markup("<p>{}</p>").format(_code(block))
        for block in blocks
    )
    return Markup("").join(parts)
