"""From records to ranked tables, as JSON, CSV, Markdown, LaTeX, HTML and data frames."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.leaderboard.ranking import Row, ranked_rows
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.parameters import nearest

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
# Beside the tables: every trial's record, one a line.
RECORDS = "records.jsonl"


class Leaderboard:
    """Ranked rows: by mean AUPRC, floors after the detectors, failures last; one table a data set, protocol, split.

    Parameters
    ----------
    rows
        In that order.
    notes
        What every table has to say about its data or its trials.
    """

    def __init__(self, rows: Sequence[Row], notes: Sequence[str] = ()) -> None:
        self.rows = tuple(rows)
        self.notes = tuple(notes)

    @classmethod
    def from_records(
        cls, records: Iterable[Record], splits: Sequence[str] = (), *, stored: Iterable[Record] = ()
    ) -> Leaderboard:
        """Rank records.

        Parameters
        ----------
        records
            Of any data sets and protocols. Of several records of the same trial the newest counts.
        splits
            The splits to show, in order; none given: all.
        stored
            Records made earlier that stand beside them, marked; where a label is among the others', it is left out.

        Raises
        ------
        UsageError
            If no record has one of these splits.
        """
        newest = {(r.dataset, r.protocol, r.label, r.seed): r for r in records}
        made_here = {key[:3] for key in newest}
        kept = [r for r in stored if (r.dataset, r.protocol, r.label) not in made_here]
        newest |= {(r.dataset, r.protocol, r.label, r.seed): r for r in kept}
        earlier = {r.trial for r in kept}
        tables: dict[tuple[str, str], list[Record]] = {}
        for record in newest.values():
            tables.setdefault((record.dataset, record.protocol), []).append(record)
        _check_splits(splits, tables.values())
        rows = [
            row
            for table in tables.values()
            for split in _shown(splits, table)
            for row in ranked_rows(table, split, earlier)
        ]
        return cls(rows, _notes(list(newest.values())))

    @classmethod
    def joined(cls, boards: Sequence[Leaderboard]) -> Leaderboard:
        """Return the tables of several leaderboards as one, in their order."""
        notes = dict.fromkeys(note for board in boards for note in board.notes)
        return cls([row for board in boards for row in board.rows], tuple(notes))

    def tables(self) -> dict[tuple[str, str, str], tuple[Row, ...]]:
        """Return the rows of each (data set, protocol, split)."""
        found: dict[tuple[str, str, str], tuple[Row, ...]] = {}
        for row in self.rows:
            key = (row.dataset, row.protocol, row.split)
            found[key] = (*found.get(key, ()), row)
        return found

    def alone(self) -> dict[tuple[str, str, str], Leaderboard]:
        """Return each table as a leaderboard of its own, with the notes that are about it."""
        found = {}
        for (dataset, protocol, split), rows in self.tables().items():
            about = (f"{dataset}: ", f"{dataset}, protocol {protocol}: ")
            notes = [note for note in self.notes if note.startswith(about)]
            found[dataset, protocol, split] = Leaderboard(rows, notes)
        return found

    def to_json(self) -> str:
        """Return ``{"schema": 1, "rows": [...]}`` as ``design.md`` lays it down."""
        content = {"schema": SCHEMA, "rows": [row.to_json() for row in self.rows]}
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return the rows as CSV, full precision, empty where undefined.

        Over several tables the columns data set, protocol and split come first.
        """
        several = len(self.tables()) > 1
        records = [{**(_place(row) if several else {}), **_flat(row)} for row in self.rows]
        columns = list(dict.fromkeys(column for record in records for column in record))
        tail = ["fit_seconds", "score_seconds", "peak_memory_mib"]
        tail += [column for column in columns if column.startswith("diagnostic_")]
        text = io.StringIO()
        writer = csv.DictWriter(text, [*(c for c in columns if c not in tail), *tail], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame, one row a detector and split, columns as in the CSV."""
        import pandas as pd

        return pd.DataFrame.from_records([{**_place(row), **_flat(row)} for row in self.rows])

    def write(self, folder: Path) -> list[Path]:
        """Write ``<data set>/<protocol>/<split>.csv``, ``.md`` and ``.json`` below a folder; return the files.

        ``<data set>/<protocol>/records.jsonl`` holds every trial's record, one a line.

        Raises
        ------
        UsageError
            If a file cannot be written.
        """
        written = []
        for (dataset, protocol, split), table in self.alone().items():
            place = folder / dataset / protocol
            written += [
                write_file(place / f"{split}.csv", table.to_csv()),
                write_file(place / f"{split}.md", table.to_markdown()),
                write_file(place / f"{split}.json", table.to_json()),
            ]
        return written + [
            write_file(folder / dataset / protocol / RECORDS, "".join(f"{line}\n" for line in lines))
            for (dataset, protocol), lines in self.record_lines().items()
        ]

    def record_lines(self) -> dict[tuple[str, str], list[str]]:
        """Return the trials' records of each data set and protocol as lines of JSON, by label and seed."""
        lines: dict[tuple[str, str], dict[tuple[str, int], str]] = {}
        for row in self.rows:
            of_table = lines.setdefault((row.dataset, row.protocol), {})
            for record in row.records:
                of_table.setdefault((record.label, record.seed), record.to_json(indent=None))
        return {key: [of_table[one] for one in sorted(of_table)] for key, of_table in lines.items()}

    def to_markdown(self) -> str:
        """Return one Markdown table a data set, protocol and split, with the marks explained below."""
        from tsadbench.leaderboard.render import markdown

        return markdown(self)

    def to_latex(self) -> str:
        """Return one LaTeX table (booktabs) a data set, protocol and split, with the marks explained below."""
        from tsadbench.leaderboard.latex import latex

        return latex(self)

    def to_html(self) -> str:
        """Return one HTML table a data set, protocol and split, with the marks explained below."""
        from tsadbench.leaderboard.render import html

        return html(self)

    def _repr_html_(self) -> str:
        return self.to_html()


def _flat(row: Row) -> dict[str, str | int | float]:
    flat: dict[str, str | int | float | None] = {
        "detector": row.label,
        "family": row.family,
        "seeds": len(row.seeds),
        "status": row.status,
        "coverage": row.coverage,
        "look_ahead": row.look_ahead,
        "below_floor": " ".join(row.below_floor or ()),
    }
    for name, summary in row.metrics.items():
        flat[f"{name}_mean"] = summary.mean
        flat[f"{name}_std"] = summary.std
    flat |= {
        "fit_seconds": row.fit_seconds,
        "score_seconds": row.score_seconds,
        "peak_memory_mib": row.peak_memory_mib,
    }
    for name, summary in row.diagnostics.items():
        flat[f"diagnostic_{name}_mean"] = summary.mean
        flat[f"diagnostic_{name}_std"] = summary.std
    return {name: "" if value is None else value for name, value in flat.items()}


def _place(row: Row) -> dict[str, str | int | float]:
    return {"dataset": row.dataset, "protocol": row.protocol, "split": row.split}


def _shown(wanted: Sequence[str], records: Sequence[Record]) -> tuple[str, ...]:
    """Return the splits of one table's records; where all trials failed there is still a table to say so."""
    found = tuple(dict.fromkeys(split for record in records for split in record.splits))
    if not found:
        return tuple(wanted) or ("overall",)
    return tuple(split for split in wanted if split in found) if wanted else found


def _check_splits(wanted: Sequence[str], tables: Iterable[Sequence[Record]]) -> None:
    known = tuple(dict.fromkeys(split for records in tables for record in records for split in record.splits))
    for split in wanted:
        if known and split not in known:
            raise UsageError(f"there is no split {split!r} in these records{nearest(split, known)}")


def _notes(records: Sequence[Record]) -> list[str]:
    notes = list(dict.fromkeys(f"{record.dataset}: {note}" for record in records for note in record.notes))
    of_protocols = (
        f"{record.dataset}, protocol {record.protocol}: {note}" for record in records for note in record.protocol_notes
    )
    notes += dict.fromkeys(of_protocols)
    notes += dict.fromkeys(f"{record.dataset}: {record.label}: {record.note}" for record in records if record.note)
    for dataset in dict.fromkeys(record.dataset for record in records):
        of_dataset = [record for record in records if record.dataset == dataset]
        seen: dict[str, set[str]] = {
            "data": {json.dumps(record.manifest.get("data_hash")) for record in of_dataset},
            "package versions": {json.dumps(record.manifest.get("versions")) for record in of_dataset},
            "number of threads": {str(record.threads) for record in of_dataset},
        }
        by_label = {(record.label, json.dumps(record.manifest.get("code_hash"))) for record in of_dataset}
        if len(by_label) > len({label for label, _ in by_label}):
            notes.append(f"{dataset}: seeds of one row were made with different versions of its detector's code")
        mixed = [what for what, values in seen.items() if len(values) > 1]
        notes += [f"{dataset}: these rows were not all made with the same {what}" for what in mixed]
    return notes
