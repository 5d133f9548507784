"""The leaderboards that travel with the package: rows that a run is compared with, without running them again."""

from __future__ import annotations

from collections.abc import Sequence

from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import DataError, UsageError
from tsadbench.execution.plan import Plan
from tsadbench.execution.record import RECORDS, Record, committed_records
from tsadbench.results.trial_result import protocol_of
from tsadbench.results.unit_values import RECORDINGS, UnitValues
from tsadbench.utils.files import LEADERBOARDS
from tsadbench.utils.parameters import nearest


def stored_records(dataset: str, protocol: str) -> tuple[Record, ...]:
    """Return the records of a leaderboard that ships; a UsageError, which names those that do, if none does."""
    records = committed_records(LEADERBOARDS, dataset, protocol)
    if not records:
        shipped = tuple(sorted(file.parent.name for file in LEADERBOARDS.glob(f"{dataset}/*/{RECORDS}")))
        raise UsageError(
            f"no leaderboard of data set {dataset!r} under protocol {protocol!r} ships with tsadbench"
            f"{nearest(protocol, shipped)}"
        )
    return records


def stored_beside(plan: Plan) -> tuple[Record, ...]:
    """Return the stored records that a plan's rows can stand beside.

    A UsageError if no leaderboard of its data set and protocol ships, a DataError if they were made on other data.
    """
    records = stored_records(plan.data.dataset.name, plan.protocol_label)
    for record in records:
        hashes = (str(record.manifest.get(name)) for name in ("data_hash", "labels_hash"))
        _require_same(plan.data, *hashes)
    return records


def stored_values(dataset: LabelledDataset, protocol: str, records: Sequence[Record]) -> UnitValues:
    """Return the metrics by recording of stored rows, checked against the data and the rules that are here.

    A UsageError if none ship, other rules than the installed ones judged them, or one of the records has none; a
    DataError if they were made on other data.
    """
    name = dataset.dataset.name
    file = LEADERBOARDS / name / protocol / RECORDINGS
    if not file.is_file():
        raise UsageError(
            f"no metrics by recording ship for data set {name!r} under protocol {protocol!r}: leave --against out, and "
            "run the detectors in a store of your own"
        )
    values = UnitValues.read(file)
    _require_same(dataset, values.data_hash, values.labels_hash)
    for record in records:
        version = protocol_of(record).version
        if {record.protocol_version, values.protocol_version} != {version}:
            raise UsageError(
                f"the stored rows of {name!r} were judged by {record.rules}, and version {version} of the protocol is "
                "installed: leave --against out, and run the detectors in a store of your own"
            )
        if not values.holds(record):
            raise UsageError(f"no metrics by recording ship for {record.label}, seed {record.seed}, on {name!r}")
    return values


def _require_same(data: LabelledDataset, data_hash: str, labels_hash: str) -> None:
    if (data.dataset.content_hash, data.labels.content_hash) != (data_hash, labels_hash):
        name = data.dataset.name
        raise DataError(
            f"the stored rows of {name!r} were made on other data than these files hold; leave --against out, or get "
            f"the published files (`tsadbench data fetch {name}`)"
        )
