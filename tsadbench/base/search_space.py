"""Search spaces: the values of a parameter that `tsadbench tune` may try, declared in a detector's ``search_space``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from tsadbench.errors import UsageError

Value: TypeAlias = bool | int | float | str | None

_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some values.

    Parameters
    ----------
    values
        At least two different values.
    alters_loss
        Whether held-out losses of two values cannot be compared, because the parameter changes what is forecast,
        reconstructed or measured. Then only the objective ``injection`` searches it.

    Raises
    ------
    UsageError
        If there are fewer than two values, or one occurs twice.
    """

    values: tuple[Value, ...]
    alters_loss: bool = False

    def __post_init__(self) -> None:
        if len({repr(value) for value in self.values}) != len(self.values) or len(self.values) < 2:
            raise UsageError(f"Choice: expected at least two values, each once, found {list(self.values)}")

    def holds(self, value: object) -> bool:
        """Whether the value is one of them."""
        return any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in self.values)

    @property
    def extremes(self) -> tuple[Value, ...]:
        """All values: any of them may need the most rows."""
        return self.values


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """An integer from ``low`` to ``high``, both included.

    Parameters
    ----------
    low, high
        The bounds.
    log
        Whether it is drawn on a logarithmic scale.
    alters_loss
        As for `Choice`.

    Raises
    ------
    UsageError
        If the bounds hold fewer than two integers, or a logarithmic scale does not start above 0.
    """

    low: int
    high: int
    log: bool = False
    alters_loss: bool = False

    def __post_init__(self) -> None:
        _check_bounds("IntegerRange", self.low, self.high, log=self.log)

    def holds(self, value: object) -> bool:
        """Whether the value is an integer within the bounds."""
        return isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high

    @property
    def extremes(self) -> tuple[Value, ...]:
        """Both bounds."""
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class RealRange:
    """A number from ``low`` to ``high``, both included, of three significant digits.

    Parameters
    ----------
    low, high, log, alters_loss
        As for `IntegerRange`.

    Examples
    --------
    >>> RealRange(1e-4, 1e-2, log=True).rounded(0.00123456)
    0.00123
    """

    low: float
    high: float
    log: bool = False
    alters_loss: bool = False

    def __post_init__(self) -> None:
        _check_bounds("RealRange", self.low, self.high, log=self.log)

    def holds(self, value: object) -> bool:
        """Whether the value is a number within the bounds."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high

    def rounded(self, value: float) -> float:
        """Return the value with three significant digits, as labels show it, and within the bounds."""
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)

    @property
    def extremes(self) -> tuple[Value, ...]:
        """Both bounds."""
        return self.low, self.high


Space: TypeAlias = Choice | IntegerRange | RealRange


def _check_bounds(kind: str, low: float, high: float, *, log: bool) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"{kind}: expected finite bounds, low below high, found {low} and {high}")
    if log and low <= 0:
        raise UsageError(f"{kind}: a logarithmic scale starts above 0, found {low}")
