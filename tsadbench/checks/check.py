"""What a check is, and the ways in which it can end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from tsadbench.parameters import JsonValue

if TYPE_CHECKING:
    from tsadbench.checks.bench import Bench

Evidence: TypeAlias = dict[str, JsonValue]
Status: TypeAlias = Literal["pass", "fail", "skip", "expected-failure"]

GROUPS = {
    "C": "contract",
    "L": "leakage",
    "R": "reproducibility",
    "N": "numerics",
    "B": "robustness",
    "D": "learning",
    "P": "position",
}

# What must hold before a check can tell anything: a detector that scores at random fails R02, and not every check
# that compares scores.
SCORES = ("C05-fit-and-score",)
COMPARES_SCORES = (*SCORES, "R02-repeated-score")
COMPARES_FITS = (*COMPARES_SCORES, "R01-same-seed")
ASKS_FOR_A_REACTION = (*COMPARES_SCORES, "D01-not-constant")


class Failed(Exception):  # noqa: N818 - not an error of the suite: a result
    """A promise is not kept.

    Parameters
    ----------
    reason
        What was expected and what was found, one line.
    evidence
        The first offending row, the largest difference, ...
    """

    def __init__(self, reason: str, **evidence: JsonValue) -> None:
        super().__init__(reason)
        self.reason = reason
        self.evidence = evidence


class Skipped(Exception):  # noqa: N818 - not an error of the suite: a result
    """There is nothing to be held to: not promised, or not possible."""


@dataclass(frozen=True, slots=True)
class Check:
    """One promise that a detector is held to.

    Parameters
    ----------
    id
        Stable; its first letter is the group (`GROUPS`).
    run
        Returns evidence where the promise is kept, raises `Failed` or `Skipped` otherwise; whatever else it raises,
        the detector raised. The first paragraph of its docstring is the check's sentence.
    requires
        Ids of checks without which this one cannot tell anything: where one of them fails, it is skipped.
    """

    id: str
    run: Callable[[Bench], Evidence]
    requires: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """What kind of promise it is about."""
        return GROUPS[self.id[0]]

    @property
    def sentence(self) -> str:
        """What it shows."""
        return " ".join((inspect.getdoc(self.run) or "").partition("\n\n")[0].split())


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How a check ended for one detector.

    Parameters
    ----------
    id, group, sentence
        The check's.
    status
        "pass", "fail", "skip" or "expected-failure".
    reason
        Why it is not "pass"; "" where it is.
    evidence
        What the check has measured.
    """

    id: str
    group: str
    sentence: str
    status: Status
    reason: str
    evidence: Evidence
