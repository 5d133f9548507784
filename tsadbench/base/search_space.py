"""Search spaces: the values of a parameter that `tsadbench tune` may try."""

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
    """

    values: tuple[Value, ...]
    alters_loss: bool = False

    def __post_init__(self) -> None:
        if len({repr(value) for value in self.values}) != len(self.values) or len(self.values) < 2:
            raise UsageError(f"Choice: expected at least two values, each once, found {list(self.values)}")

    def holds(self, value: object) -> bool:
        """Whether the value is one of them."""
        return any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in self.values)


@dataclass(frozen=True, slots=True)
class Tune:
    """A number from ``low`` to ``high``, both included: an integer if both are, else of three significant digits.

    Parameters
    ----------
    low, high
        The bounds.
    log
        Whether it is drawn on a logarithmic scale.
    alters_loss
        As for `Choice`.

    Examples
    --------
    >>> Tune(1e-4, 1e-2, log=True).rounded(0.00123456)
    0.00123
    """

    low: int | float
    high: int | float
    log: bool = False
    alters_loss: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise UsageError(f"Tune: expected finite bounds, low below high, found {self.low} and {self.high}")
        if self.log and self.low <= 0:
            raise UsageError(f"Tune: a logarithmic scale starts above 0, found {self.low}")

    @property
    def integer(self) -> bool:
        """Whether the number is an integer."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def holds(self, value: object) -> bool:
        """Whether the value is such a number, within the bounds."""
        number = isinstance(value, int if self.integer else int | float) and not isinstance(value, bool)
        return number and self.low <= value <= self.high  # type: ignore[operator]

    def rounded(self, value: float) -> int | float:
        """Return an integer as it is, another number with three significant digits, as labels show it."""
        return value if self.integer else min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)


Space: TypeAlias = Choice | Tune
