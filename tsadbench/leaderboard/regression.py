"""Compares a run with a committed leaderboard: which cells left their tolerance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from tsadbench.errors import UsageError
from tsadbench.execution.record import RECORDS, Record, read_records
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.formatting import plain, plain_table
from tsadbench.leaderboard.ranking import UNDEFINED, Row, Summary, by_label
from tsadbench.leaderboard.throughput import cost_of
from tsadbench.utils.grouping import grouped
from tsadbench.utils.text import printable

# Of a deterministic detector: another processor's linear algebra may swap rows of nearly equal score. An order that an
# information criterion chose moved by 1.4e-6 (arima on SKAB), switches whose rows repeat by 1e-5 (t2 on causrca).
EXACT = 1e-5
# Of a stochastic one: three standard errors of the difference of two means, and a little for a spread of nearly 0.
SPREADS, SLACK = 3.0, 1e-3
# Of one that does not forget: multiview[adaptive=on] moved by .0014 between two processors.
UNFORGOTTEN = 5e-3
# What a trial of the quick set may have cost when the baseline was made, in CPU seconds. Few networks are so cheap, and
# their last bits depend on the processor.
QUICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Baseline:
    """The trials behind the committed tables of a data set under a protocol.

    Parameters
    ----------
    dataset, protocol
        Names; the protocol's with its parameters.
    records
        One per trial, all judged by one version of the protocol.
    """

    dataset: str
    protocol: str
    records: tuple[Record, ...]

    def quick(self) -> Baseline:
        """Return the baseline of those detectors whose trials are cheap."""
        trials = by_label(self.records)
        cheap = {
            label
            for label in trials
            if statistics.mean(sum(cost_of(record)) for record in trials[label]) <= QUICK_SECONDS
        }
        return replace(self, records=tuple(record for record in self.records if record.label in cheap))


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a table, beside the baseline's.

    Parameters
    ----------
    dataset, protocol, split, label, metric
        Which number it is.
    baseline, found
        Means over seeds; None if undefined.
    tolerance
        How far apart they may lie.
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
    def row(self) -> tuple[str, str, str, str]:
        """Data set, protocol, split and label."""
        return self.dataset, self.protocol, self.split, self.label

    @property
    def holds(self) -> bool:
        """Whether it is within its tolerance; undefined equals only undefined."""
        if self.baseline is None or self.found is None:
            return self.baseline is self.found
        return abs(self.found - self.baseline) <= self.tolerance


def read_baselines(folder: Path) -> tuple[Baseline, ...]:
    """Return every baseline below a folder that `tsadbench run --write` or `leaderboard --write` has written.

    A UsageError if no table is found. A StoreError if a line is not a record.
    """
    baselines = tuple(
        Baseline(records[0].dataset, records[0].protocol, records)
        for file in sorted(folder.glob(f"*/*/{RECORDS}"))
        for records in grouped(read_records(file), lambda record: (record.dataset, record.rules)).values()
    )
    if not baselines:
        raise UsageError(
            f"--baseline {folder}: expected a folder with <data set>/<protocol>/{RECORDS} in it, as "
            f"`tsadbench run --write {folder}` writes it; found none"
        )
    return baselines


def compared_cells(baseline: Baseline, records: Iterable[Record]) -> tuple[Cell, ...]:
    """Return every cell of the baseline's tables beside what was found.

    A trial that failed although the baseline's did not has no metrics, so its cells do not hold.
    """
    here = {(row.split, row.label): row for row in Leaderboard.from_records(records).rows}
    there = Leaderboard.from_records(baseline.records).rows
    return tuple(cell for row in there for cell in _cells(row, here.get((row.split, row.label))))


def lost_seals(baseline: Baseline, records: Iterable[Record]) -> tuple[str, ...]:
    """Return a note on each row that the kernel sealed in the baseline, and that is guarded now; no cell of it breaks.

    Parameters are `compared_cells`'s.
    """
    sealed = {label for label, trials in by_label(baseline.records).items() if all(map(_sealed, trials))}
    rows = by_label(record for record in records if record.label in sealed and not _sealed(record))
    return tuple(
        f"{baseline.dataset}, {baseline.protocol}: {label} ran sealed in the baseline, and is guarded here: "
        f"{'; '.join(dict.fromkeys(record.seal_reason for record in trials)) or 'no reason was recorded'}"
        for label, trials in rows.items()
    )


def _sealed(record: Record) -> bool:
    return record.seal == "sealed"


def allowed(summary: Summary, n_seeds: int, n_found: int) -> float:
    """Return how far a mean over ``n_seeds`` may lie from a mean over ``n_found`` seeds."""
    if summary.std is None:
        return EXACT
    return SPREADS * summary.std * math.sqrt(1 / n_seeds + 1 / n_found) + SLACK


def _cells(row: Row, found: Row | None) -> Iterator[Cell]:
    for metric, summary in row.metrics.items():
        mean = found.metrics.get(metric, UNDEFINED).mean if found is not None else None
        tolerance = allowed(summary, len(row.seeds), len(found.seeds) if found is not None else 1)
        if row.replay is not None and row.replay.correlation is not None and not row.forgets:
            tolerance = max(tolerance, UNFORGOTTEN)
        yield Cell(row.dataset, row.protocol, row.split, row.label, metric, summary.mean, mean, tolerance)


def to_markdown(cells: Sequence[Cell], notes: Sequence[str] = ()) -> str:
    """Return a summary: what holds and, cell by cell, what does not; then notes."""
    counts = [
        (*table, *map(str, (len({cell.row for cell in of_table}), len(of_table), len(_broken(of_table)))))
        for table, of_table in grouped(cells, lambda cell: (cell.dataset, cell.protocol)).items()
    ]
    header = ["data set", "protocol", "rows", "cells", "left their tolerance"]
    lines = ["# Regression check", "", *plain_table(header, counts)]
    if broken := _broken(cells):
        header = ["data set", "protocol", "split", "detector", "metric", "baseline", "found", "tolerance"]
        numbers = [(_number(cell.baseline), _number(cell.found), f"{cell.tolerance:.2g}") for cell in broken]
        rows = [(*cell.row, cell.metric, *values) for cell, values in zip(broken, numbers, strict=True)]
        lines += ["", *plain_table(header, rows)]
    if notes:
        lines += ["", *(f"- {plain(note)}" for note in notes)]
    return "\n".join(lines) + "\n"


def to_junit(cells: Sequence[Cell]) -> str:
    """Return JUnit XML: a test suite per table, a test case per row, a failure if cells of it do not hold.

    XML has no characters that cannot be printed, not even as references.
    """
    top = ElementTree.Element("testsuites", name="tsadbench regress")
    for suite, of_table in grouped(cells, lambda cell: printable(f"{cell.dataset}.{cell.protocol}")).items():
        cases = grouped(of_table, lambda cell: printable(f"{cell.split}: {cell.label}"))
        failing = sum(bool(_broken(row)) for row in cases.values())
        attributes = {"name": suite, "tests": str(len(cases)), "failures": str(failing)}
        element = ElementTree.SubElement(top, "testsuite", attributes)
        for name, row in cases.items():
            case = ElementTree.SubElement(element, "testcase", classname=suite, name=name)
            if broken := _broken(row):
                failure = ElementTree.SubElement(case, "failure", message=f"{len(broken)} cells left their tolerance")
                failure.text = "\n".join(
                    f"{cell.metric}: baseline {_number(cell.baseline)}, found {_number(cell.found)}, "
                    f"tolerance {cell.tolerance:.2g}"
                    for cell in broken
                )
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def _broken(cells: Iterable[Cell]) -> list[Cell]:
    return [cell for cell in cells if not cell.holds]


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.7f}"
