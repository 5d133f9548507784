"""The paper's tables: their values, and which of our rows reproduces which of theirs."""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tsadbench.api import number

HERE = Path(__file__).parent
SEEDS = 5
PROTOCOL = "published"


class Summary(NamedTuple):
    """Mean and standard deviation over seeds; None if undefined; ``std`` also for one seed."""

    mean: float | None
    std: float | None

    def text(self) -> str:
        """Return ``.7414(.0042)``."""
        return f"{number(self.mean)}({number(self.std)})".removesuffix("(-)")


def summary_of(row: Any, metric: str) -> Summary:
    """Return a row's mean and deviation in a metric."""
    values = (getattr(row, f"{metric}_{what}", math.nan) for what in ("mean", "std"))
    return Summary(*(None if math.isnan(value) else value for value in values))


class Method(NamedTuple):
    """A row of one of the paper's tables: its name there, empty for a row that is ours alone, and our label."""

    name: str
    label: str


class Table(NamedTuple):
    """One of the paper's tables; the one that is commented out in the paper's source has no number."""

    number: int | None
    key: str
    title: str
    methods: tuple[Method, ...]

    @property
    def file(self) -> str:
        """Name of its files, without ending."""
        return self.key if self.number is None else f"table{self.number}_{self.key}"

    def splits(self) -> tuple[str, ...]:
        """Return its splits, in order."""
        return tuple(dict.fromkeys(split for _, split, _ in published(self.key)))

    def metrics(self) -> tuple[str, ...]:
        """Return its metrics, in order."""
        return tuple(dict.fromkeys(metric for _, _, metric in published(self.key)))


TABLES = tuple(
    Table(table.get("number"), table["key"], table["title"], tuple(Method(*names) for names in table["methods"]))
    for table in tomllib.loads((HERE / "paper_tables.toml").read_text(encoding="utf-8"))["table"]
)


def labels() -> list[str]:
    """Return the label of every row in the tables, each once."""
    return list(dict.fromkeys(method.label for table in TABLES for method in table.methods))


@cache
def published(table: str) -> Mapping[tuple[str, str, str], Summary]:
    """Return the mean and deviation by method, split and metric of a table; a single run has no deviation."""
    with (HERE / "paper_tables.csv").open(encoding="utf-8") as file:
        return {
            (line["method"], line["split"], line["metric"]): Summary(
                float(line["mean"]), float(line["std"]) if line["std"] else None
            )
            for line in csv.DictReader(file)
            if line["table"] == table
        }


def contradictions() -> list[tuple[str, list[tuple[Table, float]]]]:
    """Return the metrics of DPR-GM's overall row that differ from table to table, with the tables' means."""
    cells: dict[str, list[tuple[Table, float]]] = {}
    for table in TABLES:
        for method in table.methods:
            for metric in table.metrics() if method.label == "dprgm" else ():
                value = published(table.key).get((method.name, "overall", metric))
                if value is not None and value.mean is not None:
                    cells.setdefault(metric, []).append((table, value.mean))
    return [(metric, means) for metric, means in cells.items() if len({mean for _, mean in means}) > 1]
