"""Make text printable, and check names and paths that come from files."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from annotated_types import Len, Predicate


def printable(text: str, *, lines: bool = False) -> str:
    r"""Escape every character of a text that is not shown as itself.

    These are control characters, bidirectional overrides, zero-width characters, line separators and lone surrogates.
    ``lines`` keeps line feeds and tabs.

    >>> print(printable("a\x1b[2Jb\nc \u202e \ud800"))
    a\x1b[2Jb\nc \u202e \ud800
    >>> printable("first\r\nsecond\t\x07", lines=True)
    'first\nsecond\t\\x07'
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    text = text.replace("\r\n", "\n") if lines else text
    # `isprintable` rejects spaces of other widths (Zs), which are harmless.
    shown = (one in kept or one.isprintable() or unicodedata.category(one) == "Zs" for one in text)
    return "".join(one if is_shown else ascii(one)[1:-1] for one, is_shown in zip(text, shown, strict=True))


def first_of(names: Sequence[str], most: int = 5) -> str:
    """Return the first names for a message, and how many more there are.

    >>> first_of("abc", 2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: "1 trial", "1,200 trials"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def printable_values(content: object) -> object:
    """Make every text in JSON data printable, keeping its lines."""
    if isinstance(content, str):
        return printable(content, lines=True)
    if isinstance(content, dict):
        return {printable_values(key): printable_values(value) for key, value in content.items()}
    return [printable_values(value) for value in content] if isinstance(content, list) else content


def one_line(text: str, limit: int = 2000) -> str:
    r"""Return the text as one printable line of at most ``limit`` characters, shortened with an ellipsis.

    >>> one_line("two\n  lines, of which much is left out", 16)
    'two lines, of w…'
    """
    # Cut first, so that a huge text from a stranger costs no time.
    line = printable(" ".join(text[: 16 * limit].split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


_ABSOLUTE_START = r"(?<![\w./~])"
_ABSOLUTE_FOLDERS = re.compile(_ABSOLUTE_START + r"/(?!/)(?:[^/\s,=\[\]'\"]+/)*(?=[^/\s])")
_LONGEST_LABEL = 20_000
# A detector's label, or the id of a recording or an episode, as pydantic checks it.
LabelText: TypeAlias = Annotated[str, Len(1, _LONGEST_LABEL), Predicate(str.isprintable)]
# What a detector was pretrained on.
Corpora: TypeAlias = Annotated[tuple[Annotated[str, Len(1, 100), Predicate(str.isprintable)], ...], Len(0, 20)]


def name_fault(name: str) -> str:
    """Return why a text cannot be the name of a file or a folder, or ""."""
    valid = name.isprintable() and re.fullmatch(r"[^./\\][^/\\]{0,199}", name)
    return "" if valid else "expected 1 to 200 printable characters without / and \\, and no dot at the start"


def label_fault(label: str) -> str:
    """Return why a text cannot be a detector's label, or the id of a recording or an episode, or ""."""
    valid = label.isprintable() and 0 < len(label) <= _LONGEST_LABEL
    return "" if valid else f"expected 1 to {_LONGEST_LABEL:,} printable characters"


def without_folders(text: str) -> str:
    """Return a text with absolute paths reduced to their last component, or relative to the working directory."""
    below = re.escape(str(Path.cwd()).rstrip("/"))
    return _ABSOLUTE_FOLDERS.sub("", re.sub(f"{_ABSOLUTE_START}{below}/(?=[^/])", "", text))
