"""Docstrings in numpydoc's format, taken apart: sections, definition lists, the year of a reference."""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import cleandoc
from textwrap import dedent

_HEADING = re.compile(r"^(\S[^\n]*)\n-{3,}$", re.M)
# Not the beginning of an arXiv number, 2009.02040.
_YEAR = re.compile(r"(?<![\d.])(?:19|20)\d\d(?!\d|\.\d)")


def sections(docstring: str) -> dict[str, str]:
    r"""Return the sections of a docstring by their headings, "" for what stands before the first.

    Examples
    --------
    >>> sections("A sum.\n\nNotes\n-----\nNone.\n\nReferences\n----------\nEuclid.")
    {'': 'A sum.', 'Notes': 'None.', 'References': 'Euclid.'}
    """
    first, *rest = _HEADING.split(cleandoc(docstring))
    return {"": first.strip(), **{name: text.strip() for name, text in zip(rest[::2], rest[1::2], strict=True)}}


def definitions(section: str) -> dict[str, str]:
    r"""Return the definitions of a definition list by their terms: what is indented below each line that is not.

    Examples
    --------
    >>> definitions("first\n    One,\n    two.\nsecond, third\n    Three.")
    {'first': 'One,\ntwo.', 'second, third': 'Three.'}
    """
    found: dict[str, list[str]] = {}
    term = ""
    for line in section.splitlines():
        if line and not line[0].isspace():
            term = line.strip()
            found.setdefault(term, [])
        elif term:
            found[term].append(line)
    return {term: dedent("\n".join(lines)).strip() for term, lines in found.items()}


def method_notes(docstring: str) -> Mapping[str, str]:
    """Return what the section "Notes" of a detector's docstring says, by term: Equations, Differences, Defaults."""
    return definitions(sections(docstring).get("Notes", ""))


def year_of(paper: str, docstring: str = "") -> str:
    """Return the year of a publication, or an empty text.

    Parameters
    ----------
    paper
        As `Traits.paper` has it; its last year counts.
    docstring
        If ``paper`` names none: the first year in this docstring's section "References", if that names the first word
        of ``paper``. The references of a method that was never published are those of what it builds on.

    Examples
    --------
    >>> year_of("Deng and Hooi, AAAI 2021 (arXiv 2106.06947)"), year_of("Hotelling")
    ('2021', '')
    """
    years = _YEAR.findall(paper)[-1:]
    references = sections(docstring).get("References", "")
    author = re.match(r"\w*", paper)
    if not years and author and author[0] in references:
        years = _YEAR.findall(references)[:1]
    return "".join(years)


def cited(paper: str, docstring: str = "") -> str:
    r"""Return a publication with its year; parameters as for `year_of`.

    Examples
    --------
    >>> cited("Deng and Hooi, AAAI 2021"), cited("Malhotra", "References\n----------\nMalhotra, LSTM, 2016.")
    ('Deng and Hooi, AAAI 2021', 'Malhotra, 2016')
    """
    year = year_of(paper, docstring)
    return paper if year in paper or not paper else f"{paper}, {year}"
