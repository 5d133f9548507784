"""Advice on files with new rows. Their readers advise changes to a card, and `tsadbench score` has options instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tsadbench.errors import DataError

# What the readers advise who has a card to change, and what `tsadbench score` offers in its place.
ADVICE = (
    ("; set separator", "; give it with --separator"),
    ("another decimal mark? then set decimal", "another decimal mark? then give it with --decimal"),
    ("; correct it, or set time_format", "; correct it, or give its format with --time-format"),
    ("; set encoding (often cp1252), or convert the file", "; convert the file"),
    ("; set header_line, or correct the names", "; correct the names"),
    ('fill it in, put the column under ignore, or set missing.policy = "forward-fill"', "fill it in"),
    ("declare it under [states], ", ""),
    ("correct the cell, name it in missing.values, or put the column under ignore", "correct the cell"),
    (" (missing.at_most); cut the recording there", "; fill them in, or cut the file there"),
    ("it has no value at all; put the column under ignore", "it has no value at all; the model needs some"),
    ("resample.every is ", "the model's grid is "),
    ("resample.every = ", "the model's grid of "),
    ("; correct it, or set every to more", "; correct it"),
)


def of_new_files(fault: str) -> str:
    """Return a fault of a file with the advice that helps where there is no card to change.

    Examples
    --------
    >>> of_new_files("x.csv: expected columns separated by ',', but ';' seems to be used; set separator")
    "x.csv: expected columns separated by ',', but ';' seems to be used; give it with --separator"
    """
    for of_card, of_score in ADVICE:
        fault = fault.replace(of_card, of_score)
    return re.sub(r"; set every to \S+ s or more", "", fault)


@contextmanager
def hints_of_new_files() -> Iterator[None]:
    """Raise a DataError from inside the block with the advice of `of_new_files`."""
    try:
        yield
    except DataError as error:
        raise DataError(of_new_files(str(error))) from error
