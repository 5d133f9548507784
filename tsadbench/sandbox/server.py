"""Forks boxes from a process that has the heavy imports behind it: a box is there in milliseconds, not in seconds.

Runs as ``python -m tsadbench.sandbox.server FD`` in a session of its own. It serves one parent over a socket and ends,
with all its boxes, when that socket closes: a killed parent leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import socket
import sys
import time
import warnings

from tsadbench.sandbox.limits import family
from tsadbench.sandbox.wire import BrokenFrameError, Header, receive, send

_PATIENCE_SECONDS = 2.0
_PR_SET_PDEATHSIG = 1


def main(fd: int) -> None:
    """Preload the modules that the parent names, then fork, reap and kill as it says."""
    control = socket.socket(fileno=fd)
    for module in receive(control)[0]["preload"]:
        with contextlib.suppress(Exception):  # the detector that needs it will say so itself
            importlib.import_module(module)
    living: set[int] = set()
    while True:
        try:
            message, fds, _, _ = socket.recv_fds(control, 1, 2)
            if not message:
                break
            if fds:
                living.add(pid := _fork(control, fds))
                send(control, {"pid": pid})
            else:
                send(control, _end(receive(control)[0]["pid"], living))
        except (OSError, EOFError, BrokenFrameError):
            break
    for pid in living:
        kill_family(pid)


def kill_family(pid: int) -> None:
    """Kill a process and all its descendants."""
    for process in reversed(family(pid)):
        with contextlib.suppress(Exception):
            process.kill()


def _fork(control: socket.socket, fds: list[int]) -> int:
    server = os.getpid()
    with warnings.catch_warnings():
        # Python warns of threads; this process has none that hold locks: it has only imported.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        for fd in fds:
            os.close(fd)
        return pid
    try:
        _become_box(control, fds, server)
    finally:
        os._exit(1)  # never back into the server's loop


def _become_box(control: socket.socket, fds: list[int], server: int) -> None:
    from tsadbench.sandbox import child

    control.close()
    os.setsid()
    _die_with_parent(server)
    channel, log = fds
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    child.main(channel)


def _die_with_parent(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked to be told
        os._exit(1)


def _end(pid: int, living: set[int]) -> Header:
    """Return how a box ended; one that does not end by itself is killed."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    living.discard(pid)
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return {"exit": os.waitstatus_to_exitcode(status)}
        if time.monotonic() > deadline:
            kill_family(pid)
            deadline = float("inf")
        time.sleep(0.002)


if __name__ == "__main__":
    main(int(sys.argv[1]))
