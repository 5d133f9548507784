"""Starts the processes that hold detectors: forked from a warm server on Linux, as fresh interpreters elsewhere."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache

from tsadbench.errors import PluginError
from tsadbench.sandbox.closing import ClosedBox, SealStatus
from tsadbench.sandbox.process_tree import kill_process_tree
from tsadbench.sandbox.room import Building
from tsadbench.sandbox.walls import Walls, gpu_devices, plan_walls
from tsadbench.sandbox.wire import BrokenFrameError, receive, send

# Slow to import: the server preloads those of their modules that this process has loaded, or that detectors import.
_HEAVY = frozenset({"numpy", "scipy", "pandas", "sklearn", "joblib", "torch", "torch_geometric", "pydantic", "pyod"})
# What the first use of a loaded module imports, by that module: here PyTorch's first optimiser, which takes a second.
_LATE = {"torch": "torch._dynamo"}
# By which each trial takes over what a detector has learned, for the replay audit.
_OF_EVERY_TRIAL = ("safetensors.numpy",)
_START_SECONDS = 120.0
# What a box that describes a detector needs.
_QUESTIONS = "tsadbench.sandbox.description"
# Only what a program needs to start and to compute: no TSADBENCH_* variable, key or token reaches a detector.
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
        # Which kernels OpenBLAS uses: set where it chooses wrong ones for the processor. Without them, scores from the
        # box would differ from those outside in the last bits.
        "OPENBLAS_CORETYPE",
        "OPENBLAS_L2_SIZE",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_HOME",
        "CUBLAS_WORKSPACE_CONFIG",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
    }
)
_SERVER = """
import sys
from tsadbench.utils.linux.namespaces import keepers_or_reason
keepers = keepers_or_reason(wanted=sys.argv[2] == "sealed")
from tsadbench.sandbox.server import main
main(int(sys.argv[1]), keepers)
"""


@dataclass(frozen=True, slots=True)
class Process:
    """A started process, the socket to it, and how well it is closed; the keeper of its namespaces if it has any."""

    pid: int
    sock: socket.socket
    launcher: Launcher
    box: ClosedBox
    keeper: int = 0

    def kill(self) -> None:
        """Kill it and all its descendants."""
        kill_process_tree(self.pid)

    def end(self) -> int:
        """Close the socket and return the exit code, negative if a signal ended it; a process that stays is killed."""
        self.sock.close()
        code = self.launcher.end(self.pid)
        if self.box.room and not self.box.mounted:
            shutil.rmtree(self.box.room, ignore_errors=True)
        return code


class Launcher(ABC):
    """Starts processes and reports how they ended."""

    def warm(self) -> None:
        """Begin what makes the first start slow, without waiting for it."""

    def preload(self, modules: Iterable[str]) -> None:
        """Import modules of well-known libraries before the next process starts; any other name is passed over."""

    @abstractmethod
    def start(self, log: int, walls: Walls) -> Process:
        """Start a process behind walls, whose standard output and error go to this file descriptor."""

    def seal_status(self) -> SealStatus:
        """Return how well its processes are closed: one is started to find out."""
        with tempfile.TemporaryFile() as log:
            process = self.start(log.fileno(), plan_walls(import_path()))
            process.kill()
            process.end()
        devices = ", ".join(gpu_devices()) or "none here"
        details = (*process.box.details, f"GPUs, if a detector's device is not cpu: {devices}")
        return SealStatus(process.box.seal, process.box.reason, details)

    @abstractmethod
    def end(self, pid: int) -> int:
        """Wait for a process, kill it if it does not end, and return its exit code."""


class ForkServer(Launcher):
    """Forks processes from a server that has done the slow imports.

    Parameters
    ----------
    seal
        Whether the kernel closes them; False shows what it is good for.
    """

    def __init__(self, *, seal: bool = True) -> None:
        self._seal = seal
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._building: Building | None = None
        self._preloaded: set[str] = set()

    def warm(self) -> None:
        """Start the server, which imports while this process goes on."""
        with self._lock:
            self._running()

    def preload(self, modules: Iterable[str]) -> None:
        """Tell the server, which imports while this process goes on, or will when it starts."""
        with self._lock:
            new = sorted(_with_late(filter(_is_heavy, modules)) - self._preloaded)
            self._preloaded.update(new)
            if new and self._control is not None:
                with contextlib.suppress(OSError):  # it has died: its successor is told when it starts
                    self._control.sendall(b"p")
                    send(self._control, {"preload": new})

    def start(self, log: int, walls: Walls) -> Process:
        """Start a process, after restarting a server that has died."""
        with self._lock:
            try:
                return self._fork(log, walls)
            except (OSError, EOFError, BrokenFrameError):
                self._stop()
            try:
                return self._fork(log, walls)
            except (OSError, EOFError, BrokenFrameError) as error:
                self._stop()
                raise PluginError(
                    f"{sys.executable}: no box can be started in this interpreter (the server that boxes "
                    f"are forked from has ended: {type(error).__name__})"
                ) from error

    def end(self, pid: int) -> int:
        """Return the exit code, which only the server, the process's parent, can read."""
        with self._lock:
            try:
                control = self._running()
                control.sendall(b"e")
                send(control, {"pid": pid})
                return _numbers(control, "exit")[0]
            except (OSError, EOFError, BrokenFrameError):
                self._stop()
                return -9  # the server was killed, and its boxes with it (prctl in `server`)

    def stop(self) -> None:
        """End the server and all its boxes."""
        with self._lock:
            self._stop()

    def _fork(self, log: int, walls: Walls) -> Process:
        control = self._running()
        assert self._building is not None
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(control, [b"f"], [theirs.fileno(), log])
            send(control, {"room": str(self._building.folder), "walls": asdict(walls)})
            pid, keeper = _numbers(control, "pid", "keeper")
        return Process(pid, ours, self, _closed(ours), keeper)

    def _running(self) -> socket.socket:
        if self._control is None:
            ours, theirs = socket.socketpair()
            ours.settimeout(_START_SECONDS)
            with theirs:
                sealed = "sealed" if self._seal else "open"
                self._server = _start_python(["-c", _SERVER], theirs, subprocess.DEVNULL, sealed)
            self._preloaded.update(_heavy_modules())
            send(ours, {"preload": [_QUESTIONS, *_OF_EVERY_TRIAL, *sorted(self._preloaded)], "seal": self._seal})
            self._control = ours
            self._building = Building()
        return self._control

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._server is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(timeout=5)
            self._server.kill()
            self._server.wait()
        if self._building is not None:
            self._building.remove()
        self._control = self._server = self._building = None


class PlainLauncher(Launcher):
    """Starts a fresh interpreter for each process: slower, but possible on any POSIX system."""

    def __init__(self) -> None:
        self._started: dict[int, subprocess.Popen[bytes]] = {}
        self._building: Building | None = None

    def start(self, log: int, walls: Walls) -> Process:  # noqa: ARG002 - it has none
        """Start a fresh interpreter."""
        ours, theirs = socket.socketpair()
        if self._building is None:
            self._building = Building()
            atexit.register(self._building.remove)
        with theirs:
            started = _start_python(["-m", "tsadbench.sandbox.child"], theirs, log, str(self._building.folder))
        self._started[started.pid] = started
        return Process(started.pid, ours, self, _closed(ours))

    def end(self, pid: int) -> int:
        """Wait a moment, then kill it."""
        started = self._started.pop(pid)
        try:
            return started.wait(timeout=2)
        except subprocess.TimeoutExpired:
            started.kill()
            return started.wait()


@cache
def default_launcher() -> Launcher:
    """Return the launcher of this process: forking on Linux, plain elsewhere."""
    # Apple's system libraries do not survive a fork without an exec.
    if sys.platform != "linux":
        return PlainLauncher()
    server = ForkServer()
    atexit.register(server.stop)
    return server


def import_path() -> list[str]:
    """Return the import path of this process, absolute."""
    return list(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))


def _start_python(program: list[str], theirs: socket.socket, output: int, argument: str) -> subprocess.Popen[bytes]:
    """Start Python with one end of a socket and another argument, its output led to a file descriptor."""
    passed_on = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith("LC_")}
    return subprocess.Popen(
        # -P: the working directory is on the import path only if it is on ours.
        [sys.executable, "-P", *program, str(theirs.fileno()), argument],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(theirs.fileno(),),
        env={
            **passed_on,
            "PYTHONPATH": os.pathsep.join(import_path()),
            # One BLAS thread while importing: a fork copies no other thread, and a lock that one held would never be
            # released. The box sets its own number of threads later.
            "OPENBLAS_NUM_THREADS": "1",
        },
        start_new_session=True,  # Ctrl-C reaches the parent alone, which decides what ends
    )


def _closed(sock: socket.socket) -> ClosedBox:
    """Receive what a process says first of all, before any code of a detector runs in it."""
    try:
        told, _ = receive(sock)
    except (OSError, EOFError, BrokenFrameError):
        return ClosedBox("guarded", "its process ended before it was closed")
    return ClosedBox(**{**told, "details": tuple(told["details"])})


def _numbers(control: socket.socket, *names: str) -> list[int]:
    """Receive the server's answer, numbers of these names."""
    reply, _ = receive(control)
    numbers = [value for name in names if type(value := reply.get(name)) is int]
    if len(numbers) < len(names):
        raise BrokenFrameError(f"the server's answer has no numbers {', '.join(names)}")
    return numbers


def seal_status() -> SealStatus:
    """Return how well this machine closes boxes, and why not better."""
    return default_launcher().seal_status()


def _is_heavy(name: str) -> bool:
    """Whether a name, which may come from a box, is that of a module of a well-known library, and no test of it."""
    parts = name.split(".")
    return parts[0] in _HEAVY and all(part.isidentifier() and "test" not in part for part in parts)


def _heavy_modules() -> set[str]:
    return _with_late(filter(_is_heavy, tuple(sys.modules)))


def _with_late(modules: Iterable[str]) -> set[str]:
    named = set(modules)
    return named | {late for first, late in _LATE.items() if first in named}
