"""Contains the effects of another library on its process: random generators, printing, the GPU."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np


@contextmanager
def contained(seed: int) -> Iterator[None]:
    """Make what runs inside depend on the seed alone, compute on the CPU, and leave no trace outside.

    The global random generators are seeded for the length of the block, and then as they were before. What the
    library prints goes to standard error. PyTorch finds no GPU: not every class has a parameter for the device, and
    seeds would not fix what a GPU computes.

    Parameters
    ----------
    seed
        Of the global random generators, at least 0 and below 2^32.
    """
    with ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.enter_context(_seeded(seed))
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            stack.enter_context(torch.random.fork_rng(devices=[]))
            torch.default_generator.manual_seed(seed)
            stack.enter_context(mock.patch.object(torch.cuda, "is_available", return_value=False))
        yield


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed Python's and NumPy's generators for the length of a block."""
    before, legacy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(legacy)
