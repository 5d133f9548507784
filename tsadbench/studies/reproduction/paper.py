"""The paper's tables: their values, and which of our rows reproduces which of theirs."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from tsadbench.execution.request import RunRequest
from tsadbench.leaderboard.ranking import Summary
from tsadbench.reporting.html.tables import ReferenceRows

SEEDS = 5
DATASET = "skab"
PROTOCOL = "published"


@dataclass(frozen=True, slots=True)
class Method:
    """A row of one of the paper's tables.

    Parameters
    ----------
    name
        Its name in the paper; empty for a row that is ours alone.
    label
        Label of our row.
    """

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Table:
    """One of the paper's tables.

    Parameters
    ----------
    number
        Its number in the paper; None for the table that is commented out in the paper's source.
    key
        Its name in ``paper_tables.csv``.
    title
        Its title on our page.
    methods
        Its rows.
    """

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


def _tables() -> tuple[Table, ...]:
    content = tomllib.loads((files(__package__) / "paper_tables.toml").read_text(encoding="utf-8"))
    return tuple(
        Table(table.get("number"), table["key"], table["title"], tuple(Method(*names) for names in table["methods"]))
        for table in content["table"]
    )


TABLES = _tables()


def labels() -> tuple[str, ...]:
    """Return the label of every row in the tables, each once."""
    return tuple(dict.fromkeys(method.label for table in TABLES for method in table.methods))


def paper_request(*, jobs: int = 1, data: Path | None = None, require_seal: bool = False) -> RunRequest:
    """Return the request for all rows in the tables, under the paper's protocol.

    Parameters
    ----------
    jobs
        Number of trials to run at a time.
    data
        Folder that contains the data sets' folders.
    require_seal
        As in a `RunRequest`.
    """
    return RunRequest(
        detectors=list(labels()),
        protocols=[PROTOCOL],
        seeds=SEEDS,
        jobs=jobs,
        require_seal=require_seal,
        data=data,
        contributions=False,
    )


@cache
def published(table: str) -> Mapping[tuple[str, str, str], Summary]:
    """Return the paper's mean and standard deviation by method, split and metric; a single run has no deviation.

    Parameters
    ----------
    table
        Key of the table.
    """
    text = (files(__package__) / "paper_tables.csv").read_text(encoding="utf-8")
    return {
        (line["method"], line["split"], line["metric"]): Summary(
            float(line["mean"]), float(line["std"]) if line["std"] else None
        )
        for line in csv.DictReader(text.splitlines())
        if line["table"] == table
    }


def reference_rows() -> ReferenceRows:
    """Return the paper's values for the rows that reproduce them, as a report shows them.

    If its tables contradict each other, the first one's value counts.
    """
    values: dict[tuple[str, str, str, str], dict[str, Summary]] = {}
    for table in reversed(TABLES):
        for method in table.methods:
            for (name, split, metric), summary in published(table.key).items():
                if name == method.name:
                    values.setdefault((DATASET, PROTOCOL, split, method.label), {})[metric] = summary
    return ReferenceRows("paper", "the tables of the paper that proposes DPR-GM", values)


def contradictions() -> list[tuple[str, list[tuple[Table, float]]]]:
    """Return the cells that have different values in several of the paper's tables.

    Returns
    -------
    list
        Of (metric of DPR-GM's overall row, the tables with their means), if the means differ.
    """
    cells: dict[str, list[tuple[Table, float]]] = {}
    for table in TABLES:
        for method in table.methods:
            if method.label != "dprgm":
                continue
            for metric in table.metrics():
                value = published(table.key).get((method.name, "overall", metric))
                if value is not None and value.mean is not None:
                    cells.setdefault(metric, []).append((table, value.mean))
    return [(metric, means) for metric, means in cells.items() if len({mean for _, mean in means}) > 1]
