"""Defines checks, their failures and their results."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tsadbench.base.scores import difference
from tsadbench.base.status import CheckStatus
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import JsonValue

Evidence: TypeAlias = dict[str, JsonValue]
Compared: TypeAlias = Literal["nothing", "scores", "fits"]
Run: TypeAlias = Callable[[Any], None]

_GROUPS = ("contract", "reproducibility", "robustness", "learning", "position", "leakage", "replay")


class Failed(Exception):  # noqa: N818 - a verdict
    """The detector breaks a promise; the evidence has numbers, such as the first offending row."""

    def __init__(self, reason: str, **evidence: JsonValue) -> None:
        super().__init__(reason)
        self.evidence: Evidence = evidence


class Warned(Failed):
    """The detector keeps its promises, but is at a disadvantage."""


class Skipped(Exception):  # noqa: N818 - a verdict
    """A check does not apply; the message says why."""


def require_equal(
    found: FloatArray, expected: FloatArray, reason: str, *, exact: bool = True, first: int = 0, **evidence: JsonValue
) -> None:
    """Raise `Failed` if two arrays of scores differ (unless ``exact``, by more than rounding).

    The arrays begin with row ``first`` of a recording. The first row that differs replaces ``{row}`` in the reason.
    """
    row, largest = difference(found, expected, exact=exact)
    if row is not None:
        evidence |= {"largest_difference": largest} if largest < float("inf") else {}  # JSON has no infinity
        raise Failed(reason.replace("{row}", str(row + first)), first_row=row + first, **evidence)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check, with the reason unless it is a pass, and the numbers behind a failure.

    A failure that was declared is "expected-failure", or "not-applicable" if the check tries data that a detector may
    decline. "not-run": the detector does not work.
    """

    id: str
    group: str
    sentence: str
    status: CheckStatus
    reason: str = ""
    evidence: Evidence = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether it ran and did not fail."""
        return self.status not in ("fail", "not-run")


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its id (for scripts and expected failures), its group, and the statement that a pass shows.

    ``run`` raises `Failed`, `Warned` or `Skipped`; any other exception is a failure too. A check is skipped if what it
    ``compares`` does not repeat, or if it ``varies`` and scores are constant. Checks ``of_trials`` inspect boxes.
    """

    id: str
    group: str
    sentence: str
    run: Run
    compares: Compared
    of_trials: bool = False
    varies: bool = False

    def result(self, status: CheckStatus, reason: str = "", evidence: Evidence | None = None) -> CheckResult:
        """Return a result of this check."""
        return CheckResult(self.id, self.group, self.sentence, status, reason, evidence or {})


_checks: list[Check] = []


def check(group: str, compares: Compared = "nothing", **kinds: bool) -> Callable[[Run], Run]:
    """Make a function a check: its name becomes the id, its docstring the statement."""

    def register(run: Run) -> Run:
        id_, sentence = run.__name__.replace("_", "-"), inspect.getdoc(run) or ""
        _checks.append(Check(id_, group, sentence, run, compares, **kinds))
        return run

    return register


def all_checks() -> tuple[Check, ...]:
    """Return every check, group by group."""
    return tuple(sorted(_checks, key=lambda one: _GROUPS.index(one.group)))
