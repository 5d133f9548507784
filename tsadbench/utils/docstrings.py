"""Sections and definition lists of numpydoc docstrings."""

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
