"""Compares a table in a CSV or Markdown file with the trials of a store, at the precision the file prints."""

import io
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from tsadbench.errors import UsageError
from tsadbench.leaderboard.board import Leaderboard

_TABLE = ["dataset", "protocol", "split"]
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
        alone = {"/".join(one.frame[_TABLE].iloc[0]): one for one in board.alone().values()}
        places = "/".join([*file.parts[-3:-1], file.stem]), f"/{file.stem}"
        named = [[one for name, one in alone.items() if name.endswith(place)] for place in places]
        board = next((of_place[0] for of_place in named if len(of_place) == 1), board)
...
