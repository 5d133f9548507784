"""Compares a table in a CSV or Markdown file with the trials of a store, at the precision the file prints."""

import io
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from tsadbench.errors import UsageError
from tsadbench.leaderboard.board import Leaderboard

_ROW = ["table", "detector", "copy"]
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def check_table(file: Path, board: Leaderboard) -> tuple[list[str], int]:
    """Return how a table that `Leaderboard` wrote differs from a store's rows, and the number of cells compared.

    A CSV of one table does not name it: the file is ``<data set>/<protocol>/<split>.csv``, or ``<split>.csv`` if the
    store has one table of this split. A UsageError: the file cannot be read, or the store has none of its tables.
    """
    try:
        found = _cells(file.read_text(encoding="utf-8"), file.suffix)
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"--table {file}: expected a CSV or Markdown table: {error}") from error
    tables = found.index.unique("table")
    if not any(tables):
        of_split = [one for (*_, split), one in board.alone().items() if split == file.stem]
        here = [one for one in of_split if [*one.frame[["dataset", "protocol"]].iloc[0]] == [*file.parts[-3:-1]]]
        board = (here or of_split or [board])[0] if len(here or of_split) < 2 else board
    right = _cells(board.to_csv() if file.suffix == ".csv" else board.to_markdown(), file.suffix)
    right = right[right.index.get_level_values("table").isin(tables)]
    if right.empty:
        raise UsageError(f"--table {file}: the store has no such table; name a CSV after its split, as overall.csv")
    both = pd.concat([found, right], axis=1, keys=["table", "store"])
    rows, columns = (both.isna().groupby(level=level).all() for level in (_ROW, "column"))
    faults = [f"row {row[1]}: the {side} has none" for side in rows for row in rows.index[rows[side]]]
    faults += [f"column {name}: the store has none" for name in columns.index[columns["store"]]]
    for (_, row, _, column), printed, expected in both.dropna().itertuples():
        one, other = (list(map(Decimal, _NUMBER.findall(text))) for text in (printed, expected))
        # Half a unit of the last digit that the file prints.
        close = (abs(a - b) <= Decimal(5).scaleb(int(a.as_tuple().exponent) - 1) for a, b in zip(one, other))  # noqa: B905
        if _NUMBER.sub("#", printed) != _NUMBER.sub("#", expected) or not all(close):
            faults.append(f"row {row}, {column}: {printed!r} in the table, {expected!r} by the store")
    return faults, len(both.dropna())


def _cells(text: str, form: str) -> Any:
    """Return the cells of a file, indexed by table, detector, how often that row came before, and column."""
    options: dict[str, Any] = {"dtype": str, "keep_default_na": False}
    if form == ".csv":
        frame = pd.read_csv(io.StringIO(text), **options)
        keys = [name for name in ("dataset", "protocol", "split") if name in frame]
        frame = frame.assign(table=[", ".join(key) for key in frame[keys].to_numpy()]).drop(columns=keys)
    else:
        options |= {"sep": r"\s*(?<!\\)\|\s*", "engine": "python", "quoting": 3}
        _, *parts = re.split(r"^### (.*)\n", text, flags=re.MULTILINE)
        lines = (io.StringIO("\n".join(re.findall(r"^\|.*", part, re.MULTILINE))) for part in parts[1::2])
        read = zip(parts[::2], lines, strict=True)
        frame = pd.concat([pd.read_csv(one, **options).iloc[1:, 1:-1].assign(table=title) for title, one in read])
    frame["copy"] = frame.groupby(["table", "detector"]).cumcount()
    return frame.set_index(_ROW).rename_axis(columns="column").stack().dropna()
