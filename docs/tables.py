"""The committed leaderboards, as the scripts that fill pages read them: from the records alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import tsadbench
from tsadbench.api import Row

ROOT = Path(__file__).parents[1]


@cache
def _boards(table: str) -> Mapping[str, Mapping[str, Row]]:
    file = ROOT / "leaderboards" / table / "records.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else ()
    splits: dict[str, dict[str, Row]] = {}
    for row in tsadbench.Leaderboard.from_records(tsadbench.Record.from_json(line, str(file)) for line in lines).rows:
        splits.setdefault(row.split, {})[row.label] = row
    return splits


def rows(table: str) -> Mapping[str, Row]:
    """Return the rows of a table, ``skab/strict/overall`` for instance, by label, best first; none if it is missing."""
    folder, _, split = table.rpartition("/")
    return _boards(folder).get(split, {})
