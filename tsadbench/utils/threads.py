"""Processor cores, and the threads of the numeric libraries of this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# What a trial may need: a network's box and its copy for the replay audit.
_MEMORY_OF_A_JOB = 2 * 2**30


def default_jobs() -> int:
    """Return the number of cores that this process may use, or one job for each 2 GiB of available memory if fewer."""
    import psutil

    # macOS has no affinities.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, psutil.virtual_memory().available // _MEMORY_OF_A_JOB))


def limit_threads(threads: int) -> None:
    """Set the number of threads of every loaded library; environment variables come too late for these."""
    _libraries.found().limit(limits=threads)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def loaded_blas() -> tuple[str, ...]:
    """Return the linear algebra libraries that are loaded, with the kernels they chose for this processor."""
    libraries = _libraries.found().info()
    loaded = [library for library in libraries if library.get("user_api") == "blas"]
    keys = ("internal_api", "version", "architecture")
    return tuple(sorted({" ".join(str(library.get(key)) for key in keys) for library in loaded}))


class _Libraries:
    """Finds the numeric libraries of this process, which takes milliseconds; a box inherits what its server found."""

    def __init__(self) -> None:
        self._n_modules = 0
        self._found: ThreadpoolController | None = None

    def found(self) -> ThreadpoolController:
        """Find them, again only after a module came in."""
        if self._found is None or len(sys.modules) != self._n_modules:
            from threadpoolctl import ThreadpoolController

            try:
                self._found = ThreadpoolController()
            except PermissionError:
                # A box without namespaces sees no /proc: what its server had found is limited here, what was loaded
                # since by environment variables.
                if self._found is None:
                    raise
            self._n_modules = len(sys.modules)
        return self._found


_libraries = _Libraries()


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Set the number of threads inside a block, for libraries that are loaded when it begins."""
    from threadpoolctl import threadpool_limits

    torch: Any = sys.modules.get("torch")
    before = None if torch is None else torch.get_num_threads()
    with threadpool_limits(limits=threads):
        if before is not None:
            torch.set_num_threads(threads)
        try:
            yield
        finally:
            if before is not None:
                torch.set_num_threads(before)
