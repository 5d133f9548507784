"""Processor cores, the threads of numeric libraries, and the global random generators."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# Memory for one trial: a network's box and its copy for the replay audit.
_MEMORY_OF_A_JOB = 2 * 2**30
# A cache: the number of modules and the libraries found then. New libraries come with new modules. Boxes inherit it.
_found: list[tuple[int, ThreadpoolController]] = []


def default_jobs() -> int:
    """Return the number of cores that this process may use, or one job for each 2 GiB of available memory if fewer."""
    import psutil

    # macOS has no affinities.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, psutil.virtual_memory().available // _MEMORY_OF_A_JOB))


def limit_threads(threads: int) -> None:
    """Set the number of threads of every loaded library; environment variables come too late for these."""
    _libraries().limit(limits=threads)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)


@cache
def loaded_blas() -> tuple[str, ...]:
    """Return the loaded linear algebra libraries with the kernels they chose for this processor."""
    loaded = [library for library in _libraries().info() if library.get("user_api") == "blas"]
    keys = ("internal_api", "version", "architecture")
    return tuple(sorted({" ".join(str(library.get(key)) for key in keys) for library in loaded}))


def _libraries() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    if not _found or _found[0][0] != len(sys.modules):  # a search takes 3 ms, and boxes ask once per recording
        with suppress(PermissionError):  # no /proc in a sealed box: there, variables limit later libraries
            _found[:] = [(len(sys.modules), ThreadpoolController())]
    return _found[0][1]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global random generators of Python, NumPy and PyTorch for a block, then restore them.

    PyTorch's are seeded only if it has been imported before the block: import it at the top of the detector's file.
    The seed is at least 0 and below 2^32.

    Examples
    --------
    >>> import numpy as np
    >>> with seeded(1):
    ...     first = np.random.random()
    >>> with seeded(1):
    ...     print(np.random.random() == first)
    True
    """
    before, legacy = random.getstate(), np.random.get_state()
    with ExitStack() as stack:
        torch: Any = sys.modules.get("torch")  # the core does not import it
        if torch is not None:
            in_use = torch.cuda.is_initialized()
            stack.enter_context(torch.random.fork_rng(devices=range(torch.cuda.device_count() if in_use else 0)))
            torch.manual_seed(seed)
        stack.callback(random.setstate, before)
        stack.callback(np.random.set_state, legacy)
        random.seed(seed)
        np.random.seed(seed)
        yield
