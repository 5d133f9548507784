"""Python's garbage collector, held back where very many objects are made that hold no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Of objects that are made before the collector looks for cycles: Python's own 700 are a tenth of the time that a
# command takes to import what it needs.
_OBJECTS = 10_000


def collect_seldom() -> None:
    """Have the collector look for cycles less often, in a process that runs one command."""
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])


@contextmanager
def collector_paused() -> Iterator[None]:
    """Collect no cycles until the end: the collector looks through all that was made again and again, for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
