"""From records to ranked tables, as JSON, CSV, Markdown, LaTeX, HTML and data frames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from tsadbench.errors import StoreError, UsageError
from tsadbench.execution.record import RECORDS, Record, committed_records
from tsadbench.leaderboard.cells import best_floors, columns_of, metrics_of
from tsadbench.leaderboard.checks import (
    FILE,
    CheckReport,
    CheckReports,
    read_reports,
    shipped_reports,
    write_reports,
)
from tsadbench.leaderboard.formatting import csv_text
from tsadbench.leaderboard.html import html
from tsadbench.leaderboard.latex import latex
from tsadbench.leaderboard.markdown import markdown
from tsadbench.leaderboard.notes import Note, notes_on
from tsadbench.leaderboard.presentation import column_key, places_of_columns
from tsadbench.leaderboard.ranking import Row, by_table, check_split, ranked_rows, splits_of
from tsadbench.leaderboard.screen import text_of
from tsadbench.leaderboard.throughput import core_minutes
from tsadbench.utils.files import write_file
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import nearest, normal_label
from tsadbench.utils.text import name_fault

SCHEMA = 1
_TABLE = ["dataset", "protocol", "split"]
# Measured by a clock: they differ between two runs, so a comparison of tables leaves them out.
COST_COLUMNS = ("rows_per_second", "fit_seconds", "score_seconds", "peak_memory_mib")


class Leaderboard:
    """Ranked rows: by mean AUPRC, floors after the detectors, failures last; one table per data set, protocol, split.

    Trials that were judged by two versions of a protocol stand in two tables.

    Parameters
    ----------
    rows
        In that order.
    notes
        What readers of the tables must know about their data or trials.
    columns
        Keys of the columns that tables show, in order (`tsadbench.leaderboard.cells.columns_of`); none: all.
    """

    def __init__(self, rows: Sequence[Row], notes: Sequence[Note] = (), columns: Sequence[str] = ()) -> None:
        self.rows = tuple(rows)
        self.notes = tuple(notes)
        self.columns = tuple(columns)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Record],
        splits: Sequence[str] = (),
        *,
        stored: Iterable[Record] = (),
        checked_in: Path | None = None,
        reports: Iterable[CheckReport] = (),
    ) -> Leaderboard:
        """Rank records.

        Parameters
        ----------
        records
            Of any data sets and protocols. Of several records of the same trial the newest counts.
        splits
            The splits to show, in order (default: all).
        stored
            Records made earlier to show beside them, marked; those of a label that the others have are left out.
        checked_in
            A run store, or a folder of tables, that holds reports of checks besides those that ship.
        reports
            More of them.

        Raises
        ------
        UsageError
            If no record has one of these splits.
        """
        own = {(*_row_key(record), record.seed): record for record in records}
        labels = {key[:3] for key in own}
        beside = {(*_row_key(record), record.seed): record for record in stored if _row_key(record) not in labels}
        newest = [*own.values(), *beside.values()]
        for split in splits:
            check_split(split, newest)
        newest = _with_failures_beside(newest)
        earlier = {record.trial for record in beside.values()}
        known = CheckReports.beside(checked_in, reports)
        rows = [
            row
            for table in grouped(newest, lambda record: (record.dataset, record.rules)).values()
            for split in _shown(splits, table)
            for row in ranked_rows(table, split, earlier, known)
        ]
        return cls(rows, notes_on(newest))

    @classmethod
    def joined(cls, boards: Sequence[Leaderboard]) -> Leaderboard:
        """Return the tables of several leaderboards as one, in their order."""
        notes = dict.fromkeys(note for board in boards for note in board.notes)
        return cls([row for board in boards for row in board.rows], tuple(notes))

    def chosen(self, detectors: Sequence[str] = (), columns: Sequence[str] = ()) -> Leaderboard:
        """Return the leaderboard with some rows and columns; marks are those of all rows.

        The best floor in each metric is always shown, because detectors are marked by it.

        Parameters
        ----------
        detectors
            Labels; none: all.
        columns
            Names, or several separated by commas; none: all.
        """
        labels = {normal_label(one) for one in detectors}
        known = dict.fromkeys(row.label for row in self.rows)
        for label in labels:
            if label not in known:
                raise UsageError(f"there is no row {label!r}{nearest(label, known)}")
        keys = dict.fromkeys(column_key(part) for text in columns for part in text.split(",") if part.strip())
        rows: list[Row] = []
        notes: list[Note] = []
        for table in self.tables().values():
            kept = labels | best_floors(table, metrics_of(table))
            shown = [row for row in table if not labels or row.label in kept]
            rows += shown
            if len(shown) < len(table):
                said = (
                    f"{len(shown)} of {len(table)} rows are shown. Bold and underlined are the best of the shown rows."
                )
                notes.append(Note(table[0].dataset, said, table[0].protocol))
        hidden = set(notes_on([record for row in self.rows for record in row.records]))
        hidden -= set(notes_on([record for row in rows for record in row.records]))
        kept_notes = [note for note in self.notes if note not in hidden]
        return Leaderboard(rows, tuple(dict.fromkeys([*kept_notes, *notes])), tuple(keys))

    def tables(self) -> dict[tuple[str, str, str], tuple[Row, ...]]:
        """Return the rows of each (data set, protocol with its version, split)."""
        return by_table(self.rows)

    def alone(self) -> dict[tuple[str, str, str], Leaderboard]:
        """Return each table as a leaderboard of its own, with the notes that concern it."""
        return {
            key: Leaderboard(
                rows, [note for note in self.notes if note.concerns(rows[0].dataset, rows[0].protocol)], self.columns
            )
            for key, rows in self.tables().items()
        }

    def to_json(self) -> str:
        """Return ``{"schema": 1, "core_minutes": ..., "rows": [...]}``, each row as `Row.to_json` returns it."""
        minutes = core_minutes(record for row in self.rows for record in row.records)
        content = {"schema": SCHEMA, "core_minutes": minutes, "rows": [row.to_json() for row in self.rows]}
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return the rows as CSV, full precision, empty where undefined.

        Over several tables the columns data set, protocol and split come first.
        """
        frame = self.to_frame()
        several = len(self.tables()) > 1
        columns = [str(column) for column in frame if several or column not in _TABLE]
        if self.columns:
            return csv_text(frame.reindex(columns=self._chosen(columns)))
        tail = [*COST_COLUMNS, *(column for column in columns if column.startswith("diagnostic_"))]
        frame = frame.reindex(columns=[*(column for column in columns if column not in tail), *tail])
        return csv_text(frame)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per detector and split, columns as in the CSV."""
        return pd.DataFrame.from_records([_flat(row) for row in self.rows])

    def write(self, folder: Path) -> list[Path]:
        """Write the tables and ``<data set>/<protocol>/records.jsonl``, one trial per line; return the files.

        Trials of ``records.jsonl`` stay if the leaderboard has none of their label and seed. Reports of checks that do
        not ship with tsadbench are added to ``checks.jsonl``.

        Raises
        ------
        UsageError
            If a file cannot be written, scores were smoothed, or trials are of two versions of a protocol or data set.
        """
        board = self._joined_with(folder)
        written = board.write_tables(folder) + [
            write_file(inside(folder, dataset, protocol, RECORDS), "".join(f"{line}\n" for line in lines))
            for (dataset, protocol), lines in board.record_lines().items()
        ]
        used = (report for row in self.rows for report in row.verdict.reports)
        own = [report for report in used if report not in shipped_reports()]
        return written + ([write_reports([*read_reports(folder / FILE), *own], folder / FILE)] if own else [])

    def _joined_with(self, folder: Path) -> Leaderboard:
        """Return the leaderboard with the trials of a folder that it does not have."""
        if any(row.smoothing > 1 for row in self.rows):
            raise UsageError("tables of smoothed scores are not written beside others: they would be taken for these")
        own = {record.trial: record for row in self.rows for record in row.records}
        known = {(*_row_key(record), record.seed) for record in own.values()}
        committed = [
            record
            for dataset, protocol in dict.fromkeys((row.dataset, row.protocol) for row in self.rows)
            for record in committed_records(folder, dataset, protocol)
            if (*_row_key(record), record.seed) not in known
        ]
        if not committed:
            return self
        reports = [report for row in self.rows for report in row.verdict.reports]
        splits = tuple(dict.fromkeys(row.split for row in self.rows))
        return Leaderboard.from_records([*committed, *own.values()], splits, checked_in=folder, reports=reports)

    def write_tables(self, folder: Path) -> list[Path]:
        """Write ``<data set>/<protocol>/<split>.csv`` and ``.md`` below a folder; errors as for `write`."""
        for (dataset, protocol), rows in grouped(self.rows, lambda row: (row.dataset, row.protocol)).items():
            if len({row.rules for row in rows}) > 1:
                raise UsageError(
                    f"{dataset}: the trials were judged by {' and '.join(sorted({row.rules for row in rows}))}, and a "
                    f"folder holds tables of one version of {protocol}; run those of the older one again, or remove "
                    "them (`tsadbench runs`)"
                )
            if len(versions := {record.dataset_version for row in rows for record in row.records}) > 1:
                found = " and ".join(map(str, sorted(versions)))
                raise UsageError(
                    f"{dataset}: the trials were run on versions {found} of the data set, and a folder holds tables of "
                    "one; run those of the older one again, or remove them (`tsadbench runs`)"
                )
        written = []
        for (dataset, _, split), table in self.alone().items():
            protocol = table.rows[0].protocol
            texts = {"csv": table.to_csv(), "md": table.to_markdown()}
            written += [
                write_file(inside(folder, dataset, protocol, f"{split}.{end}"), text) for end, text in texts.items()
            ]
        return written

    def record_lines(self) -> dict[tuple[str, str], list[str]]:
        """Return the trials' records of each data set and protocol as lines of JSON, by label and seed."""
        trials = {(*_row_key(record), record.seed): record for row in self.rows for record in row.records}
        tables = grouped(trials, lambda key: key[:2])
        return {table: [trials[key].to_json(indent=None) for key in sorted(keys)] for table, keys in tables.items()}

    def to_markdown(self) -> str:
        """Return one Markdown table per data set, protocol and split, with the marks explained below."""
        return markdown(self.rows, self.notes, self.columns)

    def to_latex(self) -> str:
        """Return one LaTeX table (booktabs) per data set, protocol and split, with the marks explained below."""
        return latex(self.rows, self.notes, self.columns)

    def to_html(self) -> str:
        """Return one HTML table per data set, protocol and split, with the marks explained below."""
        return html(self.rows, self.notes, self.columns)

    def _chosen(self, flat: Sequence[str]) -> list[str]:
        """Return the columns of the CSV that belong to the chosen ones."""
        tables = [columns_of(table) for table in self.tables().values()]
        places_of_columns(self.columns, tables)
        chosen = [column for column in flat if column in (*_TABLE, "detector", "status")]
        for key in self.columns:
            endings = ("_mean", "_std", "_entity_std")
            names = (key, *(f"{start}{key}{end}" for start in ("", "diagnostic_") for end in endings))
            chosen += [name for name in names if name in flat]
        return chosen

    def __str__(self) -> str:
        """Return the tables as plain text that fits the terminal, with the best floor in each metric."""
        return text_of(self.rows, self.notes, self.columns)

    def __repr__(self) -> str:
        tables = [f"{dataset}, {rules}, {split}" for dataset, rules, split in self.tables()]
        more = f" and {len(tables) - 3} more tables" if len(tables) > 3 else ""
        return f"<{type(self).__name__}: {len(self.rows)} rows of {'; '.join(tables[:3]) or 'no table'}{more}>"

    def _repr_html_(self) -> str:
        return self.to_html()


def _flat(row: Row) -> dict[str, str | int | float]:
    flat: dict[str, str | int | float | None] = {
        **dict(zip(_TABLE, (row.dataset, row.protocol, row.split), strict=True)),
        "detector": row.label,
        "family": row.first.family,
        "seeds": len(row.seeds),
        "status": row.status,
        "coverage": row.coverage,
        "look_ahead": row.first.look_ahead,
        **({"smoothing": row.smoothing} if row.smoothing > 1 else {}),
        "below_floor": " ".join(row.below_floor or ()),
    }
    for name, summary in row.metrics.items():
        flat[f"{name}_mean"] = summary.mean
        flat[f"{name}_std"] = summary.std
    flat["protocol_version"] = row.first.protocol_version
    flat["seal"] = row.seal
    flat["replay"] = None if row.replay is None else " ".join(row.replay.marks) or "ok"
    flat |= {f"{name}_entity_std": spread for name, spread in row.entity_spread.items()}
    flat["checked"] = row.verdict.checked
    flat["pretrained_on"] = "; ".join(row.pretrained_on)
    flat |= {name: getattr(row, name) for name in COST_COLUMNS}
    for name, summary in row.diagnostics.items():
        flat[f"diagnostic_{name}_mean"] = summary.mean
        flat[f"diagnostic_{name}_std"] = summary.std
    return {name: "" if value is None else value for name, value in flat.items()}


def _with_failures_beside(records: Sequence[Record]) -> list[Record]:
    """Return records whose failed trials, which nobody judged, are of the newest version of their protocol."""
    newest: dict[tuple[str, str], int] = {}
    for record in records:
        table = record.dataset, record.protocol
        newest[table] = max(record.protocol_version, newest.get(table, 1))
    return [
        record
        if record.status == "ok" or record.protocol_version == newest[record.dataset, record.protocol]
        else replace(record, protocol_version=newest[record.dataset, record.protocol])
        for record in records
    ]


def _row_key(record: Record) -> tuple[str, str, str]:
    return record.dataset, record.protocol, record.label


def _shown(requested: Sequence[str], records: Sequence[Record]) -> tuple[str, ...]:
    """Return the splits to show of one table's records; if all trials failed there is still a table to say so."""
    splits = splits_of(records)
    if not splits:
        return tuple(requested) or ("overall",)
    return tuple(split for split in requested if split in splits) if requested else splits


def inside(folder: Path, *names: str) -> Path:
    """Return a path inside a folder, which every path made of a record's fields is.

    Raises a StoreError if a name is not valid (`name_fault`), or a link leads out of the folder.
    """
    path = folder
    for name in names:
        if fault := name_fault(name):
            raise StoreError(f"{name[:200]!r} cannot be the name of a file in {folder}: {fault}")
        path = path / name
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise StoreError(f"{path}: it is a link that leads out of {folder}; remove the link")
    return path
