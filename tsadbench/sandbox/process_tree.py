"""A process tree: a process and all its descendants, which a box may have started."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from pathlib import Path

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
    found = []
    with contextlib.suppress(psutil.Error):
        found += [psutil.Process(pid), *_descendants(pid)]
    with contextlib.suppress(psutil.Error):
        found += _descendants(keeper)
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


def _descendants(pid: int) -> list[psutil.Process]:
    # To find them, every process of the machine is visited.
    return psutil.Process(pid).children(recursive=True) if pid and _has_children(pid) else []


def _has_children(pid: int) -> bool:
    try:
        return any(Path(f"/proc/{pid}/task/{task}/children").read_bytes() for task in os.listdir(f"/proc/{pid}/task"))
    except OSError:  # a kernel without these files, another system, or a thread that has just ended
        return True
