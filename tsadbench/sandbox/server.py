"""Forks boxes from a process that has done the slow imports: a box starts in milliseconds, not in seconds.

Runs as ``python -m tsadbench.sandbox.server FD`` in a session of its own. It serves one parent over a socket and ends,
with all its boxes, when that socket closes: a killed parent leaves nothing behind.

The server constructs no detector and reads no data. It stays a clean process from which every box is forked alike.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import signal
import socket
import sys
import time
import warnings

from tsadbench.sandbox import child
from tsadbench.sandbox.process_tree import kill_process_tree
from tsadbench.sandbox.wire import BrokenFrameError, Header, receive, send
from tsadbench.utils.threads import limit_threads

_PATIENCE_SECONDS = 2.0
_PR_SET_PDEATHSIG = 1


def main(fd: int) -> None:
    """Preload the modules that the parent names, then fork, reap and kill boxes on its orders."""
    control = socket.socket(fileno=fd)
    for module in receive(control)[0]["preload"]:
        with contextlib.suppress(Exception):  # a detector that needs it raises the error in its own box
            importlib.import_module(module)
    limit_threads(1)  # finds the libraries, so that the boxes need not
    # A box shares the server's memory until one of them writes, and the garbage collector writes to all that it visits.
    gc.freeze()
    living: set[int] = set()
    while True:
        try:
            # One byte announces a request, a header follows. If a box is to be forked, file descriptors come with it:
            # its end of a new socket, and the log. The header says what the box may reach, or which box is to end.
            message, fds, _, _ = socket.recv_fds(control, 1, 2)
            if not message:
                break
            if fds:
                living.add(pid := _fork(control, fds, receive(control)[0]))
                send(control, {"pid": pid})
            else:
                send(control, _end(receive(control)[0]["pid"], living))
        except (OSError, EOFError, BrokenFrameError):
            break
    for pid in living:
        kill_process_tree(pid)


def _fork(control: socket.socket, fds: list[int], request: Header) -> int:
    server = os.getpid()
    with warnings.catch_warnings():
        # Python warns if the process has threads, because a lock that one of them holds stays locked in the child. This
        # process has only imported, with one BLAS thread: none of its threads holds a lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        for fd in fds:
            os.close(fd)  # open in the box alone, so that the parent sees the socket close when the box ends
        return pid
    try:
        _become_box(control, fds, server, request)
    finally:
        os._exit(1)  # a box must never return into the server's loop


def _become_box(control: socket.socket, fds: list[int], server: int, request: Header) -> None:
    control.close()  # the channel to the parent of all boxes: a detector could fork and kill others over it
    os.setsid()  # a group of its own: what a detector sends to "its" process group does not reach the server
    _die_with_parent(server)
    channel, log = fds
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    child.main(channel, request["room"])


def _die_with_parent(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the request above, which then has no effect
        os._exit(1)


def _end(pid: int, living: set[int]) -> Header:
    """Wait for a box, kill it if it does not end, and return its exit code."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    living.discard(pid)
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return {"exit": os.waitstatus_to_exitcode(status)}
        if time.monotonic() > deadline:
            kill_process_tree(pid)
            deadline = float("inf")
        time.sleep(0.002)


if __name__ == "__main__":
    main(int(sys.argv[1]))
