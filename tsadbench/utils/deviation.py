"""The standard deviation of a few numbers, correctly rounded, at a tenth of the cost of `statistics.stdev`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

# Two bits more than twice a float's, so that the last bit of the root decides the rounding.
_BITS = 109
_MANTISSA = 53


def sample_deviation(values: Sequence[float]) -> float:
    """Return the standard deviation (ddof 1) of two numbers or more, the same float as `statistics.stdev` returns.

    Shifted by as many bits as the smallest of them needs, floats are integers, and so are the sums.

    Examples
    --------
    >>> sample_deviation([1.0, 2.0, 4.0])
    1.5275252316519468
    """
    smallest = min([size for size in map(abs, values) if size], default=1.0)
    shift = _MANTISSA - math.frexp(smallest)[1]
    try:
        whole = [int(math.ldexp(value, shift)) for value in values]
    except (OverflowError, ValueError):  # sizes too different, or not finite
        return statistics.stdev(values)
    count, total = len(whole), sum(whole)
    squares = count * sum([one * one for one in whole]) - total * total
    return _root(squares << max(0, -2 * shift), count * (count - 1) << max(0, 2 * shift))


def _root(numerator: int, denominator: int) -> float:
    """Return the square root of a fraction, correctly rounded."""
    shift = (numerator.bit_length() - denominator.bit_length() - _BITS) // 2
    if shift >= 0:
        return float(_odd_root(numerator, denominator << 2 * shift) << shift)
    return _odd_root(numerator << -2 * shift, denominator) / (1 << -shift)


def _odd_root(numerator: int, denominator: int) -> int:
    """Return the integer part of the root of a fraction; its last bit is set if anything was cut off."""
    root = math.isqrt(numerator // denominator)
    return root | (root * root * denominator != numerator)
