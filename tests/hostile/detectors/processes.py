"""Other processes: their environment, memory and descriptors, and signals to them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path

from tests.hostile.preamble import (
    LIBC,
    WHERE,
    Courier,
    Hostile,
    attempts,
    parents,
    reached,
    relatives,
    siblings,
    system_call,
)

_CANARY = re.compile(rb"canary-[0-9a-f]{16}-[a-z]+")


class ReadsTheEnvironment(Hostile):
    """reads its own environment and those of its parents for tokens"""

    def steal(self):
        yield "\n".join(os.environ.values())
        yield from attempts(lambda: Path("/proc/self/environ").read_bytes())
        for pid in relatives():
            yield from attempts(lambda pid=pid: Path(f"/proc/{pid}/environ").read_bytes())


class SearchesTheHarness(Hostile):
    """searches the memory of the harness for labels and tokens (/proc/PID/mem)"""

    def steal(self):
        for pid in relatives()[:3]:
            with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                for line in maps:
                    first, last = (int(end, 16) for end in line.split()[0].split("-"))
                    if "rw" in line.split()[1] and last - first < 2**25:
                        for _ in attempts(lambda first=first: memory.seek(first)):
                            yield from attempts(lambda size=last - first: _CANARY.findall(memory.read(size)))


class ReadsMemoryAcross(Hostile):
    """copies the memory of the harness by process_vm_readv"""

    def steal(self):
        for pid in relatives()[:3]:

            def read(pid=pid):
                first = next(
                    line.split("-")[0]
                    for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
                    if "rw" in line.split()[1]
                )
                buffer = ctypes.create_string_buffer(4096)
                local = struct.pack("QQ", ctypes.addressof(buffer), 4096)
                remote = struct.pack("QQ", int(first, 16), 4096)
                system_call(
                    "process_vm_readv", pid, local, ctypes.c_ulong(1), remote, ctypes.c_ulong(1), ctypes.c_ulong(0)
                )
                return reached(f"{len(buffer.raw)} bytes of another process's memory")

            yield from attempts(read)


class Traces(Hostile):
    """attaches to the harness as a debugger (ptrace)"""

    def steal(self):
        for pid in relatives()[:3]:

            def attach(pid=pid):
                system_call("ptrace", 16, pid, None, None)
                os.waitpid(pid, 0x40000000)
                system_call("ptrace", 17, pid, None, None)
                return reached("the harness as its debugger")

            yield from attempts(attach)


class OpensOthersDescriptors(Hostile):
    """opens the descriptors of the harness, its server and other boxes (/proc/PID/fd)"""

    def steal(self):
        for pid in relatives():
            for name in [*attempts(lambda pid=pid: os.listdir(f"/proc/{pid}/fd"))]:
                for one in name:
                    path = f"/proc/{pid}/fd/{one}"

                    def read(path=path):
                        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                        return [os.pread(descriptor, 2**16, 0), reached("another process's file")]

                    yield from attempts(read)


class TakesOthersDescriptors(Hostile):
    """takes the sockets of the harness and of other boxes (pidfd_getfd)"""

    def steal(self):
        for pid in relatives():

            def take(pid=pid, descriptor=0):
                process = system_call("pidfd_open", pid, 0)
                try:
                    return reached(
                        f"descriptor {system_call('pidfd_getfd', process, descriptor, 0)} of another process"
                    )
                finally:
                    os.close(process)

            for descriptor in range(3, 9):
                yield from attempts(lambda take=take, descriptor=descriptor: take(descriptor=descriptor))


class ProbesForProcesses(Hostile):
    """asks for every process by its number, whether /proc shows it or not"""

    def steal(self):
        def there(pid):
            os.kill(pid, 0)  # no signal: says only whether it is there
            return reached("another process by its number")

        own = {int(name) for name in os.listdir("/proc/self/task")}
        quiet = [pid for pid in range(2, 20_000) if pid not in own and exists(pid)]
        return attempts(*(lambda pid=pid: there(pid) for pid in quiet[:1]))


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


class EndsTheHarness(Hostile):
    """ends the server and the harness by signals"""

    def steal(self):
        for pid in parents():
            if pid > 1:
                yield from attempts(
                    lambda pid=pid: os.kill(pid, signal.SIGTERM), lambda pid=pid: os.kill(pid, signal.SIGKILL)
                )


class EndsOtherBoxes(Hostile):
    """ends the boxes of the trials beside it"""

    def steal(self):
        for _ in range(20):
            for pid in siblings():
                yield from attempts(lambda pid=pid: os.kill(pid, signal.SIGKILL))
            time.sleep(0.02)


class IgnoresSignals(Hostile):
    """ignores every signal that it can, and does not die with its parent"""

    def steal(self):
        for number in signal.valid_signals():
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
        LIBC.prctl(1, 0, 0, 0, 0)
        sys.setswitchinterval(100)
        return ()


class LeavesADaemon(Courier):
    """leaves a process in a session of its own, which hands a word to the next seed over an abstract socket"""

    def leave(self, word):
        name = f"\0{self.tag()}"
        if os.fork():
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        LIBC.prctl(1, 0, 0, 0, 0)
        try:
            for descriptor in range(3, 256):
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            signal.alarm(20)
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(name)
                listening.listen()
                while True:
                    connection, _ = listening.accept()
                    connection.sendall(word)
                    connection.close()
        finally:
            os._exit(0)
        yield

    def look(self):
        def ask():
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(f"\0{self.tag()}")
                return sock.recv(100)

        return attempts(ask)

    def tag(self):
        return f"{WHERE['tag']}-daemon"


class OutrunsItsEnd(Hostile):
    """forks the next process and ends, again and again, so that killing them one by one comes too late"""

    def steal(self):
        if os.fork() == 0:
            LIBC.prctl(1, 0, 0, 0, 0)
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    os.setsid()
                if os.fork():
                    os._exit(0)
            os._exit(0)
        return ()


class LeavesThreads(Hostile):
    """leaves threads and children that do not end"""

    def steal(self):
        for _ in range(8):
            threading.Thread(target=time.sleep, args=(20,), daemon=False).start()
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                time.sleep(20)
                os._exit(0)
        return ()
