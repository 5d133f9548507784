"""The Markdown tables of a page."""

from __future__ import annotations

import re


def tables(text: str) -> list[list[dict[str, str]]]:
    """Return every Markdown table as rows by header."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        header, _, *rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in block.splitlines()]
        found.append([dict(zip(header, row, strict=True)) for row in rows])
    return found
