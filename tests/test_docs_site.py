"""The documentation site: built strictly, complete, the same text as on GitHub, and alone on its host."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nbformat
import pytest
from markdown_it import MarkdownIt
from typer.testing import CliRunner

import tsadbench
from tests.helpers.scripts import load_script
from tsadbench import base
from tsadbench.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Text that other pages contain, and that is no page of its own.
FRAGMENTS = {DOCS / f"detectors/{name}.md" for name in ("lof", "ocsvm", "svdd")}
PAGES = sorted(set(DOCS.rglob("*.md")) - FRAGMENTS)
FROM_DOCSTRINGS = {DOCS / f"reference/{name}.md" for name in ("tsadbench", "tsadbench.base")}


def build(configuration: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """As `make docs` does."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(configuration)]
    return subprocess.run(
        [*command, "--site-dir", str(site)],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


def html_of(page: Path, site: Path) -> str:
    """A page's own part of what was built, without what the theme has around it."""
    name = page.relative_to(DOCS).with_suffix(".html")
    text = (site / (name.with_name("index.html") if page.name == "README.md" else name)).read_text(encoding="utf-8")
    return text.partition("<article")[2].partition(">")[2].partition("</article>")[0]


class Shown(HTMLParser):
    """The text that a reader sees, and how often each tag occurs; the marks beside headings are left out."""

    COUNTED = ("h1", "h2", "h3", "h4", "table", "tr", "td", "th", "ul", "ol", "li", "strong", "em", "img", "blockquote")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self._inside = "", Counter[str](), ""
        self.targets: list[str] = []
        self.feed(html)
        self.text = "".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "a" and attributes.get("class") == "headerlink":
            self._inside = tag
        elif tag == "a":
            self.targets.append(attributes.get("href") or "")
        if tag in self.COUNTED:
            self.tags[tag] += 1

    def handle_endtag(self, tag):
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data):
        if not self._inside:
            self.text += data


@pytest.mark.parametrize("page", sorted(set(PAGES) - FROM_DOCSTRINGS), ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_says_on_the_site_what_it_says_on_github(page, site):
    """Two parsers: MkDocs has its own Markdown, which reads lists, tables and backslashes in another way."""
    source = page.read_text(encoding="utf-8")
    there = Shown(MarkdownIt("commonmark").enable("table").render(source))
    here = html_of(page, site)
    if not re.search(r"^# ", source, re.M):  # the theme writes a title
        here = re.sub(r"<h1>.*?</h1>", "", here, count=1, flags=re.S)
    here = re.sub(r"<p><a [^>]*>This page as a notebook</a></p>", "", here)
    shown = Shown(here)
    assert shown.text == there.text
    assert shown.tags == there.tags


def test_everything_that_can_go_wrong_with_a_link_ends_the_build(tmp_path):
    (tmp_path / "docs/deeper").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "docs/index.md").write_text(
        "# Start\n[a](gone.md) [b](deeper/page.md#nowhere) [c](../gone.py) ![d](gone.svg)\n"
        "[e](#neither) [f](/absolute.md)\n"
    )
    (tmp_path / "docs/deeper/page.md").write_text("# Page\n")
    (tmp_path / "docs/forgotten.md").write_text("# Forgotten\n")
    done = build(small(tmp_path), tmp_path / "site")
    assert done.returncode == 1
    for fault in (
        "'gone.md'",
        "'#nowhere'",
        "'../gone.py'",
        "'gone.svg'",
        "'#neither'",
        "'/absolute.md'",
        "forgotten.md",
    ):
        assert fault in done.stderr, f"{fault} is not in\n{done.stderr}"


@pytest.mark.parametrize("address", ["https://host.example/them/tsadbench", None])
def test_links_to_files_that_the_site_does_not_have_lead_to_the_repository(address, tmp_path):
    (tmp_path / "docs/deeper").mkdir(parents=True)
    urls = f'urls = {{Repository = "{address}.git/"}}\n' if address else ""
    (tmp_path / "pyproject.toml").write_text(f"[project]\n{urls}")
    (tmp_path / "docs/index.md").write_text(
        "# Start\n[README](../README.md#run-it), [`x[a=1]`](table.csv), [code](deeper), [page](deeper/page.md#page)\n"
        "`[no](../README.md)` ``[nor](../README.md) ` `` [there](https://other.example/README.md)\n\n"
        "```\n[kept](../README.md)\n```\n"
    )
    (tmp_path / "docs/table.csv").write_text("")
    (tmp_path / "README.md").write_text("# Run it\n")
    (tmp_path / "docs/deeper/page.md").write_text("# Page\n[up](../../README.md)\n")
    done = build(small(tmp_path, "exclude_docs: '*.csv'"), tmp_path / "site")
    assert done.returncode == 0, done.stderr
    html = Shown((tmp_path / "site/index.html").read_text().partition("<article")[2].partition("</article>")[0])
    above = Shown((tmp_path / "site/deeper/page.html").read_text().partition("<article")[2].partition("</article>")[0])
    inside = ["deeper/page.html#page", "https://other.example/README.md"]
    if address:
        first = [
            f"{address}/{path}"
            for path in ("blob/main/README.md#run-it", "blob/main/docs/table.csv", "tree/main/docs/deeper")
        ]
        assert html.targets == [*first, *inside]
        assert above.targets == [f"{address}/blob/main/README.md"]
    else:
        assert html.targets == inside
        assert above.targets == []
    assert "README,x[a=1],code,page[no](../README.md)[nor](../README.md)`there[kept](../README.md)" in html.text


def small(folder: Path, *more: str) -> Path:
    """Write the configuration of a small site that follows the rules of the large one."""
    configuration = folder / "mkdocs.yml"
    lines = [
        f"INHERIT: {ROOT / 'mkdocs.yml'}",
        f"hooks: [{DOCS / 'site/hooks.py'}]",
        "plugins: []",
        "nav: [index.md, deeper/page.md]",
        *more,
    ]
    configuration.write_text("\n".join(lines) + "\n")
    return configuration


def help_of(*names: str) -> str:
    return CliRunner().invoke(app, [*names, "--help"]).stdout


def members(text: str) -> list[str]:
    """The names below "Commands" of a help text."""
    return re.findall(r"^  ([a-z][\w-]*)", text.partition("\nCommands:\n")[2], re.M)


def test_the_reference_has_every_command_and_every_option(site):
    names = members(help_of())
    assert len(names) > 20
    listed = Shown(html_of(DOCS / "reference/commands/README.md", site))
    assert sorted(listed.targets) == sorted(f"{name}.html" for name in names)
    for name in names:
        html = (site / f"reference/commands/{name}.html").read_text(encoding="utf-8")
        for command in [(name,), *((name, member) for member in members(help_of(name)))]:
            title = f"tsadbench {' '.join(command)}</code>"
            section = html.rpartition(title)[2] if len(command) > 1 else html.partition(title)[2]
            section = re.split(r"<h[12] ", section)[0]
            terms = set(re.findall(r"--[a-z][\w-]*", " ".join(re.findall(r"<dt>(.*?)</dt>", section))))
            wanted = set(re.findall(r"^  (?:-\w, )?(--[a-z][\w-]*)", help_of(*command), re.M))
            assert wanted <= terms, f"{command}: {wanted - terms}"


@pytest.mark.parametrize(("package", "left_out"), [
    (tsadbench, {*base.__all__, "__version__"}),
    (base, {"ALL", "LEVELLED", "SHARE_SEEN", "STILL_FALLING", "BoolArray", "Float32Array", "FloatArray", "IntArray",
            "Loader", "Series"}),
])  # fmt: skip
def test_the_reference_has_every_public_name(package, left_out, site):
    html = (site / f"reference/{package.__name__}.html").read_text(encoding="utf-8")
    names = set(package.__all__) - left_out
    assert {name for name in names if f'id="{package.__name__}.{name}"' not in html} == set()


@pytest.mark.parametrize("name", ["researcher", "engineer", "reviewer"])
def test_a_tutorial_can_be_downloaded_as_a_notebook_with_all_its_commands_and_files(name, site):
    page = (DOCS / f"tutorials/{name}.md").read_text(encoding="utf-8")
    assert f'href="{name}.ipynb"' in html_of(DOCS / f"tutorials/{name}.md", site)
    notebook = nbformat.read(site / f"tutorials/{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    cells = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    for kind, text in re.findall(r"^```(\w+)\n(.*?)\n```", page, re.M | re.S):
        assert (text in cells) == (kind != "text")
    assert re.findall(r"%%writefile (\S+)", cells) == re.findall(r"^Save this as `(.+?)`", page, re.M)


def test_a_block_of_an_unknown_kind_makes_no_notebook():
    script = load_script(DOCS / "site/notebooks.py")
    with pytest.raises(ValueError, match="expected a block of a file, of console or of text, found python"):
        script.notebook("# Title\n\n```python\nprint()\n```\n")


LOADS = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*\b(?:src|data)=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b(?![^>]*rel=[\"']?canonical)[^>]*\bhref=[\"']?(?:https?:)?//[^>]*>"
    r"|@import\s+(?:url\()?[\"']?(?:https?:)?//\S+|url\([\"']?(?:https?:)?//[^)]*\)"
)


def test_no_file_of_the_site_loads_anything_from_another_host(site):
    files = [file for file in site.rglob("*") if file.suffix in {".html", ".css", ".svg"}]
    assert len(files) > len(PAGES)
    found = {str(file.relative_to(site)): LOADS.findall(file.read_text(encoding="utf-8")) for file in files}
    assert {name: loads for name, loads in found.items() if loads} == {}


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.browser
def test_a_reader_asks_no_other_host_and_finds_what_is_searched_for(address, browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, requests, complaints = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for name in ("index", "tutorials/researcher", "reference/commands/run", "reference/tsadbench.base", "audits/skab"):
        page.goto(f"{address}/{name}.html")
    page.goto(f"{address}/index.html")
    page.locator("input[name=query]").fill("require-seal")
    page.locator(".md-search-result__link").first.wait_for()
    found = [link.get_attribute("href") for link in page.locator(".md-search-result__link").all()]
    assert any("reference/commands/run.html" in target for target in found), found
    assert len(requests) > 20
    assert [url for url in requests if not url.startswith(address)] == []
    assert complaints == []
    context.close()


@pytest.mark.browser
def test_on_a_phone_no_page_is_wider_than_the_screen_and_dark_is_dark(address, browser):
    context = browser.new_context(viewport={"width": 375, "height": 740}, color_scheme="dark")
    page = context.new_page()
    for name in ("index", "detectors", "studies/faithful", "reference/commands/run", "reference/tsadbench.base"):
        page.goto(f"{address}/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, name
        red, green, blue = map(
            int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3]
        )
        assert max(red, green, blue) < 80
    context.close()
