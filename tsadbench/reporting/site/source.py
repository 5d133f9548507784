"""Reads a folder of committed tables: records, metrics by recording, rankings over suites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsadbench.analysis.significance.rank import rank
from tsadbench.analysis.significance.ranking import Ranking
from tsadbench.datasets.suites import SUITES
from tsadbench.errors import UsageError
from tsadbench.execution.record import RECORDS, Record, read_records
from tsadbench.execution.request import DEFAULT_PROTOCOL
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.ranking import Row, Summary
from tsadbench.leaderboard.shipped import RECORDINGS, UnitValues

# Folders of tables whose rows are comparable with those of the main tables, and stand among them.
_ADDED = ("pyod",)
_SUITES = "suites"


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one data set and protocol.

    Parameters
    ----------
    board
        The rows of all splits.
    values
        Metrics by recording; None if none are committed.
    """

    board: Leaderboard
    values: UnitValues | None

    @property
    def first(self) -> Row:
        """The first row: all have data set and protocol in common."""
        return self.board.rows[0]

    @property
    def name(self) -> str:
        """Data set and protocol with its version."""
        return f"{self.first.dataset}, {self.first.rules}"

    @property
    def main(self) -> tuple[Row, ...]:
        """The rows of the first split."""
        return next(iter(self.board.tables().values()))


def read_tables(folder: Path) -> list[Table]:
    """Return the tables of ``<data set>/<protocol>/records.jsonl``, by data set.

    Rows of adapters stand among them. A UsageError if the folder holds no table. A StoreError if a file cannot be
    read.
    """
    files = sorted(file for file in folder.glob(f"*/*/{RECORDS}"))
    if not files:
        raise UsageError(
            f"{folder}: expected a folder of tables, <data set>/<protocol>/{RECORDS}, as `tsadbench leaderboard RUNS "
            "--write DIR` writes them; found none"
        )
    tables = [
        Table(board.where(board.frame["rules"] == rules), values)
        for file in files
        for board, values in [_read(folder, file)]
        for rules in board.frame["rules"].unique()
    ]
    return sorted(tables, key=_place)


def _place(table: Table) -> tuple[int, str, bool, str]:
    """Return where a table stands: data sets of suites in their order, then others; the default protocol first."""
    known = SUITES["all"].datasets
    first = table.first
    place = known.index(first.dataset) if first.dataset in known else len(known)
    return place, first.dataset, first.protocol != DEFAULT_PROTOCOL, table.name


def _read(folder: Path, file: Path) -> tuple[Leaderboard, UnitValues | None]:
    records = list(read_records(file))
    labels = {record.label for record in records}
    for name in _ADDED:
        added = folder / name / file.relative_to(folder)
        records += [record for record in (read_records(added) if added.is_file() else ()) if record.label not in labels]
    values = file.with_name(RECORDINGS)
    board = Leaderboard.from_records(records, checked_in=folder)
    return board, UnitValues.read(values) if values.is_file() else None


def read_suites(folder: Path) -> Iterator[Ranking]:
    """Rank the rows over each suite that has a folder ``suites/<suite>``."""
    for file in sorted(folder.glob(f"{_SUITES}/*/rank.csv")):
        yield from rank(folder, suites=[file.parent.name]).over_all


def by_recording(table: Table) -> dict[str, Mapping[str, Sequence[float | None]]]:
    """Return metrics of each recording by label: means over seeds, in the order of `recordings`.

    Rows whose values are not committed are left out.
    """
    if table.values is None:
        return {}
    ids = recordings(table.values)
    found: dict[str, Mapping[str, Sequence[float | None]]] = {}
    for row in table.main:
        if row.ok and all(table.values.holds(record) for record in row.records):
            judged = [_judged(table.values, record, ids) for record in row.records]
            found[row.label] = {
                metric: [Summary.of(one[name].get(metric) for one in judged).mean for name in ids]
                for metric in table.values.about["metrics"]
            }
    return found


def recordings(values: UnitValues) -> list[str]:
    """Return the ids of the recordings that have values."""
    return [members[0] for members in values.units if len(members) == 1]


def split_members(table: Table) -> dict[str, list[str]]:
    """Return the recordings of each split, as far as the committed values tell.

    The first split has all of them. Another one has those whose ids begin with its name, or those of the one unit, a
    recording or several, if they hold as many rows and as many anomalous ones as the split. A split that no unit fits,
    or several, is left out.
    """
    if table.values is None:
        return {}
    tables = table.board.tables()
    found: dict[str, list[str]] = {}
    for place, ((*_, split), rows) in enumerate(tables.items()):
        counts = next(((row.n_rows, row.n_anomalous) for row in rows if row.ok), None)
        units = table.values.units
        named = tuple(name for name in recordings(table.values) if name.startswith(f"{split}/"))
        fitting = {members for members, size in units.items() if size == counts}
        if tuple(sum(units[name,][k] for name in named) for k in (0, 1)) == counts:
            fitting = {named}
        if place == 0:
            found[split] = recordings(table.values)
        elif len(fitting) == 1:
            found[split] = list(fitting.pop())
    return found


def _judged(values: UnitValues, record: Record, ids: Sequence[str]) -> dict[str, Mapping[str, float | None]]:
    return {name: one.metrics for name, one in values.judge(record, {name: [name] for name in ids}).items()}
