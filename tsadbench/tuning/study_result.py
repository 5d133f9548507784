"""What a study holds: its points, and the best of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a search.

    Parameters
    ----------
    number
        Number of the Optuna trial that measured it.
    state
        "complete", "pruned", "interrupted", or the status of a failure ("timeout", "error", ...).
    parameters
        Values of the searched parameters.
    value
        The objective's value; None unless complete.
    parts
        Means over folds, of the loss or for each kind of fault, as far as the point was measured.
    reason
        Why it failed.
    """

    number: int
    state: str
    parameters: Mapping[str, object]
    value: float | None
    parts: Mapping[str, float]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What a study has found so far.

    Parameters
    ----------
    points
        All points that have ended, in order.
    maximise
        Whether a larger value is better.
    storage
        URL of where the study is kept, without its password.
    """

    points: tuple[Point, ...]
    maximise: bool
    storage: str = field(default="", compare=False)

    @property
    def best(self) -> Point | None:
        """The complete point with the best value, the first of equals; None if no point is complete."""
        sign = -1.0 if self.maximise else 1.0
        complete = [point for point in self.points if point.value is not None]
        return min(complete, key=lambda point: (sign * (point.value or 0.0), point.number), default=None)

    @property
    def counts(self) -> dict[str, int]:
        """Number of points in each state."""
        return dict(Counter(point.state for point in self.points))

    @property
    def n_counted(self) -> int:
        """Number of points that count as done: all but the interrupted ones."""
        return sum(point.state != "interrupted" for point in self.points)

    def at(self, parameters: Mapping[str, object]) -> Point | None:
        """Return the first complete point with these parameters."""
        same = (point for point in self.points if point.value is not None and point.parameters == parameters)
        return next(same, None)


class StudyObserver(Protocol):
    """Receives progress events of a search, possibly from several threads."""

    def step(self, number: int, done: int, of: int) -> None:
        """Take note that a point has ``done`` of its ``of`` numbers."""

    def ended(self, number: int, result: StudyResult) -> None:
        """Take note that a point has ended, and what the study holds now."""
