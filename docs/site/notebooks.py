"""The tutorials as notebooks: each page of docs/tutorials becomes one, cell by cell.

A file to save becomes a ``%%writefile`` cell, commands become a ``%%bash`` cell that stops at the first failure. Output
that a page shows becomes a Markdown cell.
"""

from __future__ import annotations

import re

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

_BLOCK = re.compile(
    r"(?:^Save this as `(?P<file>[\w.]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```\n", re.DOTALL | re.MULTILINE
)
# A kernel sets variables that ask programs for colours and progress bars, which would fill the outputs.
_START = """\
# The commands below need `tsadbench`, and write into a new folder.
import os, sys, tempfile
for name in ("CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR"):
    os.environ.pop(name, None)
os.chdir(tempfile.mkdtemp(prefix="tsadbench-"))
os.environ["PATH"] = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
"""


def notebook(page: str) -> nbformat.NotebookNode:
    """Return a page of docs/tutorials as a notebook.

    Parameters
    ----------
    page
        The text of the page.

    Raises
    ------
    ValueError
        If the page has a block that is neither a file, nor commands, nor what they print.
    """
    cells, position = [], 0

    def prose(text: str) -> None:
        if text.strip():
            cells.append(new_markdown_cell(text.strip()))

    for block in _BLOCK.finditer(page):
        prose(page[position : block.start()])
        position = block.end()
        if not cells:
            raise ValueError("expected a heading before the first block")
        if block["file"]:
            cells.append(new_code_cell(f"%%writefile {block['file']}\n{block['text'].rstrip()}"))
        elif block["kind"] == "console":
            cells.append(new_code_cell(f"%%bash\nset -eo pipefail\n{block['text'].rstrip()}"))
        elif block["kind"] == "text":
            cells.append(new_markdown_cell(f"```text\n{block['text']}```", metadata={"tags": ["shown"]}))
        else:
            raise ValueError(f"expected a block of a file, of console or of text, found {block['kind']}")
    prose(page[position:])
    cells.insert(1, new_code_cell(_START.rstrip()))
    for number, cell in enumerate(cells):  # random otherwise: the same page makes the same file
        cell["id"] = f"cell-{number}"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = new_notebook(cells=cells, metadata=kernel)
    nbformat.validate(made)
    return made


def text(page: str) -> str:
    """Return the notebook of a page of docs/tutorials as the text of a file."""
    return nbformat.writes(notebook(page))
