"""The paths of a trial's files in a run store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Stored:
    """The files of one trial."""

    record: Path
    scores: Path
    contributions: Path


def stored(runs: Path, trial: str) -> Stored:
    """Return the files of a trial whose record can be read."""
    record = runs / "records" / f"{trial}.json"
    scoring = json.loads(record.read_text(encoding="utf-8"))["scoring"]
    return Stored(record, runs / "scores" / f"{scoring}.npz", runs / "contributions" / f"{scoring}.npz")
