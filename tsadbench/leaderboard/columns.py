"""Which diagnostics there are, by group, and how tables show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tsadbench.errors import UsageError
from tsadbench.leaderboard.ranking import Row
from tsadbench.utils.parameters import nearest

GROUPS = ("operational", "vus", "affiliation", "root-cause")
_ALL = "all"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What tables need to know of a diagnostic.

    Parameters
    ----------
    name
        In machine-readable output.
    title
        In tables; empty if they have no column for it.
    group
        One of `GROUPS`.
    decimals
        In tables; None: as many as the table's metrics.
    instead_of
        Tables show it only if the diagnostic of this name is defined in no row.
    chance
        The diagnostic that says what chance gets: tables show it in the header, and mark what is not above it, or not
        above the best floor.
    """

    name: str
    title: str
    group: str
    decimals: int | None = None
    instead_of: str = ""
    chance: str = ""


DIAGNOSTICS: tuple[Diagnostic, ...] = (
    Diagnostic("found", "Found", "operational"),
    Diagnostic("already_on", "Already on", "operational"),
    Diagnostic("delay_seconds", "Delay, s", "operational", decimals=1),
    Diagnostic("delay_rows", "Delay, rows", "operational", decimals=1, instead_of="delay_seconds"),
    Diagnostic("false_alarms_per_hour", "False alarms/h", "operational", decimals=2),
    Diagnostic(
        "false_alarms_per_1000_rows",
        "False alarms/1000 rows",
        "operational",
        decimals=2,
        instead_of="false_alarms_per_hour",
    ),
    Diagnostic("false_alarm_share", "In false alarm", "operational"),
    # Every table has it, beside the seconds of a fit.
    Diagnostic("rows_per_second", "", "operational", decimals=0),
    Diagnostic("vus_pr", "VUS-PR", "vus"),
    Diagnostic("affiliation_precision", "Aff-P", "affiliation"),
    Diagnostic("affiliation_recall", "Aff-R", "affiliation"),
    Diagnostic("affiliation_f1", "Aff-F1", "affiliation"),
    Diagnostic("hit_at_1", "Hit@1", "root-cause", chance="chance_at_1"),
    Diagnostic("hit_at_3", "Hit@3", "root-cause", chance="chance_at_3"),
    Diagnostic("hit_at_5", "Hit@5", "root-cause", chance="chance_at_5"),
    Diagnostic("chance_at_1", "", "root-cause"),
    Diagnostic("chance_at_3", "", "root-cause"),
    Diagnostic("chance_at_5", "", "root-cause"),
)


def shown_diagnostics(rows: Iterable[Row]) -> list[Diagnostic]:
    """Return the diagnostics that a table shows: those that are defined in one of its rows."""
    defined = {name for row in rows for name, summary in row.diagnostics.items() if summary.mean is not None}
    return [one for one in DIAGNOSTICS if one.title and one.name in defined and one.instead_of not in defined]


def groups_of(options: Iterable[str]) -> tuple[str, ...]:
    """Return the groups that options name, in the order of `GROUPS`.

    Parameters
    ----------
    options
        Names of groups, or "all"; several in one text are separated by commas.

    Raises
    ------
    UsageError
        If there is no such group.

    Examples
    --------
    >>> groups_of(["vus,operational"])
    ('operational', 'vus')
    """
    names = {name.strip() for text in options for name in text.split(",")}
    for name in sorted(names):
        if name not in (*GROUPS, _ALL):
            raise UsageError(f"there is no group of diagnostics {name!r}{nearest(name, (*GROUPS, _ALL))}")
    return tuple(group for group in GROUPS if names & {group, _ALL})
