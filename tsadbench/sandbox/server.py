"""Forks boxes from a process that has done the slow imports: a box starts in milliseconds, not in seconds.

Started by `tsadbench.sandbox.launch`, in a session of its own. It serves one parent over a socket and ends,
with all its boxes, when that socket closes: a killed parent leaves nothing behind.

The server constructs no detector and reads no data. It stays a clean process from which every box is forked alike.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import time
import warnings

import psutil

from tsadbench.sandbox import child
from tsadbench.sandbox.closing import close_box, opened_box
from tsadbench.sandbox.process_tree import kill_process_tree
from tsadbench.sandbox.walls import Walls
from tsadbench.sandbox.wire import BrokenFrameError, Header, receive, send
from tsadbench.utils.linux.kernel import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, prctl
from tsadbench.utils.linux.namespaces import Keeper, Keepers, children_enter
from tsadbench.utils.threads import limit_threads

_PATIENCE_SECONDS = 2.0


class _Server:
    """Forks boxes and ends them.

    Parameters
    ----------
    control
        The socket to the parent.
    sealed
        Whether boxes are closed.
    keepers
        Makes their namespaces; else why there are none.
    """

    def __init__(self, control: socket.socket, *, sealed: bool, keepers: Keepers | str) -> None:
        self._control = control
        self._sealed = sealed
        self._keepers = keepers
        self._living: dict[int, Keeper | None] = {}
        self._adopts = sealed and isinstance(keepers, str)
        if self._adopts:
            prctl(PR_SET_CHILD_SUBREAPER, 1)  # what outlives its box becomes a child of this process

    def serve(self) -> None:
        """Answer the parent until the socket closes, then end all boxes."""
        with contextlib.suppress(OSError, EOFError, BrokenFrameError):
            # One byte announces a request, a header follows. If a box is to be forked, file descriptors come with it:
            # its end of a new socket, and the log. The header says what the box may reach, which box is to end, or what
            # is to be imported, to which there is no answer.
            while (request := socket.recv_fds(self._control, 1, 2))[0]:
                header, _ = receive(self._control)
                if "preload" in header:
                    _preload(header["preload"])
                else:
                    send(self._control, self._fork(request[1], header) if request[1] else self._end(header["pid"]))
        for pid in self._living:
            kill_process_tree(pid)
        self._living.clear()
        self._end_orphans()

    def _fork(self, fds: list[int], header: Header) -> Header:
        server = os.getpid()
        keeper = None if isinstance(self._keepers, str) else self._keepers.take()
        if keeper is not None:
            children_enter(keeper)
        with warnings.catch_warnings():
            # Python warns if the process has threads, because a lock that one of them holds stays locked in the child.
            # This process has only imported, with one BLAS thread: none of its threads holds a lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            try:
                self._become_box(fds, keeper, server, header)
            finally:
                os._exit(1)  # a box must never return into the server's loop
        for fd in fds:
            os.close(fd)  # open in the box alone, so that the parent sees the socket close when the box ends
        self._living[pid] = keeper
        return {"pid": pid, "keeper": 0 if keeper is None else keeper.pid}

    def _become_box(self, fds: list[int], keeper: Keeper | None, server: int, header: Header) -> None:
        os.setsid()  # a group of its own: what a detector sends to "its" process group does not reach the server
        _die_with_parent(server)
        channel, log = fds
        os.dup2(log, 1)
        os.dup2(log, 2)
        room = header["room"]
        if self._sealed:
            missing = self._keepers if isinstance(self._keepers, str) else ""
            box = close_box(Walls(**header["walls"]), room, keeper, missing, channel)
        else:
            box = opened_box(room, "it was not to be sealed", channel)
        child.main(channel, box)

    def _end(self, pid: int) -> Header:
        """Wait for a box, kill it if it does not end, and return its exit code; nothing that it started is left."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        if pid not in self._living:  # a box of a server that was killed, and its boxes with it
            return {"exit": -signal.SIGKILL}
        keeper = self._living.pop(pid)
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                kill_process_tree(pid)
                deadline = float("inf")
            time.sleep(0.002)
        if keeper is not None:
            keeper.end()
        else:
            self._end_orphans()
        return {"exit": os.waitstatus_to_exitcode(status)}

    def _end_orphans(self) -> None:
        """Kill all children of this process that are no boxes. Without namespaces, nobody can tell whose they were."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._adopts and time.monotonic() < deadline:
            orphans = [one.pid for one in psutil.Process().children() if one.pid not in self._living]
            if not orphans:
                break
            for pid in orphans:
                kill_process_tree(pid)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def main(fd: int, keepers: Keepers | str) -> None:
    """Preload the modules that the parent names, then fork, reap and kill boxes on its orders.

    Parameters
    ----------
    fd
        The socket to the parent.
    keepers
        As for `_Server`: it has to be made before this module, and all that it imports, is loaded.
    """
    control = socket.socket(fileno=fd)
    orders, _ = receive(control)
    _preload(orders["preload"])
    _Server(control, sealed=orders["seal"], keepers=keepers).serve()


def _preload(modules: list[str]) -> None:
    for module in modules:
        with contextlib.suppress(Exception):  # a detector that needs it raises the error in its own box
            importlib.import_module(module)
    # Finds the libraries, so that the boxes need not.
    limit_threads(1)
    # A box shares the server's memory until one of them writes, and the garbage collector writes to all that it visits.
    gc.freeze()


def _die_with_parent(parent: int) -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # It died before the request above, which then has no effect. A parent in other namespaces has the number 0.
    if os.getppid() not in (parent, 0):
        os._exit(1)
