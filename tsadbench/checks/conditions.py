"""The conditions under which a detector is checked: one thread, silent warnings, known global random generators."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

RandomState: TypeAlias = dict[str, object]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let libraries use one thread, as in the box; a second one may change the last bits."""
    torch = _torch()
    before = None if torch is None else torch.get_num_threads()
    with threadpool_limits(limits=1):
        try:
            if torch is not None:
                torch.set_num_threads(1)
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(before)


@contextmanager
def undisturbed(seed: int = 0) -> Iterator[None]:
    """Run with the global random generators at this seed and without warnings; put the generators back after it.

    Every fit and score of the checks runs so. A detector that draws from a global generator is then repeatable, and
    the one check that looks for it finds it, instead of all that compare scores.
    """
    before = random_state()
    try:
        _seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _restore(before)


def random_state() -> RandomState:
    """Return the states of the global generators of Python, numpy and, where it is loaded, torch."""
    torch = _torch()
    state: RandomState = {"random": random.getstate(), "numpy": np.random.get_state()}
    return state if torch is None else {**state, "torch": torch.get_rng_state()}


def touched(before: RandomState, after: RandomState) -> list[str]:
    """Return the names of the generators whose states differ."""
    return [name for name in before if not _same(before[name], after[name])]


def _same(one: object, other: object) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return all(_same(left, right) for left, right in zip(one, other, strict=True))
    return bool(np.array_equal(np.asarray(one), np.asarray(other)))


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch = _torch()
    if torch is not None:
        torch.default_generator.manual_seed(seed)


def _restore(state: RandomState) -> None:
    saved: dict[str, Any] = state
    random.setstate(saved["random"])
    np.random.set_state(saved["numpy"])
    if "torch" in saved:
        _torch().set_rng_state(saved["torch"])


def _torch() -> Any:
    """Return torch where somebody has loaded it: the core never does."""
    return sys.modules.get("torch")
