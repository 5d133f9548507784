"""Which rows a reader wants by where their numbers come from: who made them, and what was trained before its fit."""

from __future__ import annotations

from collections.abc import Sequence

from tsadbench.base.status import TRUST_LEVELS, Trust
from tsadbench.execution.record import Record


def chosen_by_origin(
    records: Sequence[Record], least: Trust = "reported", *, pretrained: bool = True
) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """Return the records of the rows that a reader wants; the others take no part in the ranking.

    Parameters
    ----------
    records
        Of any data sets and protocols.
    least
        The least trust that a row must have.
    pretrained
        Whether rows of pretrained detectors are wanted.

    Returns
    -------
    tuple
        The records, and the labels of the rows that are left out, sorted. A row is left out if one of its trials is.
    """

    def unwanted(record: Record) -> bool:
        too_little = TRUST_LEVELS.index(record.trust) < TRUST_LEVELS.index(least)
        return too_little or (bool(record.pretrained_on) and not pretrained)

    out = {(record.dataset, record.protocol, record.label) for record in records if unwanted(record)}
    kept = tuple(one for one in records if (one.dataset, one.protocol, one.label) not in out)
    return kept, tuple(sorted({label for _, _, label in out}))
