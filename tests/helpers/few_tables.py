"""A folder of committed tables with some of their rows alone, under other labels if wanted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tsadbench.utils.files import LEADERBOARDS


def few_tables(
    folder: Path,
    tables: Sequence[str],
    labels: Sequence[str],
    renamed: Mapping[str, str] | None = None,
    dataset: str = "",
) -> Path:
    """Copy records and metrics by recording of some labels; ``renamed`` are labels, ``dataset`` is all tables' name."""
    for table in tables:
        target = folder / (f"{dataset}/{table.partition('/')[2]}" if dataset else table)
        target.mkdir(parents=True)
        for name in ("records.jsonl", "recordings.jsonl"):
            if (file := LEADERBOARDS / table / name).is_file():
                lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
                kept = [_renamed(one, renamed or {}, dataset) for one in lines if one.get("label", labels[0]) in labels]
                (target / name).write_text("".join(json.dumps(one) + "\n" for one in kept), encoding="utf-8")
    shutil.copyfile(LEADERBOARDS / "checks.jsonl", folder / "checks.jsonl")
    return folder


def _renamed(line: dict, renamed: Mapping[str, str], dataset: str) -> dict:
    if dataset and "dataset" in line:
        line["dataset"] = dataset
    if "label" in line:
        line["label"] = renamed.get(line["label"], line["label"])
    return line
