"""MkDocs hooks: pages made from the code, notebooks, and links that leave docs/.

On GitHub a link in docs/ leads to any file of the repository. On the site only pages and pictures exist, so a link to
another file is turned into its address in the repository: the entry ``Repository`` of ``[project.urls]`` in
pyproject.toml. A link to a file that does not exist is left to MkDocs, which reports it.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path

import commands
import notebooks
import pandas as pd
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.testing import CliRunner

from tsadbench.cli.app import app
from tsadbench.leaderboard.render import plain, table_lines
from tsadbench.registry import entries
from tsadbench.reporting import pages, tables

# The line that the table of hostile detectors replaces.
ATTACKS = "<!-- attacks -->"
# The line of the first page that the results replace, and the page of all tables, which the data sets' pages follow.
RESULTS, ALL_TABLES = "<!-- results -->", f"{pages.FOLDER}/index.md"
# The page that lists the commands; their pages follow it in the navigation.
LISTING = f"{commands.FOLDER}/README.md"
_FENCED = re.compile(r"^(```|~~~).*?^\1[ ]*$", re.M | re.S)
# Code is matched first, and left alone. Words may hold code with brackets: [`dprgm[graph=none]`](...).
_LINK = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`)(?:(?!\n\n).)+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<picture>!?)\[(?P<words>(?:`[^`]*+`|[^\[\]`])*+)\]\((?P<target>[^()\s]+)\)",
    re.S,
)


def _outside(page: str, target: str, root: Path, shown: Collection[str]) -> str | None:
    """Return the path, from the repository's root, of a link's target that the site lacks.

    None for all other links: to files of the site, which ``shown`` lists from docs/, to other hosts, to anchors of the
    page itself, and to files that do not exist.
    """
    path = target.partition("#")[0]
    if not path or re.match(r"[a-z]+:", path):
        return None
    found = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
    if found.removeprefix("docs/") in shown or found.startswith("..") or not (root / found).exists():
        return None
    return found


def _rewritten(text: str, page: str, root: Path, shown: Collection[str]) -> str:
    """Return a page's text in which links to files that the site lacks lead to the repository."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def replaced(link: re.Match[str]) -> str:
        if link["code"] or link["picture"] or (path := _outside(page, link["target"], root, shown)) is None:
            return link[0]
        kind = "tree" if (root / path).is_dir() else "blob"
        _, mark, anchor = link["target"].partition("#")
        return f"[{link['words']}]({project['urls']['Repository']}/{kind}/main/{path}{mark}{anchor})"

    return _outside_fences(text, lambda part: _LINK.sub(replaced, part))


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    """Apply a change to everything but fenced code."""
    parts, position = [], 0
    for block in _FENCED.finditer(text):
        parts += [change(text[position : block.start()]), block[0]]
        position = block.end()
    return "".join([*parts, change(text[position:])])


def _rows(frame: pd.DataFrame) -> str:
    """Return the rows of a kind of attack as a Markdown table."""
    shown = frame.drop(columns="kind")
    return "\n".join(table_lines([*shown], [[plain(text) for text in row] for row in shown.to_numpy()]))


def _notebook(page: str) -> str | None:
    """Return the path of a page's notebook, or None if it has none."""
    folder, name = posixpath.split(page)
    return f"{page.removesuffix('.md')}.ipynb" if folder == "tutorials" and name != "README.md" else None


@cache
def results(docs: str) -> pages.Tables:
    """Return the committed tables."""
    return pages.read_tables(Path(docs).parent / "leaderboards")


@cache
def table_pages(docs: str) -> dict[str, str]:
    """Return the pages of tables and detectors; a detector's ends with what ``tsadbench info`` prints."""
    made, runner = pages.pages(results(docs)), CliRunner()
    for entry in entries("detectors"):
        path = f"{pages.FOLDER}/detectors/{entry.name}.md"
        if path in made:
            described = runner.invoke(app, ["info", entry.name], catch_exceptions=False)
            assert described.exit_code == 0, described.output
            made[path] += f"\n```text\n{described.stdout}```\n"
    return made


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of commands and of data sets below the pages that list them."""
    datasets = [path for path in table_pages(config.docs_dir) if posixpath.dirname(path) == pages.FOLDER]
    below = {LISTING: [LISTING, *commands.pages()], ALL_TABLES: datasets}

    def filled(entry: object) -> object:
        if isinstance(entry, list):
            return [filled(one) for one in entry]
        if isinstance(entry, dict):
            return {
                name: below[one] if isinstance(one, str) and one in below else filled(one)
                for name, one in entry.items()
            }
        return entry

    config.nav = filled(config.nav)
    config.extra_css.insert(0, "assets/tables.css")
    config.extra_javascript.append("assets/tables.js")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the commands and of the tables, and the notebooks."""
    style, script = (tables.ENVIRONMENT.get_template(name).render() for name in ("tables.css", "tables.js"))
    assets = {"tables.css": style, "tables.js": f"{tables.datatables()}\n{script}\ntables(DataTable);\n"}
    for name, text in assets.items():
        files.append(File.generated(config, f"assets/{name}", content=text))
    for path, text in table_pages(config.docs_dir).items():
        files.append(File.generated(config, path, content=text))
    if LISTING in files.src_uris:
        for path, text in commands.pages().items():
            files.append(File.generated(config, path, content=text))
    for page in list(files.documentation_pages()):
        if path := _notebook(page.src_uri):
            files.append(File.generated(config, path, content=notebooks.text(page.content_string)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/ to the repository, and insert what only the site has."""
    path = page.file.src_uri
    if path.startswith(f"{pages.FOLDER}/"):
        return markdown
    shown = {file.src_uri for file in files if file.inclusion.is_included()}
    text = _rewritten(markdown, path, Path(config.docs_dir).parent, shown)
    if path == LISTING:
        text = commands.linked(text)
    if ATTACKS in text:
        frame = pd.read_csv(Path(config.docs_dir) / "attacks.csv")
        parts = frame.groupby("kind", sort=False)
        text = text.replace(ATTACKS, "\n\n".join(f"*{kind}*\n\n{_rows(part)}" for kind, part in parts))
    if RESULTS in text:
        page.meta["hide"] = ["navigation", "toc"]
        text = text.replace(RESULTS, pages.first_page(results(config.docs_dir)))
    if notebook := _notebook(path):
        text += f"\n\n[This page as a notebook]({posixpath.basename(notebook)})\n"
    return text
