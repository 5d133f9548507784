"""What a detector might try, as functions that return what they got or raise; and a detector that tries them."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from tests.helpers.boxed import Sums

LIBC = ctypes.CDLL(None, use_errno=True)


class Tries(Sums):
    """Tries several things, ``[[what, argument], ...]`` as JSON, and prints a line for each."""

    def __init__(self, *, attempts: str = "[]") -> None:
        self.attempts = attempts

    def _fit(self, recordings):
        for what, argument in json.loads(self.attempts):
            print(json.dumps(outcome(what, argument)))


def outcome(what: str, argument: str) -> str:
    """Return ``got ...`` or ``failed ...``."""
    try:
        return f"got {(WAYS.get(what) or globals()[what])(argument)!r}"
    except Exception as error:
        return f"failed {type(error).__name__} {error}"


# Each reads, changes or opens something that does not belong to the box.
WAYS = {
    "reads": lambda path: Path(path).read_text(),
    "reads_through_proc": lambda path: Path(f"/proc/self/root{path}").read_text(),
    "lists": lambda path: "\n".join(sorted(os.listdir(Path(path).parent))),
    "writes": lambda path: Path(path).write_text("changed"),
    "creates": lambda path: Path(path + ".new").write_text("new"),
    "truncates": lambda path: os.truncate(path, 0),
    "removes": os.unlink,
    "renames": lambda path: os.rename(path, path + ".old"),
    "changes_rights": lambda path: os.chmod(path, 0o600),
    "changes_times": lambda path: os.utime(path, (1, 1)),
    "makes_a_folder": lambda path: os.mkdir(path + ".folder"),
    "opens_a_socket": lambda kind: socket.socket(*map(int, kind.split())).close(),
    "signals": lambda pid: os.kill(int(pid), 0),
    "reads_memory_of": lambda pid: open(f"/proc/{pid}/mem", "rb").close(),
    "reads_environment_of": lambda pid: Path(f"/proc/{pid}/environ").read_bytes(),
    "limits_another": lambda pid: resource.prlimit(int(pid), resource.RLIMIT_CORE),
    "counts_processes": lambda _: sum(name.isdigit() for name in os.listdir("/proc")),
    "makes_a_datagram_pair": lambda _: [end.close() for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)],
}


def reads_natively(path):
    file = LIBC.open(path.encode(), os.O_RDONLY)
    if file < 0:
        raise OSError(ctypes.get_errno(), "open")
    return os.read(file, 100).decode()


# System calls that the seal denies. Outside, each succeeds, or fails for another reason than missing rights.


def traces(_):
    pid = os.fork()  # the child ends: its parent would go on tracing it
    if not pid:
        os._exit(0 if LIBC.ptrace(0, 0, None, None) == 0 else ctypes.get_errno())
    if code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError(code, os.strerror(code))


def reads_by_call(_):
    source, target = ctypes.create_string_buffer(b"secret"), ctypes.create_string_buffer(6)
    pieces = [(ctypes.c_size_t * 2)(ctypes.addressof(one), 6) for one in (target, source)]
    number, one = ctypes.c_long(270 if platform.machine() == "aarch64" else 310), ctypes.c_ulong(1)
    if LIBC.syscall(number, ctypes.c_long(os.getpid()), pieces[0], one, pieces[1], one, ctypes.c_ulong(0)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return target.value


def hides_from_measurement(_):
    if LIBC.prctl(4, 0, 0, 0, 0):  # PR_SET_DUMPABLE
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


# What honest code does.


def knows_itself(_):
    lines = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    rights = {name: lines[name].strip() for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")}
    return json.dumps(rights)


def lists_descriptors(_):
    kept = {}
    for number in range(1000):
        with contextlib.suppress(OSError):
            if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_PATH:
                continue  # it only names a file of /proc
            kept[number] = stat.S_IFMT(os.fstat(number).st_mode)
    return kept


def works_honestly(_):
    from zoneinfo import ZoneInfo

    import joblib
    import psutil
    import sklearn.cluster
    import sklearn.ensemble

    done = []
    thread = threading.Thread(target=done.append, args=("thread",))
    thread.start()
    thread.join()
    done.append(sum(joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-n) for n in (1, 2, 3))))
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("kept")
        file.seek(0)
        done.append(file.read())
    Path("here.txt").write_text("here")
    Path.home().joinpath("there.txt").write_text("there")
    os.chmod("here.txt", 0o600)
    shutil.copy2("here.txt", Path.home() / "copy.txt")
    sklearn.ensemble.IsolationForest(n_estimators=2, random_state=0).fit(np.eye(3))
    sklearn.cluster.KMeans(2, n_init=1).fit(np.eye(3))  # limits threads by what /proc/self/maps says
    subprocess.run([sys.executable, "-c", "import numpy, ssl, sqlite3"], check=True)
    done += [ZoneInfo("Europe/Berlin").key, psutil.virtual_memory().total > 0, (os.cpu_count() or 0) > 0]
    done.append(psutil.Process().memory_info().rss > 0)
    done.append(len(os.urandom(4)) + open(os.devnull, "w").write("x"))  # noqa: SIM115
    a, b = socket.socketpair()
    a.send(b"pair")
    return [*done, b.recv(4)]


def looks_around(package):
    """Return the files next to a package and in it."""
    folder = Path(__import__(package).__file__).parent
    # Folders are opened natively: the guard would end the process before the kernel answers.
    handles = [LIBC.open(str(one).encode(), os.O_RDONLY) for one in (folder.parent, folder)]
    return tuple("denied" if one < 0 else sorted(set(os.listdir(one)) - {"__pycache__"}) for one in handles)


def swells_as_an_orphan(_):
    if os.fork() == 0:
        if os.fork() == 0:
            kept = np.ones(100 * 2**20)
            time.sleep(60 + 0 * len(kept))
        os._exit(0)
    os.wait()
    time.sleep(60)


def fills_its_folder(_):
    for number in range(2):
        Path(str(number)).write_bytes(bytes(300 * 2**20))
    time.sleep(60)


def makes_threads(_):
    for _number in range(5000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    time.sleep(60)
