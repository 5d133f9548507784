"""Handles Ctrl-C: the first raises an exception, so that a command can clean up; the second ends it at once.

Imports nothing slow, so that interrupts are handled before everything else is imported.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

EXIT_CODE = 130
_SHOW_CURSOR = b"\x1b[?25h"


def end_at_once(_number: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
    """End this process with one line; the boxes' server notices and ends them."""
    with contextlib.suppress(OSError):
        os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + b"interrupted: ended at once\n")
    os._exit(EXIT_CODE)


def interrupt_once(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; the next time, end at once."""
    signal.signal(signal.SIGINT, end_at_once)
    raise KeyboardInterrupt


def interrupted() -> bool:
    """Whether `interrupt_once` was called: a later error may come from an interrupted import."""
    return signal.getsignal(signal.SIGINT) is end_at_once
