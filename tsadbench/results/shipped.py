"""The leaderboards that ship with the package."""

from __future__ import annotations

from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import UsageError
from tsadbench.execution.record import RECORDS, committed_records
from tsadbench.results.trial_result import data_faults
from tsadbench.utils.files import LEADERBOARDS
from tsadbench.utils.parameters import nearest


def require_shipped(data: LabelledDataset, protocol: str) -> None:
    """Raise a UsageError if no leaderboard of this data set and protocol ships, or it was made on other data."""
    name = data.dataset.name
    records = committed_records(LEADERBOARDS, name, protocol)
    if not records:
        shipped = tuple(sorted(file.parent.name for file in LEADERBOARDS.glob(f"{name}/*/{RECORDS}")))
        found = f"no leaderboard of data set {name!r} under protocol {protocol!r} ships with tsadbench"
        raise UsageError(found + nearest(protocol, shipped))
    if any(data_faults(record, data) for record in records):
        raise UsageError(
            f"the rows of {name!r} that ship were made on other data than these files hold; get the published files "
            f"(`tsadbench data fetch {name}`), or leave it out",
            field="against",
        )
