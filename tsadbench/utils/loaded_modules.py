"""Which modules have been loaded since one last looked, without a look at all others.

A box shares the memory of the server that it is forked from until one of them writes, and Python writes to every object
that it visits: to walk over `sys.modules` costs a box thousands of pages.
"""

from __future__ import annotations

import sys
from itertools import islice


class LoadedModules:
    """Tells which modules this process has loaded since the last question; a fork inherits what is known."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def newer(self) -> list[str]:
        """Return the names of modules that were loaded since the last call, in order; at first, all of them."""
        grown = max(len(sys.modules) - len(self._known), 0)
        # What is loaded comes last: of that, as much as there is more now; and what stands before it, which is known
        # unless something was removed or put elsewhere in the meantime.
        latest = list(islice(reversed(sys.modules), grown + 1))
        new, before = latest[:grown], latest[grown:]
        if self._known.isdisjoint(new) and self._known.issuperset(before):
            self._known.update(new)
            return new[::-1]
        loaded = list(sys.modules)
        new = [name for name in loaded if name not in self._known]
        self._known = set(loaded)
        return new
