"""Sections, definition lists and the year of a reference in numpydoc docstrings."""

from __future__ import annotations

import re
from inspect import cleandoc
from textwrap import dedent

_HEADING = re.compile(r"^(\S[^\n]*)\n-{3,}$", re.M)
# Not the beginning of an arXiv number, 2009.02040.
_YEAR = re.compile(r"(?<![\d.])(?:19|20)\d\d(?!\d|\.\d)")


def sections(docstring: str) -> dict[str, str]:
    r"""Return the sections of a docstring by their headings, "" for what stands before the first.

    >>> sections("A sum.\n\nNotes\n-----\nNone.\n\nReferences\n----------\nEuclid.")
    {'': 'A sum.', 'Notes': 'None.', 'References': 'Euclid.'}
    """
    first, *rest = _HEADING.split(cleandoc(docstring))
    return {"": first.strip(), **{name: text.strip() for name, text in zip(rest[::2], rest[1::2], strict=True)}}


def definitions(section: str) -> dict[str, str]:
    r"""Return the definitions of a definition list by their terms: the indented lines below each term.

    >>> definitions("first\n    One,\n    two.\nsecond, third\n    Three.")
    {'first': 'One,\ntwo.', 'second, third': 'Three.'}
    """
    _, *rest = re.split(r"^(\S.*)$", section, flags=re.M)
    return {term.strip(): dedent(text).strip() for term, text in zip(rest[::2], rest[1::2], strict=True)}


def method_notes(docstring: str) -> dict[str, str]:
    """Return a detector's section "Notes" by term: Equations, Differences, Defaults."""
    return definitions(sections(docstring).get("Notes", ""))


def year_of(paper: str, docstring: str = "") -> str:
    """Return the last year in `Traits.paper`, or else the first in the docstring's "References"; "" if there is none.

    The references count only if they name the paper's first author: an unpublished method lists what it builds on.

    >>> year_of("Deng and Hooi, AAAI 2021 (arXiv 2106.06947)"), year_of("Hotelling")
    ('2021', '')
    """
    years = _YEAR.findall(paper)[-1:]
    references = sections(docstring).get("References", "")
    author = paper.split(maxsplit=1)[:1]
    if not years and author and author[0].strip(",.") in references:
        years = _YEAR.findall(references)[:1]
    return "".join(years)


def cited(paper: str, docstring: str = "") -> str:
    r"""Return a publication with its year, found as `year_of` does.

    >>> cited("Deng and Hooi, AAAI 2021"), cited("Malhotra", "References\n----------\nMalhotra, LSTM, 2016.")
    ('Deng and Hooi, AAAI 2021', 'Malhotra, 2016')
    """
    year = year_of(paper, docstring)
    return paper if year in paper or not paper else f"{paper}, {year}"
