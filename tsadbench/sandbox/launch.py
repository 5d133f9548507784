"""Starts the processes that hold detectors: forked from a warm server where the system can, else plainly."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache

from tsadbench.sandbox.limits import family
from tsadbench.sandbox.wire import BrokenFrameError, receive, send

# Only what a program needs to start and to compute: no TSADBENCH_*, keys or tokens reach a detector.
_PASSED_ON = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        # Which kernels the linear algebra uses: set on processors on which OpenBLAS chooses wrong ones.
        "OPENBLAS_CORETYPE",
        "OPENBLAS_L2_SIZE",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_HOME",
        "CUBLAS_WORKSPACE_CONFIG",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
    }
)
# What takes long to import; the server preloads those of their modules that planning has loaded here.
_HEAVY = frozenset({"numpy", "scipy", "pandas", "sklearn", "joblib", "torch", "torch_geometric", "pydantic", "pyod"})
_START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Process:
    """A started process and the socket to it."""

    pid: int
    sock: socket.socket
    launcher: Launcher

    def kill(self) -> None:
        """Kill it and all its descendants."""
        for process in reversed(family(self.pid)):
            with contextlib.suppress(Exception):
                process.kill()

    def end(self) -> int:
        """Return its exit code, negative where a signal ended it; it is killed where it does not end by itself."""
        self.sock.close()
        return self.launcher.end(self.pid)


class Launcher(ABC):
    """Starts processes and tells how they ended."""

    def warm(self) -> None:
        """Begin whatever makes the first start slow, and do not wait for it."""

    @abstractmethod
    def start(self, log: int) -> Process:
        """Start a process whose standard output and error go to this file descriptor."""

    @abstractmethod
    def end(self, pid: int) -> int:
        """Return the exit code of a process that ends, or is killed after a while."""


class ForkServer(Launcher):
    """Forks processes from one that has the heavy imports behind it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def warm(self) -> None:
        """Start the server: it imports while this process goes on."""
        with self._lock:
            self._running()

    def start(self, log: int) -> Process:
        """Start a process; a server that is gone is started again."""
        with self._lock:
            try:
                return self._fork(log)
            except (OSError, EOFError, BrokenFrameError):
                self._stop()
                return self._fork(log)

    def end(self, pid: int) -> int:
        """Return the exit code; the server, its parent, knows it."""
        with self._lock:
            try:
                control = self._running()
                control.sendall(b"e")
                send(control, {"pid": pid})
                return int(receive(control)[0]["exit"])
            except (OSError, EOFError, BrokenFrameError):
                self._stop()
                return -9  # the server was killed, and its boxes with it

    def stop(self) -> None:
        """End the server and all its boxes."""
        with self._lock:
            self._stop()

    def _fork(self, log: int) -> Process:
        control = self._running()
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(control, [b"f"], [theirs.fileno(), log])
            return Process(int(receive(control)[0]["pid"]), ours, self)

    def _running(self) -> socket.socket:
        if self._control is None:
            ours, theirs = socket.socketpair()
            ours.settimeout(_START_SECONDS)
            with theirs:
                self._server = _popen("tsadbench.sandbox.server", theirs, subprocess.DEVNULL)
            send(ours, {"preload": _heavy_modules()})
            self._control = ours
        return self._control

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._server is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(timeout=5)
            self._server.kill()
            self._server.wait()
        self._control = self._server = None


class PlainLauncher(Launcher):
    """Starts each process anew: slower, but any system can."""

    def __init__(self) -> None:
        self._started: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, log: int) -> Process:
        """Start a fresh interpreter."""
        ours, theirs = socket.socketpair()
        with theirs:
            started = _popen("tsadbench.sandbox.child", theirs, log)
        self._started[started.pid] = started
        return Process(started.pid, ours, self)

    def end(self, pid: int) -> int:
        """Wait for it a little, then kill it."""
        started = self._started.pop(pid)
        try:
            return started.wait(timeout=2)
        except subprocess.TimeoutExpired:
            started.kill()
            return started.wait()


@cache
def default_launcher() -> Launcher:
    """Return the launcher of this process: forking on Linux, where libraries stand it, plain elsewhere."""
    if sys.platform != "linux":
        return PlainLauncher()
    server = ForkServer()
    atexit.register(server.stop)
    return server


def _popen(module: str, theirs: socket.socket, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        # -P: the working directory is not on the import path unless it is on ours.
        [sys.executable, "-P", "-m", module, str(theirs.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(theirs.fileno(),),
        env=_environment(),
        start_new_session=True,  # Ctrl-C is ours to answer
    )


def _environment() -> dict[str, str]:
    passed_on = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith("LC_")}
    return {
        **passed_on,
        "PYTHONPATH": os.pathsep.join(import_path()),
        # One BLAS thread while importing: a process without threads forks safely. The box sets its own number later.
        "OPENBLAS_NUM_THREADS": "1",
        # Threads that spin while they wait bring each other to a standstill where boxes share their cores.
        "OMP_WAIT_POLICY": "PASSIVE",
    }


def import_path() -> list[str]:
    """Return the caller's import path, absolute."""
    return list(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))


def _heavy_modules() -> list[str]:
    ours = ["tsadbench.sandbox.child", "tsadbench.base.detector", "tsadbench.registry"]
    return [*ours, *sorted(name for name in tuple(sys.modules) if name.partition(".")[0] in _HEAVY)]
