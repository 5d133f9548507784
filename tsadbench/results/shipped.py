"""The leaderboards that ship with the package."""

from __future__ import annotations

from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import DataError, UsageError
from tsadbench.execution.record import RECORDS, Record, committed_records
from tsadbench.results.trial_result import data_faults
from tsadbench.utils.files import LEADERBOARDS
from tsadbench.utils.parameters import nearest


def stored_records(data: LabelledDataset, protocol: str) -> tuple[Record, ...]:
    """Return the records of a shipped leaderboard; a UsageError if there is none, a DataError if its data differ."""
    name = data.dataset.name
    records = committed_records(LEADERBOARDS, name, protocol)
    if not records:
        shipped = tuple(sorted(file.parent.name for file in LEADERBOARDS.glob(f"{name}/*/{RECORDS}")))
        raise UsageError(
            f"no leaderboard of data set {name!r} under protocol {protocol!r} ships with tsadbench"
            f"{nearest(protocol, shipped)}"
        )
    if any(data_faults(record, data) for record in records):
        raise DataError(
            f"the stored rows of {name!r} come from other data than these files; leave --against out, or "
            f"get the published files (`tsadbench data fetch {name}`)"
        )
    return records
