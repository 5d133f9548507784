"""What a detector might try, each as a function that returns what it got or raises; and a detector that tries it."""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import json
import os
import platform
import resource
import shutil
import signal
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
AARCH = platform.machine() == "aarch64"


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
        return f"got {globals()[what](argument)!r}"
    except Exception as error:
        return f"failed {type(error).__name__} {error}"


def kernel(number: int, *arguments: object) -> int:
    filled = (ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments)
    found = LIBC.syscall(ctypes.c_long(number), *filled)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


# Files: each returns the content of the file.


def reads(path):
    return Path(path).read_text()


def reads_natively(path):
    file = LIBC.open(path.encode(), os.O_RDONLY)
    if file < 0:
        raise OSError(ctypes.get_errno(), "open")
    return os.read(file, 100).decode()


def reads_by_a_program(path):
    return subprocess.run(["/bin/cat", path], capture_output=True, text=True, check=True).stdout


def reads_through_a_link(path):
    link = Path(tempfile.mkdtemp()) / "link"
    link.symlink_to(path)
    return link.read_text()


def reads_a_hard_link(path):
    link = Path(path).with_name("hard-link")
    os.link(path, link)
    return link.read_text()


def reads_through_proc(path):
    return Path(f"/proc/self/root{path}").read_text()


def lists(path):
    return "\n".join(sorted(os.listdir(Path(path).parent)))


# Changes to what is not the box's own.


def writes(path):
    Path(path).write_text("changed")


def creates(path):
    Path(path + ".new").write_text("new")


def truncates(path):
    os.truncate(path, 0)


def removes(path):
    os.unlink(path)


def renames(path):
    os.rename(path, path + ".old")


def changes_rights(path):
    os.chmod(path, 0o600)


def changes_times(path):
    os.utime(path, (1, 1))


def makes_a_folder(path):
    os.mkdir(path + ".folder")


# Sockets.


def opens_a_socket(argument):
    family, kind = map(int, argument.split())
    socket.socket(family, kind).close()


def connects(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)


def connects_abstractly(name):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect("\0" + name)


def connects_to_a_port(port):
    socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()


def makes_a_datagram_pair(_):
    for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        end.close()


# Other processes.


def signals(pid):
    os.kill(int(pid), 0)


def reads_memory_of(pid):
    with open(f"/proc/{pid}/mem", "rb"):
        pass


def reads_environment_of(pid):
    return Path(f"/proc/{pid}/environ").read_bytes()


def counts_processes(_):
    return sum(name.isdigit() for name in os.listdir("/proc"))


def limits_another(pid):
    return resource.prlimit(int(pid), resource.RLIMIT_CORE)


# Calls that are denied by number: each gets through outside, or fails for another reason than a missing right.


def traces(_):
    _in_a_child(lambda: LIBC.ptrace(0, 0, None, None))  # which ends: its parent would go on tracing it


def reads_by_call(_):
    source, target = ctypes.create_string_buffer(b"secret"), ctypes.create_string_buffer(6)
    pieces = [(ctypes.c_size_t * 2)(ctypes.addressof(one), 6) for one in (target, source)]
    kernel(270 if AARCH else 310, os.getpid(), pieces[0], ctypes.c_ulong(1), pieces[1], ctypes.c_ulong(1), 0)
    return target.value


def adds_a_key(_):
    return kernel(217 if AARCH else 248, b"user", b"tsadbench-test", b"secret", ctypes.c_size_t(6), -2) > 0


def makes_a_ring(_):
    os.close(kernel(425, 4, ctypes.create_string_buffer(120)))


def watches_a_folder(_):
    os.close(kernel(26 if AARCH else 294, 0))


def counts_performance(_):
    attributes = ctypes.create_string_buffer(128)
    attributes[0:8] = array.array("I", [1, 128]).tobytes()  # a software counter, of its own
    os.close(kernel(241 if AARCH else 298, attributes, 0, -1, -1, ctypes.c_ulong(0)))


def loads_a_program_into_the_kernel(_):
    kernel(280 if AARCH else 321, 0, ctypes.create_string_buffer(128), 128)


def enters_a_user_namespace(_):
    _in_a_child(lambda: LIBC.unshare(0x1000_0000))


def mounts(_):
    folder = tempfile.mkdtemp().encode()
    _in_a_child(lambda: LIBC.unshare(0x1002_0000) or LIBC.mount(b"none", folder, b"tmpfs", 0, None))


def hides_from_measurement(_):
    if LIBC.prctl(4, 0, 0, 0, 0):  # PR_SET_DUMPABLE
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _in_a_child(call):
    pid = os.fork()
    if not pid:
        os._exit(0 if call() == 0 else ctypes.get_errno())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))


# Things left for somebody else.


def makes_a_segment(_):
    return kernel(194 if AARCH else 29, 0x7ADB, ctypes.c_size_t(100), 0o1666) >= 0


def leaves_a_file(place):
    folder = place if place.startswith("/") else tempfile.gettempdir()
    with tempfile.NamedTemporaryFile(dir=folder, prefix="left-behind", delete=place.startswith("/")) as file:
        file.write(b"left")


def finds_a_file(_):
    return [name for folder in (tempfile.gettempdir(), os.path.expanduser("~"), ".") for name in os.listdir(folder)]


def leaves_what_is_hard_to_remove(_):
    os.mkdir("unreadable", 0o300)
    Path("unreadable/file").write_text("x")
    here = os.getcwd()
    for _depth in range(3000):
        os.mkdir("deep")
        os.chdir("deep")
    os.chdir(here)


def leaves_a_daemon(name):
    ready, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            LIBC.prctl(1, 0, 0, 0, 0)  # no death signal
            LIBC.prctl(15, name.encode(), 0, 0, 0)
            os.write(told, b"x")
            time.sleep(30)
        os._exit(0)
    os.wait()
    os.read(ready, 1)
    return "daemon"


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
                continue  # it stands for a file of /proc, and can do nothing
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
