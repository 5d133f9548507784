"""Tables over a sealed data set: nothing in them could carry a value or a label out but the metrics themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tsadbench._version import __version__
from tsadbench.datasets.pumploop.sealed import commitment, sealed_pumploop
from tsadbench.errors import UsageError
from tsadbench.execution.plan import make_plan
from tsadbench.execution.record import Record
from tsadbench.execution.request import RunRequest
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.bounded_files import read_text

SEALED = "sealed.json"
SCHEMA = 1
_WITHHELD = "withheld: the data set is sealed"


def seal(secret: str, folder: Path) -> Path:
    """Write the commitment to a secret into a folder, and return its file.

    Raises
    ------
    UsageError
        If the folder has the commitment to another secret, or cannot be written to.
    """
    file = folder / SEALED
    if file.exists():
        require_commitment(secret, folder)
        return file
    content = {
        "schema": SCHEMA,
        "dataset": sealed_pumploop(secret).dataset.name,
        "generator": "pumploop",
        "tsadbench": __version__,
        "made": datetime.now(UTC).date().isoformat(),
        "commitment": commitment(secret),
    }
    return write_file(file, json.dumps(content, indent=1) + "\n")


def require_commitment(secret: str, folder: Path) -> None:
    """Raise a UsageError unless a folder has the commitment to a secret."""
    file = folder / SEALED
    try:
        found = json.loads(read_text(file, 10_000))["commitment"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file}: cannot be read ({error}); expected what tsadbench data seal --out writes") from error
    if found != commitment(secret):
        raise UsageError(f"{file}: it commits to another secret than this one: expected {found}")


def run_sealed(secret: str, folder: Path, detectors: Sequence[str], *, seeds: int = 1, jobs: int = 1) -> list[Path]:
    """Run detectors on the data set of a secret, and write nothing of it but tables; return their files.

    Trials stay in memory. Every box is sealed by the kernel. What detectors say themselves is withheld from the tables:
    messages, facts about their fits, thresholds.

    Parameters
    ----------
    secret, folder
        As for `seal`, which has been called.
    detectors, seeds, jobs
        As for a run under ``strict``; floors are added.

    Raises
    ------
    UsageError
        If a detector cannot be planned, the kernel seals no box, or the folder has the commitment to another secret.
    """
    require_commitment(secret, folder)
    plan = make_plan(
        RunRequest(
            detectors=[*detectors],
            datasets=[sealed_pumploop(secret)],
            seeds=seeds,
            jobs=jobs,
            contributions=False,
            require_seal=True,
        )
    )
    records = run_plan(plan, None, jobs=jobs)  # None: nothing of a trial is written
    return Leaderboard.from_records(withheld(records)).write_tables(folder)


def withheld(records: Iterable[Record]) -> list[Record]:
    """Return records without what their detectors have said or chosen: it could hold values that they saw."""
    return [
        replace(
            record,
            thresholds=(),
            training=(),
            reason=None if record.reason is None else _WITHHELD,
            manifest={name: record.manifest[name] for name in ("code_hash", "versions", "adapted", "imported")},
        )
        for record in records
    ]
