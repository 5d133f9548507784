"""The leaderboards that travel with the package: rows that nobody has to run again."""

from __future__ import annotations

from tsadbench.errors import DataError, UsageError
from tsadbench.execution.plan import Plan
from tsadbench.execution.record import Record
from tsadbench.execution.records_file import RECORDS, read_records
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
        raise DataError(
            f"the stored rows of {plan.data.dataset.name!r} were made on other data than these files hold; leave "
            f"--against out, or get the published files (`tsadbench data fetch {plan.data.dataset.name}`)"
        )
    return records


def shipped_datasets(protocol: str) -> tuple[str, ...]:
    """Return the names of the data sets whose leaderboards under a protocol ship with the package, sorted."""
    return tuple(sorted(file.parts[-3] for file in LEADERBOARDS.glob(f"*/{protocol}/{RECORDS}")))


def _shipped(dataset: str) -> tuple[str, ...]:
    folder = LEADERBOARDS / dataset
    if not folder.is_dir():
        return ()
    return tuple(sorted(one.name for one in folder.iterdir() if (one / RECORDS).is_file()))
