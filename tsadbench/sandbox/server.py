"""Starts the detectors' processes: boxes are forked from a server that has done the slow imports.

So a box starts in milliseconds instead of seconds. The server is a process in its own session. It serves one parent
over a socket and ends, with all its boxes, when that socket closes, even if the parent was killed. It constructs no
detector and reads no data. Where fork needs an exec (macOS), each box starts an interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache

import psutil

from tsadbench.errors import PluginError
from tsadbench.sandbox.seal.closing import SealStatus, close_box, move_in
from tsadbench.sandbox.seal.kernel import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, close_descriptors, prctl
from tsadbench.sandbox.seal.walls import Walls, plan_walls
from tsadbench.sandbox.wire import BrokenFrameError, Header, receive, send

# Slow to import: the server preloads their modules if this process has loaded them or detectors import them.
_HEAVY = frozenset({"numpy", "scipy", "pandas", "sklearn", "joblib", "torch", "torch_geometric", "pydantic", "pyod"})
# Module -> what its first use imports; PyTorch's first optimiser takes a second.
_LATE = {"torch": "torch._dynamo"}
# Needed by every box: to answer questions, and to restore learned state for the replay audit.
_ALWAYS = ("tsadbench.sandbox.child", "tsadbench.sandbox.description", "safetensors.numpy")
_START_SECONDS = 120.0
_PATIENCE_SECONDS = 2.0
# Only what a program needs to start and compute; no TSADBENCH_* variable, key or token reaches a detector. OpenBLAS's
# choice of kernels affects the last bits of scores.
_PASSED_ON = frozenset({
    "PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV",
    "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUBLAS_WORKSPACE_CONFIG",
    "PYTHONDONTWRITEBYTECODE",
})  # fmt: skip
# The import path is not passed by PYTHONPATH, or Python would run a sitecustomize.py of the current folder.
_RUN = "import sys; _, fd, at, *sys.path = sys.argv; from tsadbench.sandbox.server import {0}; {0}(int(fd), at)"
_Broken = (OSError, EOFError, BrokenFrameError)


@dataclass(frozen=True, slots=True)
class Process:
    """A started process with its socket, its seal, and its room, the one folder it may write to.

    A copy of a box's process has no server; it ends with the box.
    """

    pid: int
    sock: socket.socket
    status: SealStatus
    room: str
    server: Server | None

    def kill(self) -> None:
        """Kill the process and its children. A copy belongs to another process's group and is killed separately."""
        _kill_group(self.pid)
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)

    def end(self) -> int:
        """Close the socket, wait (then kill), and return the exit code; negative for a signal."""
        self.sock.close()
        if self.server is not None:
            return self.server.end(self)
        self.kill()
        return 1


class Server:
    """Starts processes for boxes and returns their exit codes.

    ``seal=False`` disables the kernel's seal, for comparison. Without ``forks``, each process starts an interpreter.
    """

    # Apple's system libraries break in a fork without an exec.
    def __init__(self, *, seal: bool = True, forks: bool = sys.platform == "linux") -> None:
        self._seal = seal
        self._forks = forks
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._preloaded: set[str] = set()
        self._program: subprocess.Popen[bytes] | None = None
        self._folder = ""

    def warm(self) -> None:
        """Start the server; it imports in the background."""
        with self._lock:
            self._running()

    def preload(self, modules: Iterable[str]) -> None:
        """Preload modules of well-known libraries before the next process starts; ignore other names."""
        with self._lock:
            new = sorted(_heavy(modules) - self._preloaded)
            self._preloaded.update(new)
            if new and self._forks and self._control is not None:
                with contextlib.suppress(OSError):  # it has died; its successor gets the same message
                    send(self._control, {"preload": new})

    def start(self, log: int, walls: Walls, threads: int = 1) -> Process:
        """Start a process behind walls; its standard output and error go to this file descriptor."""
        order = {"path": import_path(), "walls": asdict(walls), "threads": threads, "seal": self._seal}
        with self._lock:
            for _ in range(2):
                try:
                    return self._start(log, order)
                except _Broken as error:  # it has died; start its successor
                    self._stop()
                    reason = type(error).__name__
        raise PluginError(f"{sys.executable}: no box can be started in this interpreter (its server ended: {reason})")

    def end(self, process: Process) -> int:
        """Return a process's exit code, after killing it if it does not end, and remove its room."""
        code = -signal.SIGKILL  # if the server and its boxes were killed
        with self._lock:
            if self._control is not None:
                try:  # only the server, the process's parent, can read it
                    send(self._control, {"end": process.pid})
                    code = receive(self._control)[0]["exit"]
                except _Broken:
                    self._stop()
        if code == -signal.SIGKILL:
            _kill_group(process.pid)  # clean up, since no server does
        remove_folder(process.room)
        return code

    def stop(self) -> None:
        """End all processes and remove their folder."""
        with self._lock:
            self._stop()

    def _start(self, log: int, order: Header) -> Process:
        control = self._running()
        room = tempfile.mkdtemp(dir=self._folder)
        ours, theirs = socket.socketpair()
        with theirs:
            send(control, {"forks": self._forks})
            socket.send_fds(control, [b"f"], [theirs.fileno(), log])
            pid = receive(control)[0]["pid"]
        if pid < 0:
            raise PluginError("no box can be started: the machine runs too many processes")
        try:
            send(ours, {**order, "room": room})
            status = SealStatus(**receive(ours)[0])  # sent before any code of a detector runs
        except _Broken:
            status = SealStatus("guarded", "its process ended before it was sealed")
        return Process(pid, ours, status, room, self)

    def _running(self) -> socket.socket:
        if self._control is None:
            self._folder = os.path.realpath(tempfile.mkdtemp(prefix="tsadbench-box-"))
            ours, theirs = socket.socketpair()
            ours.settimeout(_START_SECONDS)
            with theirs:
                self._program = _start_python(theirs, self._folder)
            self._control = ours
            self._preloaded |= _heavy(tuple(sys.modules))
            if self._forks:
                send(ours, {"preload": [*_ALWAYS, *sorted(self._preloaded)]})
        return self._control

    def _stop(self) -> None:
        if self._control is not None and self._program is not None:
            self._control.close()
            self._control = None
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._program.wait(timeout=5)
            self._program.kill()
            self._program.wait()
            remove_folder(self._folder)


@cache
def default_server() -> Server:
    """Return the server of this process."""
    server = Server()
    atexit.register(server.stop)
    return server


def seal_status() -> SealStatus:
    """Start a box to find out whether this machine can seal boxes; if not, the status has the reason."""
    with tempfile.TemporaryFile() as log:
        process = default_server().start(log.fileno(), plan_walls(import_path()))
        process.kill()
        process.end()
    return process.status


def import_path() -> list[str]:
    """Return the import path of this process, absolute."""
    return list(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))


def remove_folder(folder: str) -> None:
    """Remove a folder even if a detector removed its permissions or nested it too deeply for Python."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if os.path.lexists(folder):
        subprocess.run(["chmod", "-R", "u+rwx", folder], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", folder], check=False, capture_output=True)


def _start_python(theirs: socket.socket, folder: str) -> subprocess.Popen[bytes]:
    passed_on = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith("LC_")}
    passed_on["PYTHONHASHSEED"] = "0"  # sets of texts have the same order in every run
    return subprocess.Popen(
        [sys.executable, "-c", _RUN.format("serve"), str(theirs.fileno()), folder, *import_path()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(theirs.fileno(),),
        env={
            **passed_on,
            # One BLAS thread while importing: a fork copies one thread only, and a lock held by another would never be
            # released. The box sets its own number of threads later.
            "OPENBLAS_NUM_THREADS": "1",
            # joblib's locks are in /dev/shm, which boxes must not share, so it uses one process.
            "JOBLIB_MULTIPROCESSING": "0",
        },
        start_new_session=True,  # Ctrl-C must reach only the parent, which decides what to end
    )


def _heavy(modules: Iterable[str]) -> set[str]:
    """Keep modules of well-known libraries, except tests, and add their late imports; a box may have sent the names."""
    named = (name for name in modules if name.partition(".")[0] in _HEAVY and "test" not in name)
    found = {name for name in named if all(map(str.isidentifier, name.split(".")))}
    return found | {late for first, late in _LATE.items() if first in found}


# Inside the server's process.


def serve(fd: int, folder: str) -> None:
    """Import modules, start and end boxes for the parent; when it closes the socket, end all and remove the folder."""
    control, memory = socket.socket(fileno=fd), psutil.virtual_memory()
    psutil.virtual_memory = lambda: memory  # aeon asks for it, and boxes may not read /proc/meminfo
    if sys.platform == "linux":
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans of a box become children of this process, which reaps them
    boxes: set[int] = set()
    with contextlib.suppress(*_Broken):
        while True:
            order, _ = receive(control)
            if "preload" in order:
                _preload(order["preload"])
            elif "end" in order:
                send(control, {"exit": _end(order["end"], boxes)})
            else:  # followed by the box's end of a new socket, and by its log
                send(control, {"pid": _fork(socket.recv_fds(control, 1, 2)[1], boxes, forks=order["forks"])})
    for pid in boxes:
        _kill_group(pid)
    remove_folder(folder)


def _preload(modules: list[str]) -> None:
    from tsadbench.utils.numerics import limit_threads

    for module in modules:
        with contextlib.suppress(Exception):  # a detector that needs the module raises the error in its box
            importlib.import_module(module)
    limit_threads(1)  # find the libraries once, for all boxes
    # Boxes share the server's memory copy-on-write, and the garbage collector writes to every object that it visits.
    gc.freeze()


def _fork(fds: list[int], boxes: set[int], *, forks: bool) -> int:
    server, pid, deadline = os.getpid(), -1, time.monotonic() + _PATIENCE_SECONDS
    with warnings.catch_warnings():
        # Python warns about forks of processes with threads, whose locks would stay locked in the child.
        # This process has only imported, with one BLAS thread, so no thread holds a lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        while pid < 0 and time.monotonic() < deadline:
            try:
                pid = os.fork()
            except OSError:
                time.sleep(0.02)  # no room for a process: the box that fills the machine ends soon
    if not pid:
        try:
            os.setsid()  # its own process group: signals to "its" group do not reach the server
            if sys.platform == "linux":
                prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            channel, log = fds
            os.dup2(log, 1)
            os.dup2(log, 2)
            if os.getppid() != server:
                pass  # the server died before the request to end with it
            elif forks:
                become_box(channel)
            else:
                os.set_inheritable(channel, True)
                os.execv(sys.executable, [sys.executable, "-c", _RUN.format("become_box"), str(channel), "", *sys.path])
        finally:
            os._exit(1)  # a box must never return into the server's loop
    for fd in fds:
        os.close(fd)  # open only in the box, so that the socket closes when the box ends
    if pid > 0:
        boxes.add(pid)
    return pid


def become_box(fd: int, _folder: str = "") -> None:
    """Seal this process as the parent requests, then serve it."""
    from tsadbench.sandbox import child

    order, _ = receive(channel := socket.socket(fileno=fd))
    walls = Walls(**order["walls"])
    sys.path[:], os.environ["PYTHONPATH"] = order["path"], os.pathsep.join(order["path"])
    if order["seal"] and sys.platform == "linux":
        status = close_box(walls, order["room"], fd)
    else:
        close_descriptors(fd)
        status = SealStatus("guarded", "only Linux can seal a process" if order["seal"] else "sealing was switched off")
    move_in(order["room"])
    child.main(channel, status, walls, order["threads"])


def _end(pid: int, boxes: set[int]) -> int:
    """Wait for a box (then kill it and its children), and return its exit code."""
    if pid not in boxes:  # a box of an earlier server that was killed
        return -signal.SIGKILL
    boxes.remove(pid)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    # Not reaped yet, so that no other process group can get its number.
    while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.002)
    _kill_group(pid)
    _, status = os.waitpid(pid, 0)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-pid, os.WNOHANG) == (0, 0):
                time.sleep(0.001)
    return os.waitstatus_to_exitcode(status)


def _kill_group(pid: int) -> None:
    """Kill a box's whole process group at once, so that no fork escapes."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
