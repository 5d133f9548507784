"""Looks at everything, in the order in which it is told."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from tsadbench.cli.doctor import data, machine, packages, plugins
from tsadbench.cli.doctor.finding import Finding, redacted

SCHEMA = 1


def examine(
    *, directory: Path | None = None, runs: Path | None = None, cluster: str | None = None
) -> Iterator[Finding]:
    """Give every finding as soon as it is made; keys and tokens are left out.

    Parameters
    ----------
    directory
        Folder that holds the data sets' folders; None searches as every command does.
    runs
        A run store to look at as well.
    cluster
        Address of a Dask cluster to look at as well.
    """
    for finding in _all(directory, runs, cluster):
        yield redacted(finding)


def to_json(findings: Sequence[Finding]) -> str:
    """Return ``{"schema": 1, "ok": whether nothing is broken, "findings": [...]}``."""
    ok = all(one.state != "broken" for one in findings)
    content = {"schema": SCHEMA, "ok": ok, "findings": [dataclasses.asdict(one) for one in findings]}
    return json.dumps(content, indent=1) + "\n"


def _all(directory: Path | None, runs: Path | None, cluster: str | None) -> Iterator[Finding]:
    yield from packages.packages()
    yield from packages.extras()
    yield from plugins.plugins()
    yield from machine.machine()
    yield from machine.devices()
    yield from data.datasets(directory)
    yield from data.cache()
    yield from machine.tools()
    if runs is not None:
        yield from data.store(runs)
    if cluster is not None:
        yield from data.cluster(cluster)
