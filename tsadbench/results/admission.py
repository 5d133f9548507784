"""Decides whether a record's detector may be loaded: if it is registered, or if the user names it."""

from __future__ import annotations

from collections.abc import Collection

from tsadbench.errors import TsadbenchError
from tsadbench.execution.record import Record
from tsadbench.registry import is_registered
from tsadbench.sandbox import Description, describe
from tsadbench.utils.parameters import parse_label


def refusal(record: Record, named: Collection[str] = ()) -> str:
    """Return the reason not to load what a record names, or ``""``.

    A store may come from a stranger, and the files and modules it names could contain any code. ``named`` are the
    labels that the user allows.
    """
    label = parse_label(record.label)
    if record.label in named:
        return ""
    if not (is_registered(record.detector) and is_registered(label.target)):
        where = "name it with --detector, in the folder that its path begins in"
        return f"the detector {record.label} is not registered here; {where}"
    if "prior" in label.arguments:
        return f"its label names a prior, {label.arguments['prior']}; name the detector with --detector"
    return ""


def known_detector(name: str) -> Description | None:
    """Return the description of a record's detector; None if it is not registered or cannot be loaded."""
    try:
        return describe(name) if is_registered(name) else None
    except TsadbenchError:
        return None


def offers_contributions(record: Record) -> bool | None:
    """Return whether a record's detector offers contributions; None if the detector is unknown (`known_detector`)."""
    detector = known_detector(parse_label(record.label).target)
    return None if detector is None else detector.offers_contributions
