"""Reads the committed leaderboards from their records, for the scripts that fill pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import tsadbench
from tsadbench.api import number
from tsadbench.execution.record import RECORDS, read_records

ROOT = Path(__file__).parents[1]


@cache
def _frame(table: str) -> pd.DataFrame:
    return tsadbench.Leaderboard.from_records(read_records(ROOT / "leaderboards" / table / RECORDS)).frame


@cache
def rows(table: str) -> Mapping[str, Any]:
    """Return the rows of a table, ``skab/strict/overall`` for instance, by label, best first.

    They have the columns of `Leaderboard.frame` as attributes.
    """
    folder, _, split = table.rpartition("/")
    frame = _frame(folder)
    return {row.detector: row for row in frame[frame["split"] == split].itertuples()}


def text(row: Any, metric: str) -> str:
    """Return a row's mean and deviation in a metric, ``.7414(.0042)``."""
    mean, std = (number(getattr(row, f"{metric}_{what}")) for what in ("mean", "std"))
    return f"{mean}({std})".removesuffix("(-)")
