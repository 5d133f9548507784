"""Checks: how one is defined, fails or is skipped, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tsadbench.base.agreement import difference
from tsadbench.base.status import CheckStatus
from tsadbench.testing.detector_under_test import BoxedSubject, DetectorUnderTest
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import JsonValue

Compared: TypeAlias = Literal["nothing", "scores", "fits"]
Evidence: TypeAlias = dict[str, JsonValue]


class Failed(Exception):  # noqa: N818 - a verdict
    """The detector breaks a promise.

    Parameters
    ----------
    reason
        What was expected and what was found.
    evidence
        Numbers: the first offending row, the largest difference.
    """

    def __init__(self, reason: str, **evidence: JsonValue) -> None:
        super().__init__(reason)
        self.reason = reason
        self.evidence: Evidence = evidence


class Warned(Failed):
    """The detector keeps its promises, but does itself harm."""


class Skipped(Exception):  # noqa: N818 - a verdict
    """A check does not apply; the message says why."""


def require_equal(found: FloatArray, expected: FloatArray, reason: str, *, exact: bool = True) -> None:
    """Raise `Failed` if two arrays of scores differ; by more than rounding, unless ``exact``."""
    row, largest = difference(found, expected, exact=exact)
    if row is not None:
        raise Failed(reason, first_row=row, largest_difference=largest)


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Parameters
    ----------
    id
        Stable: scripts and expected failures name it.
    group
        The kind of promise that it verifies.
    sentence
        What passing shows.
    run
        Raises `Failed`, `Warned` or `Skipped`; any other exception is a failure too. None if it is run by ``boxed``.
    compares
        What it compares: scores, or fits as well. If those do not even repeat, it is skipped.
    boxed
        The same as ``run`` for a check that needs the boxes of trials, and runs where no code of the detector does.
    declinable
        Whether it tries data that a detector may decline: a declared failure means that it does not apply.
    """

    id: str
    group: str
    sentence: str
    run: Callable[[DetectorUnderTest], None] | None
    compares: Compared = "nothing"
    boxed: Callable[[BoxedSubject], None] | None = None
    declinable: bool = False

    def require_repetition(self, subject: DetectorUnderTest | BoxedSubject) -> None:
        """Raise `Skipped` if what it compares does not even repeat."""
        if self.compares != "nothing" and not subject.repeats_scores:
            raise Skipped("scores of one recording differ from call to call: the check `pure` says so")
        if self.compares == "fits" and not subject.repeats_fits:
            raise Skipped("two fits with one seed differ: the check `repeat` says so")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check.

    Parameters
    ----------
    id, group, sentence
        The check's.
    status
        "pass", "warn", "fail", "skip"; "expected-failure": a failure that was declared, with its reason;
        "not-applicable": the same of a check on data that a detector may decline; "not-run": the detector failed before
        the checks began.
    reason
        Why, unless it is a pass.
    evidence
        Numbers behind a failure.
    """

    id: str
    group: str
    sentence: str
    status: CheckStatus
    reason: str = ""
    evidence: Evidence = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether it is not a failure, and ran at all."""
        return self.status not in ("fail", "not-run")


class Group:
    """Collects the checks of one kind, in the order of their definition.

    Parameters
    ----------
    name
        The kind.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check] = []

    def check(
        self,
        id: str,  # noqa: A002 - the check's field
        sentence: str,
        compares: Compared = "nothing",
        *,
        declinable: bool = False,
    ) -> Callable[[Callable[[DetectorUnderTest], None]], Callable[[DetectorUnderTest], None]]:
        """Make a function a check of this group."""

        def register(run: Callable[[DetectorUnderTest], None]) -> Callable[[DetectorUnderTest], None]:
            self.checks.append(Check(id, self.name, sentence, run, compares, declinable=declinable))
            return run

        return register

    def boxed_check(
        self,
        id: str,  # noqa: A002 - the check's field
        sentence: str,
        compares: Compared = "nothing",
    ) -> Callable[[Callable[[BoxedSubject], None]], Callable[[BoxedSubject], None]]:
        """Make a function a check of this group that needs the boxes of trials."""

        def register(run: Callable[[BoxedSubject], None]) -> Callable[[BoxedSubject], None]:
            self.checks.append(Check(id, self.name, sentence, None, compares, run))
            return run

        return register
