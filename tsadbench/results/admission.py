"""Whose code a record may name: that of detectors that are registered here; any other only if the user trusts it."""

from __future__ import annotations

from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.execution.record import Record
from tsadbench.registry import is_registered
from tsadbench.sandbox.describing import describe
from tsadbench.sandbox.description import Description
from tsadbench.utils.parameters import parse_label


def refusal(record: Record, *, trust_code: bool = False) -> str:
    """Return why nothing that a record names is run or opened; empty if it may be.

    A store may come from anybody: what it names by file or module could do anything.

    Parameters
    ----------
    record
        The record.
    trust_code
        Whether the user trusts the store's makers with what it names.
    """
    label = parse_label(record.label)
    if trust_code:
        return ""
    if not (is_registered(record.detector) and is_registered(label.target)):
        return f"the detector {record.detector} is not registered here, and --trust-code is not given"
    if "prior" in label.arguments:
        return f"its label names a prior, {label.arguments['prior']}, and --trust-code is not given"
    return ""


def require_admitted(record: Record, *, trust_code: bool = False) -> None:
    """Raise a UsageError if nothing that a record names is run or opened."""
    if reason := refusal(record, trust_code=trust_code):
        raise UsageError(f"trial {record.trial} ({record.label}): {reason}: what a store names could run any code")


def known_detector(name: str, *, trust_code: bool = False) -> Description | None:
    """Return what a detector that a record names is; None if it is not registered here, or cannot be loaded."""
    if not trust_code and not is_registered(name):
        return None
    try:
        return describe(name)
    except TsadbenchError:
        return None


def offers_contributions(record: Record, *, trust_code: bool = False) -> bool | None:
    """Return whether a record's detector offers contributions; None if it is not known (`known_detector`)."""
    detector = known_detector(parse_label(record.label).target, trust_code=trust_code)
    return None if detector is None else detector.offers_contributions
