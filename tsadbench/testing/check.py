"""What a check is, how it fails or skips, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tsadbench.testing.detector_under_test import DetectorUnderTest, difference
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import JsonValue

CheckStatus: TypeAlias = Literal["pass", "fail", "skip", "expected-failure"]
Evidence: TypeAlias = dict[str, JsonValue]


class Failed(Exception):  # noqa: N818 - a verdict
    """A promise is not kept.

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


class Skipped(Exception):  # noqa: N818 - a verdict
    """A check does not apply, and why."""


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
        What kind of promise it is about.
    sentence
        What a pass shows.
    run
        Raises `Failed` or `Skipped`; any other exception is a failure too.
    compares
        What it compares: scores, or fits as well. Where those do not even repeat, it is skipped.
    """

    id: str
    group: str
    sentence: str
    run: Callable[[DetectorUnderTest], None]
    compares: Literal["nothing", "scores", "fits"] = "nothing"

    def require_repetition(self, subject: DetectorUnderTest) -> None:
        """Raise `Skipped` where what it compares does not even repeat."""
        if self.compares != "nothing" and not subject.repeats_scores:
            raise Skipped("scores of one recording differ from call to call: the check `pure` says so")
        if self.compares == "fits" and not subject.repeats_fits:
            raise Skipped("two fits with one seed differ: the check `repeat` says so")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found.

    Parameters
    ----------
    id, group, sentence
        The check's.
    status
        "pass", "fail", "skip", or "expected-failure": a failure that the table of expected failures explains.
    reason
        Why, where it is not a pass.
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
        """Whether it does not speak against the detector."""
        return self.status != "fail"


class Group:
    """Collects the checks of one kind, in order of definition.

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
        compares: Literal["nothing", "scores", "fits"] = "nothing",
    ) -> Callable[[Callable[[DetectorUnderTest], None]], Callable[[DetectorUnderTest], None]]:
        """Make a function a check of this group."""

        def register(run: Callable[[DetectorUnderTest], None]) -> Callable[[DetectorUnderTest], None]:
            self.checks.append(Check(id, self.name, sentence, run, compares))
            return run

        return register
