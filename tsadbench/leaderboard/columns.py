"""Which diagnostics and which kinds of detectors there are, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tsadbench.errors import UsageError
from tsadbench.utils.parameters import nearest

GROUPS = ("operational", "vus", "affiliation", "root-cause")


class Diagnostic(NamedTuple):
    """A diagnostic: tables have no column if its title is empty, or if ``instead_of`` is defined in a row."""

    name: str
    title: str
    group: str
    decimals: int | None = None  # None: as metrics
    instead_of: str = ""
    chance: str = ""  # the diagnostic that the header shows as a level of chance


DIAGNOSTICS: tuple[Diagnostic, ...] = (
    Diagnostic("found", "Found", "operational"),
    Diagnostic("already_on", "Already on", "operational"),
    Diagnostic("delay_seconds", "Delay, s", "operational", 1),
    Diagnostic("delay_rows", "Delay, rows", "operational", 1, "delay_seconds"),
    Diagnostic("false_alarms_per_hour", "False alarms/h", "operational", 2),
    Diagnostic("false_alarms_per_1000_rows", "False alarms/1000 rows", "operational", 2, "false_alarms_per_hour"),
    Diagnostic("false_alarm_share", "In false alarm", "operational"),
    # Every table has it, beside the seconds of a fit.
    Diagnostic("rows_per_second", "", "operational", 0),
    Diagnostic("vus_pr", "VUS-PR", "vus"),
    Diagnostic("affiliation_precision", "Aff-P", "affiliation"),
    Diagnostic("affiliation_recall", "Aff-R", "affiliation"),
    Diagnostic("affiliation_f1", "Aff-F1", "affiliation"),
    *(Diagnostic(f"hit_at_{k}", f"Hit@{k}", "root-cause", chance=f"chance_at_{k}") for k in (1, 3, 5)),
    *(Diagnostic(f"chance_at_{k}", "", "root-cause") for k in (1, 3, 5)),
)


def groups_of(options: Iterable[str]) -> tuple[str, ...]:
    """Return the groups that options name (a group, "all", or several with commas); a UsageError if one is unknown.

    >>> groups_of(["vus,operational"])
    ('operational', 'vus')
    """
    names = {name.strip() for text in options for name in text.split(",")}
    for name in sorted(names - {*GROUPS, "all"}):
        raise UsageError(f"there is no group of diagnostics {name!r}{nearest(name, (*GROUPS, 'all'))}")
    return tuple(group for group in GROUPS if names & {group, "all"})
