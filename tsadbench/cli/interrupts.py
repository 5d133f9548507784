"""What Ctrl-C does to a command: the first is an exception that it can tidy up after, the second ends it at once.

Imports nothing that takes time, so that an interrupt can be expected before everything else is imported.
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
