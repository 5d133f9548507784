"""Sections and definition lists of numpydoc docstrings, and the year of a paper."""

from __future__ import annotations

import re
from inspect import cleandoc
from textwrap import dedent


def sections(docstring: str) -> dict[str, str]:
    r"""Return the sections of a docstring by heading, "" for the text before the first.

    >>> sections("A sum.\n\nNotes\n-----\nNone.\n\nReferences\n----------\nEuclid.")
    {'': 'A sum.', 'Notes': 'None.', 'References': 'Euclid.'}
    """
    first, *rest = re.split(r"^(\S[^\n]*)\n-{3,}$", cleandoc(docstring), flags=re.M)
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


def year_of(paper: str) -> str:
    """Return the last year in `Traits.paper`, or the year of its arXiv number; "" if there is none.

    >>> year_of("Deng and Hooi, AAAI 2021 (arXiv 2106.06947)"), year_of("Malhotra, arXiv 1607.00148"), year_of("Euclid")
    ('2021', '2016', '')
    """
    years = re.findall(r"(?<![\d.])(?:19|20)\d\d(?!\d|\.\d)", paper)
    return "".join((years or [f"20{number}" for number in re.findall(r"arXiv (\d\d)\d\d\.", paper)])[-1:])
