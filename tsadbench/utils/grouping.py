"""Groups values by a key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def grouped(values: Iterable[T], key: Callable[[T], K]) -> dict[K, tuple[T, ...]]:
    """Return the values of each key, in their order; keys in the order of their first value.

    >>> grouped(["pca", "t2", "lof"], len)
    {3: ('pca', 'lof'), 2: ('t2',)}
    """
    groups: dict[K, list[T]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return {name: tuple(members) for name, members in groups.items()}
