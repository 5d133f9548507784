"""A process tree: a process and all its descendants, which a box may have started."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection

import psutil


def process_tree(pid: int, keeper: int = 0) -> list[psutil.Process]:
    """Return a process and its descendants, as far as they are alive.

    Parameters
    ----------
    pid
        The process.
    keeper
        The first process of the namespace in which it lives, if it has one of its own: descendants whose parents have
        ended are that one's children.
    """
    with contextlib.suppress(psutil.Error):
        return [psutil.Process(pid), *descendants(pid, keeper)]
    return descendants(0, keeper)


def descendants(pid: int, keeper: int = 0) -> list[psutil.Process]:
    """Return the descendants of a process that are alive; parameters as for `process_tree`."""
    found = []
    for ancestor in (pid, keeper):
        with contextlib.suppress(psutil.Error):
            # To find them, every process of the machine is visited.
            if ancestor and _has_children(ancestor):
                found += psutil.Process(ancestor).children(recursive=True)
    return found


def kill_process_tree(pid: int) -> None:
    """Kill a process and its descendants."""
    # Descendants first: those of a dead process are handed to another parent, under which nobody would find them.
    for process in reversed(process_tree(pid)):
        with contextlib.suppress(psutil.Error):
            process.kill()


def resident_mib(pid: int, keeper: int = 0, without: Collection[int] = ()) -> float:
    """Return the resident size of a process and its descendants, in MiB, without those of some ids.

    The other parameters are as for `process_tree`.
    """
    total = 0
    for process in process_tree(pid, keeper):
        if process.pid in without:
            continue
        with contextlib.suppress(psutil.Error):  # it has just ended
            total += process.memory_info().rss
    return total / 2**20


def _has_children(pid: int) -> bool:
    try:
        return any(_children(pid, task) for task in os.listdir(f"/proc/{pid}/task"))
    except OSError:  # a kernel without these files, another system, or a thread that has just ended
        return True


def _children(pid: int, task: str) -> bytes:
    with open(f"/proc/{pid}/task/{task}/children", "rb", buffering=0) as file:
        return file.read(1)
