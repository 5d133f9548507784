"""The records of a committed leaderboard: ``<data set>/<protocol>/records.jsonl``, one record per line."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from pathlib import Path

from tsadbench.execution.record import Record

RECORDS = "records.jsonl"


def read_records(file: Path | Traversable) -> tuple[Record, ...]:
    """Return the records of a file, in its order.

    Raises
    ------
    StoreError
        If a line is not a record.
    """
    lines = file.read_text(encoding="utf-8").splitlines()
    return tuple(Record.from_json(line, f"{file}, line {number}") for number, line in enumerate(lines, start=1))


def committed_records(folder: Path | None, dataset: str, protocol: str) -> tuple[Record, ...]:
    """Return the records of a table below a folder that `tsadbench run --write` writes to; none if it has none."""
    file = None if folder is None else folder / dataset / protocol / RECORDS
    return read_records(file) if file is not None and file.is_file() else ()
