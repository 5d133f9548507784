"""Processor cores, and the threads of the numeric libraries of this process."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# What a trial may need: a network's box and its copy for the replay audit.
_MEMORY_OF_A_JOB = 2 * 2**30
# The libraries that were found last. A box inherits what its server has found.
_found: list[ThreadpoolController] = []


def default_jobs() -> int:
    """Return the number of cores that this process may use, or one job for each 2 GiB of available memory if fewer."""
    import psutil

    # macOS has no affinities.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, psutil.virtual_memory().available // _MEMORY_OF_A_JOB))


def limit_threads(threads: int) -> None:
    """Set the number of threads of every loaded library; environment variables come too late for these."""
    _libraries().limit(limits=threads)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


@cache
def loaded_blas() -> tuple[str, ...]:
    """Return the linear algebra libraries that are loaded, with the kernels they chose for this processor."""
    loaded = [library for library in _libraries().info() if library.get("user_api") == "blas"]
    keys = ("internal_api", "version", "architecture")
    return tuple(sorted({" ".join(str(library.get(key)) for key in keys) for library in loaded}))


def _libraries() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    # A sealed box sees no /proc: environment variables limit what it loads itself.
    with suppress(PermissionError):
        _found[:] = [ThreadpoolController()]
    return _found[0]
