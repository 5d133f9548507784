"""A page for each data set and each protocol, and the lists of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tsadbench.analysis.audit.findings import summary
from tsadbench.leaderboard.cells import metrics_of
from tsadbench.leaderboard.ranking import UNDEFINED
from tsadbench.reporting.site.facts import DatasetFacts, dataset_facts, protocol_facts
from tsadbench.reporting.site.render import Pages
from tsadbench.reporting.site.source import Table, recordings
from tsadbench.utils.grouping import grouped

_DATASETS = "datasets/index.html"
_PROTOCOLS = "protocols/index.html"


def dataset_files(pages: Pages, tables: Sequence[Table], addresses: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each data set's page, and of their list."""
    entries = []
    for name, of_dataset in grouped(tables, lambda table: table.first.dataset).items():
        facts = dataset_facts(name)
        contents = _contents(of_dataset)
        faults = summary(facts.findings) if facts.findings else "not audited"
        entries.append(
            (addresses[name], name, (facts.licence or "-", dict(contents).get("Evaluated rows", "-"), faults))
        )
        yield (
            addresses[name],
            pages.page(
                "dataset",
                addresses[name],
                name,
                kind="dataset",
                name=name,
                lead=_suites(facts),
                facts=facts,
                faults=faults,
                contents=contents,
                floors=[_floors(table) for table in of_dataset],
            ),
        )
    heads = ("Data set", "Licence", "Evaluated rows", "Faults that its audit found")
    yield _DATASETS, pages.page("list", _DATASETS, "Data sets", groups=[("", entries)], heads=heads)


def _suites(facts: DatasetFacts) -> str:
    return f"In suite {' and '.join(facts.suites)}." if facts.suites else "In no suite."


def _contents(tables: Sequence[Table]) -> list[tuple[str, str]]:
    """Return what the committed records say of a data set's size."""
    found = []
    first = next((row for table in tables for row in table.main if row.ok), None)
    if first is not None and first.n_rows is not None and first.n_anomalous is not None:
        share = first.n_anomalous / first.n_rows if first.n_rows else 0.0
        found.append(("Evaluated rows", f"{first.n_rows:,}, {share:.1%} anomalous ({first.rules})"))
        found.append(("Version", str(first.first.dataset_version)))
        if first.entities:
            found.append(("Entities", f"{len(first.entities)}, one model each"))
    n_recordings = max((len(recordings(table.values)) for table in tables if table.values is not None), default=0)
    if n_recordings:
        found.append(("Test recordings", str(n_recordings)))
    splits = dict.fromkeys(split for table in tables for (*_, split) in table.board.tables())
    return [*found, ("Splits", ", ".join(splits))]


def _floors(table: Table) -> tuple[str, list[str], list[tuple[str, list[float | None]]]]:
    metrics = [metric for metric in metrics_of(table.main) if metric.better is not None]
    rows = [row for row in table.main if row.floor and row.ok]
    return (
        table.first.rules,
        [metric.title for metric in metrics],
        [(row.label, [row.metrics.get(metric.name, UNDEFINED).mean for metric in metrics]) for row in rows],
    )


def protocol_files(pages: Pages, tables: Sequence[Table], addresses: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each protocol's page, and of their list."""
    entries = []
    for name, under in grouped(tables, lambda table: table.first.protocol).items():
        facts = protocol_facts(name.partition("[")[0])
        used = ", ".join(dict.fromkeys(table.first.dataset for table in under))
        entries.append((addresses[name], name, (facts.summary or "-", used)))
        yield (
            addresses[name],
            pages.page(
                "protocol",
                addresses[name],
                f"Protocol {name}",
                kind="protocol",
                name=name,
                facts=facts,
                lead=f"On {used}.",
            ),
        )
    heads = ("Protocol", "Rules", "Data sets")
    yield _PROTOCOLS, pages.page("list", _PROTOCOLS, "Protocols", groups=[("", entries)], heads=heads)
