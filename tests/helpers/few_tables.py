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
    """Copy records of some labels; ``renamed`` are labels, ``dataset`` is all tables' name."""
    for table in tables:
        target = folder / (f"{dataset}/{table.partition('/')[2]}" if dataset else table)
        target.mkdir(parents=True)
        lines = map(json.loads, (LEADERBOARDS / table / "records.jsonl").read_text(encoding="utf-8").splitlines())
        kept = [_renamed(one, renamed or {}, dataset) for one in lines if one["label"] in labels]
        text = "".join(json.dumps(one) + "\n" for one in kept)
        (target / "records.jsonl").write_text(text, encoding="utf-8")
    shutil.copyfile(LEADERBOARDS / "checks.jsonl", folder / "checks.jsonl")
    return folder


def _renamed(line: dict, renamed: Mapping[str, str], dataset: str) -> dict:
    return {**line, "dataset": dataset or line["dataset"], "label": renamed.get(line["label"], line["label"])}
