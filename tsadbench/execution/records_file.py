"""The file of records that lies beside committed tables: every trial's record, one per line."""

from __future__ import annotations

from importlib.resources.abc import Traversable

from tsadbench.execution.record import Record

RECORDS = "records.jsonl"


def read_records(file: Traversable) -> tuple[Record, ...]:
    """Return the records of a file.

    Raises
    ------
    StoreError
        If a line is no record.
    """
    lines = file.read_text(encoding="utf-8").splitlines()
    return tuple(Record.from_json(line, f"{file}, line {number}") for number, line in enumerate(lines, start=1))
