"""The paper's tables: their figures, and which of our rows reproduces which of theirs."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tsadbench.leaderboard.ranking import Summary
from tsadbench.reporting.html.tables import ReferenceRows

SEEDS = 5
DATASET = "skab"
PROTOCOL = "published"


@dataclass(frozen=True, slots=True)
class Method:
    """A row of the paper's.

    Parameters
    ----------
    name
        What the paper calls it; empty for a row that is ours alone.
    label
        Our row.
    """

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Table:
    """One of the paper's tables.

    Parameters
    ----------
    number
        In the paper; None for the one that its source has commented out.
    key
        In ``paper_tables.csv``.
    title
        For readers.
    methods
        Its rows.
    """

    number: int | None
    key: str
    title: str
    methods: tuple[Method, ...]

    @property
    def file(self) -> str:
        """Name of the files that hold it."""
        return self.key if self.number is None else f"table{self.number}_{self.key}"

    def splits(self) -> tuple[str, ...]:
        """Return its splits, in order."""
        return tuple(dict.fromkeys(split for _, split, _ in published(self.key)))

    def metrics(self) -> tuple[str, ...]:
        """Return its metrics, in order."""
        return tuple(dict.fromkeys(metric for _, _, metric in published(self.key)))


TABLES: tuple[Table, ...] = (
    Table(
        2,
        "graph_comparison",
        "Graph-based detectors",
        (
            Method("GDN", "gdn"),
            Method("GDN", "gdn[quirks=on]"),
            Method("GReLeN", "grelen"),
            Method("MTAD-GAT", "mtad-gat"),
            Method("DPR-GM", "dprgm"),
        ),
    ),
    Table(
        3,
        "broader_comparison",
        "All kinds of detectors",
        (
            Method("T2+Q", "t2-q"),
            Method("T-squared", "t2"),
            Method("MSET", "mset"),
            Method("MSET", "mset[residual=raw]"),
            Method("ISF", "isolation-forest"),
            Method("Conv-AE", "conv-ae"),
            Method("Vanilla AE", "vanilla-ae"),
            Method("Vanilla LSTM", "vanilla-lstm"),
            Method("LSTM-AE", "lstm-ae"),
            Method("LSTM-VAE", "lstm-vae"),
            Method("MSCRED", "mscred"),
            Method("DPR-GM", "dprgm"),
        ),
    ),
    Table(
        4,
        "backbones",
        "DPR-GM's graph layers",
        (
            Method("GCN", "dprgm[backbone=gcn]"),
            Method("GAT", "dprgm[backbone=gat]"),
            Method("SAGE", "dprgm"),
            Method("GT", "dprgm[backbone=transformer]"),
        ),
    ),
    Table(
        5,
        "weights_ablation",
        "DPR-GM's weights",
        (
            Method("w/o Edge-W and Node-W", "dprgm[edge_weights=off,node_weights=off]"),
            Method("w/o Edge-W", "dprgm[edge_weights=off]"),
            Method("w/o Node-W", "dprgm[node_weights=off]"),
            Method("DPR-GM", "dprgm"),
        ),
    ),
    Table(
        None,
        "graph_source_ablation_20_runs",
        "Where DPR-GM's graph comes from (in the paper's source, commented out, 20 runs)",
        (
            Method("DPR-GM", "dprgm"),
            Method("No-graph", "dprgm[graph=none]"),
            Method("Corr-only", "dprgm[graph=correlation]"),
            Method("Domain-only", "dprgm[edge_weights=off,node_weights=off]"),
            Method("", "dprgm[graph=random]"),
            Method("", "dprgm[graph=complete]"),
        ),
    ),
)


def labels() -> tuple[str, ...]:
    """Return every row that the tables need, each once."""
    return tuple(dict.fromkeys(method.label for table in TABLES for method in table.methods))


@cache
def published(table: str) -> Mapping[tuple[str, str, str], Summary]:
    """Return the paper's mean and standard deviation by method, split and metric; one run has no deviation.

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
    """Return the cells that several tables of the paper's show with different values.

    Returns
    -------
    list
        Of (metric on DPR-GM's overall row, the tables with their means), where the means differ.
    """
    found: dict[str, list[tuple[Table, float]]] = {}
    for table in TABLES:
        for method in table.methods:
            if method.label != "dprgm":
                continue
            for metric in table.metrics():
                value = published(table.key).get((method.name, "overall", metric))
                if value is not None and value.mean is not None:
                    found.setdefault(metric, []).append((table, value.mean))
    return [(metric, cells) for metric, cells in found.items() if len({mean for _, mean in cells}) > 1]
