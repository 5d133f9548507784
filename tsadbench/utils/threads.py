"""How many threads the numeric libraries of this process use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def limit_threads(threads: int) -> None:
    """Set the number of threads of every loaded library; environment variables come too late for these."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=threads)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


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
