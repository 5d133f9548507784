"""The leaderboards that travel with the package: rows that nobody has to run again."""

from __future__ import annotations

from collections.abc import Sequence

from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import DataError, UsageError
from tsadbench.execution.plan import Plan
from tsadbench.execution.record import RECORDS, Record, read_records
from tsadbench.results.trial_result import protocol_of
from tsadbench.results.unit_values import RECORDINGS, UnitValues
from tsadbench.utils.parameters import nearest
from tsadbench.utils.shipped_tables import LEADERBOARDS


def stored_records(dataset: str, protocol: str) -> tuple[Record, ...]:
    """Return the records behind the leaderboard of a data set and protocol that ships with the package.

    Raises
    ------
    UsageError
        If none ships; those that do are named.
    """
    file = LEADERBOARDS / dataset / protocol / RECORDS
    if not file.is_file():
        shipped = _shipped(dataset)
        raise UsageError(
            f"no leaderboard of data set {dataset!r} under protocol {protocol!r} ships with tsadbench"
            f"{nearest(protocol, shipped)}"
        )
    return read_records(file)


def stored_beside(plan: Plan) -> tuple[Record, ...]:
    """Return the stored records that a plan's rows can stand beside.

    Raises
    ------
    UsageError
        If no leaderboard of its data set and protocol ships.
    DataError
        If the stored rows were made on other data.
    """
    records = stored_records(plan.data.dataset.name, plan.protocol_label)
    here = (plan.data.dataset.content_hash, plan.data.labels.content_hash)
    if any((one.manifest.get("data_hash"), one.manifest.get("labels_hash")) != here for one in records):
        raise DataError(_other_data(plan.data.dataset.name))
    return records


def stored_values(dataset: LabelledDataset, protocol: str, records: Sequence[Record]) -> UnitValues:
    """Return the metrics by recording of stored rows, checked against the data and the rules that are here.

    Parameters
    ----------
    dataset
        The data set.
    protocol
        As tables show it.
    records
        Those of the stored rows that are needed.

    Raises
    ------
    UsageError
        If none ship, other rules than the installed ones judged them, or a row has none.
    DataError
        If they were made on other data.
    """
    name = dataset.dataset.name
    file = LEADERBOARDS / name / protocol / RECORDINGS
    if not file.is_file():
        raise UsageError(
            f"no metrics by recording ship for data set {name!r} under protocol {protocol!r}: leave --against out, and "
            "run the detectors in a store of your own"
        )
    values = UnitValues.read(file)
    if (values.data_hash, values.labels_hash) != (dataset.dataset.content_hash, dataset.labels.content_hash):
        raise DataError(_other_data(name))
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


def _other_data(name: str) -> str:
    return (
        f"the stored rows of {name!r} were made on other data than these files hold; leave --against out, or get the "
        f"published files (`tsadbench data fetch {name}`)"
    )


def _shipped(dataset: str) -> tuple[str, ...]:
    folder = LEADERBOARDS / dataset
    if not folder.is_dir():
        return ()
    return tuple(sorted(one.name for one in folder.iterdir() if (one / RECORDS).is_file()))
