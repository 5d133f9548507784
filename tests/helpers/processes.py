"""Processes that may end, or have ended, while a test looks at them."""

from __future__ import annotations

import psutil


def is_alive(process: psutil.Process | int) -> bool:
    """Say whether a process, or the one with a given id, is running; a zombie is not."""
    try:
        found = psutil.Process(process) if isinstance(process, int) else process
        return found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def boxes(of: int | None = None) -> list[psutil.Process]:
    """Return the boxes below a process: only they have a second thread, which watches their parent."""
    this = psutil.Process(of).pid
    return [process for process in children(of) if process.ppid() != this and process.num_threads() > 1]


def children(of: int | None = None) -> list[psutil.Process]:
    """Return the running processes below one (default: this one), at any depth."""
    found = []
    for process in psutil.Process(of).children(recursive=True):
        try:
            if is_alive(process):
                found.append(process)
        except psutil.Error:  # it ended just now
            continue
    return found
