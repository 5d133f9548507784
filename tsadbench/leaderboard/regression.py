"""Holds a run against a committed leaderboard: which cells have left their tolerance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.records_file import RECORDS, read_records
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.ranking import Row
from tsadbench.utils.markdown import table_lines

# Of a deterministic detector: another processor's linear algebra may swap two rows of nearly equal score.
EXACT = 1e-6
# Of a stochastic one: three standard errors of the difference of two means, and a little for a spread of nearly 0.
SPREADS, SLACK = 3.0, 1e-3
# What a trial of the quick set may have cost when the baseline was made, in CPU seconds.
QUICK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """The trials behind one committed table of tables: a data set under a protocol.

    Parameters
    ----------
    dataset, protocol
        Names; the protocol's with its parameters.
    records
        One a trial.
    """

    dataset: str
    protocol: str
    records: tuple[Record, ...]

    def quick(self) -> Baseline:
        """Return the baseline of those detectors whose trials are cheap."""
        seconds: dict[str, list[float]] = {}
        for record in self.records:
            parts = (record.fit_cpu_seconds or record.fit_seconds, record.score_cpu_seconds or record.score_seconds)
            seconds.setdefault(record.label, []).append(sum(part or 0.0 for part in parts))
        cheap = {label for label, found in seconds.items() if statistics.mean(found) <= QUICK_SECONDS}
        return Baseline(self.dataset, self.protocol, tuple(one for one in self.records if one.label in cheap))

    @property
    def seeds(self) -> int:
        """How many seeds its stochastic detectors ran with."""
        return max((record.seed + 1 for record in self.records), default=1)


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a table, held against the baseline's.

    Parameters
    ----------
    dataset, protocol, split, label, metric
        Where it stands.
    baseline, found
        Means over seeds; None where undefined.
    tolerance
        How far they may lie apart.
    """

    dataset: str
    protocol: str
    split: str
    label: str
    metric: str
    baseline: float | None
    found: float | None
    tolerance: float

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """Data set, protocol, split, label and metric."""
        return self.dataset, self.protocol, self.split, self.label, self.metric

    @property
    def holds(self) -> bool:
        """Whether it is within its tolerance; undefined equals undefined only."""
        if self.baseline is None or self.found is None:
            return self.baseline is self.found
        return abs(self.found - self.baseline) <= self.tolerance


def read_baselines(folder: Path) -> tuple[Baseline, ...]:
    """Return every baseline below a folder that `tsadbench run --write` or `leaderboard --write` has written.

    Raises
    ------
    UsageError
        If there is none.
    StoreError
        If a line is no record.
    """
    found = []
    for file in sorted(folder.glob(f"*/*/{RECORDS}")):
        by_table: dict[tuple[str, str], list[Record]] = {}
        for record in read_records(file):
            by_table.setdefault((record.dataset, record.protocol), []).append(record)
        found += [Baseline(dataset, protocol, tuple(of)) for (dataset, protocol), of in by_table.items()]
    if not found:
        raise UsageError(
            f"--baseline {folder}: expected a folder with <data set>/<protocol>/{RECORDS} in it, as "
            f"`tsadbench run --write {folder}` writes it; found none"
        )
    return tuple(found)


def compare(baseline: Baseline, records: Iterable[Record]) -> tuple[Cell, ...]:
    """Return every cell of the baseline's tables beside what was found.

    A trial that failed where the baseline's did not has no metrics, so that its cells do not hold.

    Parameters
    ----------
    baseline
        The baseline.
    records
        The same detectors' trials, made now; of stochastic ones as many seeds as one likes.
    """
    here = {(row.split, row.label): row for row in Leaderboard.from_records(records).rows}
    there = Leaderboard.from_records(baseline.records).rows
    return tuple(cell for row in there for cell in _cells(row, here.get((row.split, row.label))))


def _cells(row: Row, found: Row | None) -> Iterator[Cell]:
    for metric, summary in row.metrics.items():
        mean = found.metrics[metric].mean if found is not None and metric in found.metrics else None
        n_found = len(found.seeds) if found is not None else 1
        tolerance = EXACT
        if summary.std is not None:
            tolerance = SPREADS * summary.std * math.sqrt(1 / len(row.seeds) + 1 / n_found) + SLACK
        yield Cell(row.dataset, row.protocol, row.split, row.label, metric, summary.mean, mean, tolerance)


def to_markdown(cells: Sequence[Cell]) -> str:
    """Return a summary: what holds and, cell by cell, what does not."""
    broken = [cell for cell in cells if not cell.holds]
    tables = dict.fromkeys((cell.dataset, cell.protocol) for cell in cells)
    counts = []
    for dataset, protocol in tables:
        of_table = [cell for cell in cells if (cell.dataset, cell.protocol) == (dataset, protocol)]
        rows = len({(cell.split, cell.label) for cell in of_table})
        left = sum(not cell.holds for cell in of_table)
        counts.append([dataset, protocol, str(rows), str(len(of_table)), str(left)])
    header = ["data set", "protocol", "rows", "cells", "left their tolerance"]
    lines = ["# Regression check", "", *table_lines(header, counts)]
    if broken:
        header = ["data set", "protocol", "split", "detector", "metric", "baseline", "found", "tolerance"]
        cells_left = [
            (*cell.place, _number(cell.baseline), _number(cell.found), f"{cell.tolerance:.2g}") for cell in broken
        ]
        lines += ["", *table_lines(header, cells_left)]
    return "\n".join(lines) + "\n"


def to_junit(cells: Sequence[Cell]) -> str:
    """Return JUnit XML: a test suite a table, a test case a row, a failure where cells of it do not hold."""
    top = ElementTree.Element("testsuites", name="tsadbench regress")
    suites: dict[str, dict[str, list[Cell]]] = {}
    for cell in cells:
        suites.setdefault(f"{cell.dataset}.{cell.protocol}", {}).setdefault(f"{cell.split}: {cell.label}", []).append(
            cell
        )
    for suite, cases in suites.items():
        failing = sum(any(not cell.holds for cell in row) for row in cases.values())
        attributes = {"name": suite, "tests": str(len(cases)), "failures": str(failing)}
        element = ElementTree.SubElement(top, "testsuite", attributes)
        for name, row in cases.items():
            case = ElementTree.SubElement(element, "testcase", classname=suite, name=name)
            broken = [cell for cell in row if not cell.holds]
            if broken:
                text = "\n".join(
                    f"{cell.metric}: baseline {_number(cell.baseline)}, found {_number(cell.found)}, "
                    f"tolerance {cell.tolerance:.2g}"
                    for cell in broken
                )
                failure = ElementTree.SubElement(case, "failure", message=f"{len(broken)} cells left their tolerance")
                failure.text = text
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.7f}"
