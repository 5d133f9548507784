"""How many threads the numeric libraries of this process use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import ExtensionFileLoader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def limit_threads(threads: int) -> None:
    """Set the number of threads of every loaded library; environment variables come too late for these."""
    _loaded_libraries(len(sys.modules)).limit(limits=threads)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def loaded_blas() -> tuple[str, ...]:
    """Return the linear algebra libraries that are loaded, with the kernels they chose for this processor."""
    libraries = _loaded_libraries(len(sys.modules)).info()
    loaded = [library for library in libraries if library.get("user_api") == "blas"]
    keys = ("internal_api", "version", "architecture")
    return tuple(sorted({" ".join(str(library.get(key)) for key in keys) for library in loaded}))


@lru_cache(maxsize=1)
def _loaded_libraries(n_modules: int) -> ThreadpoolController:  # noqa: ARG001 - see `_libraries_of`
    """Return the numeric libraries of this process, as of when it had imported so many modules."""
    loaders = (getattr(getattr(module, "__spec__", None), "loader", None) for module in tuple(sys.modules.values()))
    return _libraries_of(sum(isinstance(loader, ExtensionFileLoader) for loader in loaders))


@lru_cache(maxsize=1)
def _libraries_of(n_compiled_modules: int) -> ThreadpoolController:  # noqa: ARG001 - only to look again
    """Find the numeric libraries; that takes milliseconds, so it is done again only after a compiled module came in.

    A box inherits what the server that it is forked from has found.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


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
