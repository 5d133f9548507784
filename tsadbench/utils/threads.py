"""Processor cores, and the threads of the numeric libraries of this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# What a trial may need: a network's box and its copy for the replay audit.
_MEMORY_OF_A_JOB = 2 * 2**30
# The libraries that were found, by the number of modules at that time. To find them takes milliseconds; a box inherits
# what its server has found.
_found: dict[int, ThreadpoolController] = {}


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


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Set the number of threads inside a block, for libraries that are loaded when it begins."""
    torch: Any = sys.modules.get("torch")
    before = 0 if torch is None else torch.get_num_threads()
    with _libraries().limit(limits=threads):
        limit_threads(threads)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(before)


@cache
def loaded_blas() -> tuple[str, ...]:
    """Return the linear algebra libraries that are loaded, with the kernels they chose for this processor."""
    loaded = [library for library in _libraries().info() if library.get("user_api") == "blas"]
    keys = ("internal_api", "version", "architecture")
    return tuple(sorted({" ".join(str(library.get(key)) for key in keys) for library in loaded}))


def _libraries() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    if len(sys.modules) not in _found:
        try:
            _found[len(sys.modules)] = ThreadpoolController()
        except PermissionError:
            # A box without namespaces sees no /proc: what its server has found is limited here, what was loaded since
            # by environment variables.
            return next(reversed(_found.values()))
    return _found[len(sys.modules)]
