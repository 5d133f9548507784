"""What is wrong with rows that come bit by bit: the rows before it can still be answered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flaw:
    """The first row, of those handed in, that is not as it must be.

    Parameters
    ----------
    row
        Its place among them.
    text
        What was expected, what was found, what to do.
    """

    row: int
    text: str
