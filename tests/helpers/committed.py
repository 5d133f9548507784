"""Committed leaderboards made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from tests.helpers.records import record
from tsadbench.execution.record import Record

FLOORS = ("max-z", "random")


def made(dataset: str, values: Mapping[str, float | str | None], **fields: object) -> list[Record]:
    """Return one record per label; its value is the AUPRC, or the status with which it failed."""
    records = []
    for label, value in values.items():
        status, metrics = (value, {}) if isinstance(value, str) else ("ok", {"auprc": value})
        one = record(label, floor=label in FLOORS, status=status, dataset=dataset, **metrics)
        records.append(replace(one, trial=f"{dataset}-{label}", **fields))
    return records


def commit(folder: Path, records: Iterable[Record]) -> Path:
    """Append records to the files that `tsadbench run --write` writes; return the folder."""
    for one in records:
        file = folder / one.dataset / one.protocol / "records.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(one.to_json(indent=None) + "\n")
    return folder
