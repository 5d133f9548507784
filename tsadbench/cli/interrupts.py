"""What Ctrl-C does to a command: the first is an exception that it can tidy up after, the second ends it at once.

Imports nothing that takes time, so that an interrupt can be expected before everything else is imported.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

EXIT_CODE = 130
_SHOW_CURSOR = b"\x1b[?25h"


def end_at_once(_number: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
    """End this process with one line; the server of the boxes sees that and ends them."""
    with contextlib.suppress(OSError):
        os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + b"interrupted: ended at once\n")
    os._exit(EXIT_CODE)


def interrupt_once(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; the next time, end at once."""
    signal.signal(signal.SIGINT, end_at_once)
    raise KeyboardInterrupt


def interrupted() -> bool:
    """Whether `interrupt_once` was called: an error after that may be an import that was cut short."""
    return signal.getsignal(signal.SIGINT) is end_at_once


def expect_interrupts() -> None:
    """End at once on Ctrl-C from now on, unless this process was told to ignore it, as those in the background are."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)
        atexit.register(_last)  # registered first, called last


def raise_interrupts() -> None:
    """From now on, let the first Ctrl-C be an exception, if it is expected at all."""
    if interrupted():
        signal.signal(signal.SIGINT, interrupt_once)


def _last() -> None:
    """Keep the exit code: a Ctrl-C from here on must not change it, nor Python's own end after an earlier one."""
    if interrupted():
        os._exit(EXIT_CODE)  # Python would end by the signal, if it has hit inside an `eval`
    signal.signal(signal.SIGINT, signal.SIG_IGN)
