"""Starts the processes that hold detectors: a box is forked from a server that has done the slow imports.

So a box starts in milliseconds, not in seconds. The server is a process in a session of its own. It serves one parent
over a socket and ends, with all its boxes, when that socket closes: a killed parent leaves nothing behind. It
constructs no detector and reads no data. Where there is no fork without an exec, each box is a server by itself.
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

from tsadbench.base.status import Seal
from tsadbench.errors import PluginError
from tsadbench.sandbox.limits import kill_group
from tsadbench.sandbox.seal.closing import SealStatus, close_box, move_in
from tsadbench.sandbox.seal.kernel import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, close_descriptors, prctl
from tsadbench.sandbox.seal.walls import Walls, gpu_devices, plan_walls
from tsadbench.sandbox.wire import BrokenFrameError, Header, receive, send

# Slow to import: the server preloads those of their modules that this process has loaded, or that detectors import.
_HEAVY = frozenset({"numpy", "scipy", "pandas", "sklearn", "joblib", "torch", "torch_geometric", "pydantic", "pyod"})
# What the first use of a loaded module imports, by that module: here PyTorch's first optimiser, which takes a second.
_LATE = {"torch": "torch._dynamo"}
# What every box needs: to answer questions, and to take over for the replay audit what a detector has learned.
_ALWAYS = ("tsadbench.sandbox.child", "tsadbench.sandbox.description", "safetensors.numpy")
_START_SECONDS = 120.0
_PATIENCE_SECONDS = 2.0
# Only what a program needs to start and to compute: no TSADBENCH_* variable, key or token reaches a detector. Which
# kernels OpenBLAS uses decides the last bits of scores.
_PASSED_ON = frozenset({
    "PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV",
    "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUBLAS_WORKSPACE_CONFIG",
    "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
})  # fmt: skip
_PROGRAM = "import sys; from tsadbench.sandbox.server import serve; serve(int(sys.argv[1]))"
_Broken = (OSError, EOFError, BrokenFrameError)


@dataclass(frozen=True, slots=True)
class Process:
    """A started process, the socket to it, and how well it is closed; it may write to one folder, its room."""

    pid: int
    sock: socket.socket
    seal: Seal
    reason: str
    room: str
    server: Server
    details: tuple[str, ...] = ()

    def kill(self) -> None:
        """Kill it and all that it has started; a copy of another box's process is killed by itself."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:  # it leads no group
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)

    def end(self) -> int:
        """Close the socket and return the exit code, negative if a signal ended it; a process that stays is killed."""
        self.sock.close()
        return self.server.end(self)


class Server:
    """Starts processes for boxes and tells how they ended.

    Without ``seal`` the kernel does not close them, which shows what that is good for. If it does not fork, each
    process is a fresh interpreter, which is slow.
    """

    # Apple's system libraries do not survive a fork without an exec.
    def __init__(self, *, seal: bool = True, forks: bool = sys.platform == "linux") -> None:
        self._seal = seal
        self._forks = forks
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._preloaded: set[str] = set()
        self._programs: dict[int, subprocess.Popen[bytes]] = {}
        self._folder = ""

    def warm(self) -> None:
        """Start it, so that it imports while this process goes on."""
        with self._lock:
            self._running()

    def preload(self, modules: Iterable[str]) -> None:
        """Import modules of well-known libraries before the next process starts; any other name is passed over."""
        with self._lock:
            new = sorted(_heavy(modules) - self._preloaded)
            self._preloaded.update(new)
            if new and self._control is not None:
                with contextlib.suppress(OSError):  # it has died: its successor is told when it starts
                    self._control.sendall(b"p")
                    send(self._control, {"preload": new})

    def start(self, log: int, walls: Walls) -> Process:
        """Start a process behind walls, whose standard output and error go to this file descriptor."""
        with self._lock:
            for _ in range(2):
                try:
                    return self._start(log, walls)
                except _Broken as error:  # it has died: the next one is its successor
                    self._give_up()
                    reason = type(error).__name__
        raise PluginError(f"{sys.executable}: no box can be started in this interpreter (its server ended: {reason})")

    def end(self, process: Process) -> int:
        """Return a process's exit code, after killing it if it does not end, and remove its room."""
        with self._lock:
            code = self._exit_code(process.pid)
        if code == -signal.SIGKILL or not self._forks:
            kill_group(process.pid)  # what it has left: no server does so
        remove_folder(process.room)
        return code

    def stop(self) -> None:
        """End all processes and remove their folder."""
        with self._lock:
            self._stop()

    def _start(self, log: int, walls: Walls) -> Process:
        control = self._running()
        room = tempfile.mkdtemp(dir=self._folder)
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(control, [b"f"], [theirs.fileno(), log])
            send(control, {"room": room, "walls": asdict(walls)})
            pid = _number(control, "pid")
        if not self._forks:  # this one serves as a box from here on: the next one needs another
            control.close()
            self._control = None
        try:
            told, _ = receive(ours)  # what it says first of all, before any code of a detector runs in it
        except _Broken:
            told = {"seal": "guarded", "reason": "its process ended before it was closed", "details": []}
        return Process(pid, ours, told["seal"], told["reason"], room, self, tuple(told["details"]))

    def _exit_code(self, pid: int) -> int:
        if not self._forks:
            program = self._programs.pop(pid)
            try:
                return program.wait(timeout=_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                program.kill()
                return program.wait()
        try:  # only the server, the process's parent, can read it
            if self._control is not None:
                self._control.sendall(b"e")
                send(self._control, {"pid": pid})
                return _number(self._control, "exit")
        except _Broken:
            self._give_up()
        return -signal.SIGKILL  # the server was killed, and its boxes with it

    def _running(self) -> socket.socket:
        self._folder = self._folder or os.path.realpath(tempfile.mkdtemp(prefix="tsadbench-box-"))
        if self._control is None:
            ours, theirs = socket.socketpair()
            ours.settimeout(_START_SECONDS)
            with theirs:
                started = _start_python(theirs)
            self._programs[started.pid] = started
            self._preloaded |= _heavy(tuple(sys.modules))
            preload = [*_ALWAYS, *sorted(self._preloaded)] if self._forks else []
            send(ours, {"preload": preload, "seal": self._seal, "forks": self._forks, "folder": self._folder})
            self._control = ours
        return self._control

    def _give_up(self) -> None:
        """Forget a server that does not answer, with its boxes."""
        if self._forks:
            self._stop()
        self._control = None

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        for program in self._programs.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(timeout=5)
            program.kill()
            program.wait()
        self._programs.clear()
        remove_folder(self._folder)
        self._folder = ""


@cache
def default_server() -> Server:
    """Return the server of this process."""
    server = Server()
    atexit.register(server.stop)
    return server


def seal_status() -> SealStatus:
    """Return how well this machine closes boxes, and why not better: one is started to find out."""
    with tempfile.TemporaryFile() as log:
        process = default_server().start(log.fileno(), plan_walls(import_path()))
        process.kill()
        process.end()
    devices = ", ".join(gpu_devices()) or "none here"
    details = (*process.details, f"GPUs, if a detector's device is not cpu: {devices}")
    return SealStatus(process.seal, process.reason, details)


def import_path() -> list[str]:
    """Return the import path of this process, absolute."""
    return list(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))


def remove_folder(folder: str) -> None:
    """Remove a folder, whatever a detector has made in it: no rights, or so deep that Python does not reach its end."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except (OSError, RecursionError):
        subprocess.run(["chmod", "-R", "u+rwx", folder], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", folder], check=False, capture_output=True)


def _start_python(theirs: socket.socket) -> subprocess.Popen[bytes]:
    passed_on = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith("LC_")}
    return subprocess.Popen(
        # -P: the working directory is on the import path only if it is on ours.
        [sys.executable, "-P", "-c", _PROGRAM, str(theirs.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(theirs.fileno(),),
        env={
            **passed_on,
            "PYTHONPATH": os.pathsep.join(import_path()),
            # One BLAS thread while importing: a fork copies no other thread, and a lock that one held would never be
            # released. The box sets its own number of threads later.
            "OPENBLAS_NUM_THREADS": "1",
            # Its locks lie in /dev/shm, which boxes must not share: it works with one process.
            "JOBLIB_MULTIPROCESSING": "0",
        },
        start_new_session=True,  # Ctrl-C reaches the parent alone, which decides what ends
    )


def _number(control: socket.socket, name: str) -> int:
    reply, _ = receive(control)
    if type(value := reply.get(name)) is not int:
        raise BrokenFrameError(f"the server's answer has no number {name}")
    return value


def _heavy(modules: Iterable[str]) -> set[str]:
    """Return the modules of well-known libraries except tests, and what they import late; a box may have named them."""
    parts = {name: name.split(".") for name in modules}
    found = {
        name
        for name, words in parts.items()
        if words[0] in _HEAVY and all(word.isidentifier() and "test" not in word for word in words)
    }
    return found | {late for first, late in _LATE.items() if first in found}


# Inside the server's process.


def serve(fd: int) -> None:
    """Preload the modules that the parent names, then fork, reap and kill boxes on its orders."""
    control = socket.socket(fileno=fd)
    orders, _ = receive(control)
    _preload(orders["preload"])
    if orders["forks"]:
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # what outlives its box becomes a child of this process, which waits for it
    boxes: set[int] = set()
    with contextlib.suppress(*_Broken):
        # One byte announces a request, a header follows. If a box is to be started, file descriptors come with it:
        # its end of a new socket, and the log. The header says what the box may reach, which box is to end, or what
        # is to be imported, to which there is no answer.
        while (request := socket.recv_fds(control, 1, 2))[0]:
            header, _ = receive(control)
            if "preload" in header:
                _preload(header["preload"])
            elif not request[1]:
                send(control, {"exit": _end(header["pid"], boxes)})
            elif orders["forks"]:
                send(control, {"pid": _fork(request[1], header, boxes, sealed=orders["seal"])})
            else:
                send(control, {"pid": os.getpid()})
                _become_box(request[1], header, sealed=orders["seal"])
    for pid in boxes:
        kill_group(pid)
    remove_folder(orders["folder"])


def _preload(modules: list[str]) -> None:
    from tsadbench.utils.threads import limit_threads

    for module in modules:
        with contextlib.suppress(Exception):  # a detector that needs it raises the error in its own box
            importlib.import_module(module)
    limit_threads(1)  # finds the libraries, so that the boxes need not
    # A box shares the server's memory until one of them writes, and the garbage collector writes to all that it visits.
    gc.freeze()


def _fork(fds: list[int], header: Header, boxes: set[int], *, sealed: bool) -> int:
    server = os.getpid()
    with warnings.catch_warnings():
        # Python warns if the process has threads, because a lock that one of them holds stays locked in the child.
        # This process has only imported, with one BLAS thread: none of its threads holds a lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if not pid:
        try:
            os.setsid()  # a group of its own: what a detector sends to "its" process group does not reach the server
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == server:  # else it died before the request above, which then has no effect
                _become_box(fds, header, sealed=sealed)
        finally:
            os._exit(1)  # a box must never return into the server's loop
    for fd in fds:
        os.close(fd)  # open in the box alone, so that the parent sees the socket close when the box ends
    boxes.add(pid)
    return pid


def _become_box(fds: list[int], header: Header, *, sealed: bool) -> None:
    from tsadbench.sandbox import child

    channel, log = fds
    os.dup2(log, 1)
    os.dup2(log, 2)
    if sealed and sys.platform == "linux":
        status = close_box(Walls(**header["walls"]), header["room"], channel)
    else:
        close_descriptors(channel)
        status = SealStatus("guarded", "only Linux can seal a process" if sealed else "it was not to be sealed")
    move_in(header["room"])
    child.main(channel, status)


def _end(pid: int, boxes: set[int]) -> int:
    """Wait for a box, kill it if it does not end, and return its exit code; nothing that it started is left."""
    if pid not in boxes:  # a box of a server that was killed, and its boxes with it
        return -signal.SIGKILL
    boxes.remove(pid)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    # Not reaped yet: as long as it is a zombie, no other group gets its number.
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None and time.monotonic() < deadline:
        time.sleep(0.002)
    kill_group(pid)
    _, status = os.waitpid(pid, 0)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-pid, os.WNOHANG) == (0, 0):
                time.sleep(0.001)
    return os.waitstatus_to_exitcode(status)
