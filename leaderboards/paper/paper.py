"""The paper's tables: their values, and which of our rows reproduces which of theirs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from tsadbench.api import number

HERE = Path(__file__).parent
SEEDS = 5
PROTOCOL = "published"
# A line per cell: table (its key), method, split, metric, mean, std (none for a single run).
PRINTED = pd.read_csv(HERE / "paper_tables.csv")


class Table(NamedTuple):
    """One of the paper's tables; the one that is commented out in the paper's source has no number.

    ``methods`` has each row's name in the paper, empty for a row that is ours alone, and our label.
    """

    number: int | None
    key: str
    title: str
    methods: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Its number and title."""
        return self.title if self.number is None else f"Table {self.number}: {self.title}"

    @property
    def file(self) -> str:
        """Name of its files, without ending."""
        return self.key if self.number is None else f"table{self.number}_{self.key}"


TABLES = tuple(
    Table(table.get("number"), table["key"], table["title"], tuple(map(tuple, table["methods"])))
    for table in tomllib.loads((HERE / "paper_tables.toml").read_text(encoding="utf-8"))["table"]
)


def labels() -> list[str]:
    """Return the label of every row in the tables, each once."""
    return list(dict.fromkeys(label for table in TABLES for _, label in table.methods))


def mean_std(mean: float, std: float) -> str:
    """Return ``.7414(.0042)``; a single run has no deviation."""
    return f"{number(mean)}({number(std)})".removesuffix("(-)")
