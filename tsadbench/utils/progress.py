"""Progress reports of a detector's fit, without knowing who receives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Listener: TypeAlias = Callable[[int, int, str], None]

_listener: ContextVar[Listener | None] = ContextVar("tsadbench_progress", default=None)


def progress(done: int, total: int, note: str = "") -> None:
    """Report that ``done`` of ``total`` steps (epochs) are done, with a note such as "loss 0.31"."""
    if listener := _listener.get():
        listener(done, total, note)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send every report from inside the block to ``listener(done, total, note)``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
