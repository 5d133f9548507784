"""The tables of a card that make rows regular: long format and resampling."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import field_validator

from tsadbench.datasets.cards.sections import CardTable, Texts

_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})", re.ASCII)


class Long(CardTable):
    """The columns of files whose rows each hold one value of one sensor: a sample, or a change of the value.

    Parameters
    ----------
    time
        Name of the column with the times, or of several whose texts make up a time.
    name
        Name of the column with the sensor's name.
    value
        Name of the column with its value.
    """

    time: str | Texts
    name: str
    value: str


class Resample(CardTable):
    """The regular grid that the rows of a file are laid on. It begins at the file's first time.

    Parameters
    ----------
    every
        From row to row: a number with one of the units ms, s, min, h and d, as in "10s".
    by
        What stands for the values from one row of the grid up to the next: their "median", their "mean", or the "last"
        of them, which holds until there is another. A row is anomalous if any of those that it stands for is.
    """

    every: str
    by: Literal["median", "mean", "last"] = "median"

    @field_validator("every")
    @classmethod
    def _lasts(cls, every: str) -> str:
        if _seconds(every) == 0.0:
            raise ValueError(
                f"expected a number above 0 and a unit ({', '.join(_UNITS)}), as in '10s', found {every!r}"
            )
        return every

    @property
    def seconds(self) -> float:
        """Seconds from row to row."""
        return _seconds(self.every)


def _seconds(duration: str) -> float:
    """Return the seconds of a duration; 0 for a text that is none."""
    found = _DURATION.fullmatch(duration.strip())
    return 0.0 if found is None else float(found[1]) * _UNITS[found[2]]
