"""Servers that boxes are forked from, for tests that need a separate one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tsadbench.sandbox.server import Server

_SLOW = {"torch", "torch_geometric", "pyod"}


@contextmanager
def without_networks() -> Iterator[None]:
    """Hide the networks' libraries, which other tests of this process may have imported.

    A server that starts preloads what this process has loaded: these libraries alone take four seconds. Nothing may
    import them inside the block.
    """
    hidden = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] in _SLOW}
    try:
        yield
    finally:
        sys.modules.update(hidden)


@contextmanager
def lean_server(*, seal: bool = True, forks: bool = True) -> Iterator[Server]:
    """Start a server that preloads none of the networks' libraries."""
    server = Server(seal=seal, forks=forks)
    with without_networks():
        server.warm()
    try:
        yield server
    finally:
        server.stop()
