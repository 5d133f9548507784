"""Processes that may end, or have ended, while a test looks at them."""

from __future__ import annotations

import psutil


def is_alive(process: psutil.Process | int) -> bool:
    """Say whether a process (or a number of one) runs: not one that has ended and that nobody has waited for."""
    try:
        found = psutil.Process(process) if isinstance(process, int) else process
        return found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def boxes(of: int | None = None) -> list[psutil.Process]:
    """Return the boxes below a process: they watch for their end in a thread, as no other child of the server does."""
    this = psutil.Process(of).pid
    return [process for process in children(of) if process.ppid() != this and process.num_threads() > 1]


def children(of: int | None = None, holding: str = "") -> list[psutil.Process]:
    """Return the processes below one (this one), at any depth, that run and whose command line holds a text."""
    found = []
    for process in psutil.Process(of).children(recursive=True):
        try:
            if is_alive(process) and holding in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:  # it ended just now
            continue
    return found
