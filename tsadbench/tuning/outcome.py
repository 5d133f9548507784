"""What a study holds: its points, and the best of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a search.

    Parameters
    ----------
    number
        The trial's in its study.
    state
        "complete", "pruned", "interrupted", or the status of what went wrong ("timeout", "error", ...).
    parameters
        What was searched, and its value here.
    value
        The objective's; None unless complete.
    parts
        Means over folds: of the loss, or by kind of fault; as far as it came.
    reason
        Of a failure.
    """

    number: int
    state: str
    parameters: Mapping[str, object]
    value: float | None
    parts: Mapping[str, float]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a study has found so far.

    Parameters
    ----------
    points
        All that have ended, in their order.
    maximise
        Whether a larger value is better.
    """

    points: tuple[Point, ...]
    maximise: bool

    @property
    def best(self) -> Point | None:
        """The complete point with the best value, the first of equals; None where none is complete."""
        sign = -1.0 if self.maximise else 1.0
        complete = [point for point in self.points if point.value is not None]
        return min(complete, key=lambda point: (sign * (point.value or 0.0), point.number), default=None)

    @property
    def counts(self) -> dict[str, int]:
        """How many points came to each state."""
        return dict(Counter(point.state for point in self.points))

    @property
    def n_counted(self) -> int:
        """How many points count as done: all but those that were interrupted."""
        return sum(point.state != "interrupted" for point in self.points)

    def at(self, parameters: Mapping[str, object]) -> Point | None:
        """Return the first complete point with these parameters."""
        return next((one for one in self.points if one.value is not None and one.parameters == parameters), None)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Outcome:
        """Read what `to_json` gave."""
        return cls(tuple(Point(**one) for one in content["points"]), bool(content["maximise"]))
