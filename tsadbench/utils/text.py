"""Texts that somebody else wrote, made fit to be shown."""

from __future__ import annotations

import unicodedata


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return the text with every character that is not shown as itself written as an escape.

    These are control characters (a terminal obeys them), changes of the writing direction, characters of no width,
    line separators, and lone surrogates, which no file can hold. A clean text is returned as it is.

    Parameters
    ----------
    text
        The text.
    lines
        Whether line feeds and tabs are kept; the text has lines then.

    Examples
    --------
    >>> print(printable("a\x1b[2Jb\nc \u202e \ud800"))
    a\x1b[2Jb\nc \u202e \ud800
    >>> printable("first\r\nsecond\t\x07", lines=True)
    'first\nsecond\t\\x07'
    """
    if lines:
        parts = text.replace("\r\n", "\n").split("\n")
        return "\n".join("\t".join(map(printable, part.split("\t"))) for part in parts)
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    # Spaces of other widths are shown as what they are, although Python does not call them printable.
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode()


def one_line(text: str, limit: int = 2000) -> str:
    r"""Return the text as one printable line of at most ``limit`` characters, an ellipsis for what is left out.

    Examples
    --------
    >>> one_line("two\n  lines, of which much is left out", 16)
    'two lines, of w…'
    """
    # Much longer than what is kept: no text that somebody sends costs more time than that.
    line = printable(" ".join(text[: 16 * limit].split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"
