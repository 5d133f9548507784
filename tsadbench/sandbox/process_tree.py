"""A process tree: a process and all its descendants, which a box may have started."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

import psutil


def process_tree(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants, as far as they are alive."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def kill_process_tree(pid: int) -> None:
    """Kill a process and its descendants."""
    # Descendants first: those of a dead process are handed to another parent, under which nobody would find them.
    for process in reversed(process_tree(pid)):
        with contextlib.suppress(psutil.Error):
            process.kill()


def resident_mib(pid: int, without: Collection[int] = ()) -> float:
    """Return the resident size of a process and its descendants, in MiB, without those of these ids."""
    total = 0
    for process in process_tree(pid):
        if process.pid in without:
            continue
        with contextlib.suppress(psutil.Error):  # it has just ended
            total += process.memory_info().rss
    return total / 2**20
