"""Other processes: their environment, memory and descriptors, and signals to them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import struct
import threading
import time
from pathlib import Path

from tests.hostile.preamble import (
    LIBC,
    WHERE,
    Courier,
    Hostile,
    attempts,
    of_each,
    parents,
    reached,
    read_bytes,
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
        yield from of_each(relatives(), lambda pid: read_bytes(f"/proc/{pid}/environ"))


class SearchesTheHarness(Hostile):
    """searches the memory of the harness for labels and tokens (/proc/PID/mem)"""

    def steal(self):
        def search(pid):
            found = []
            with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                for line in maps:
                    first, last = (int(end, 16) for end in line.split()[0].split("-"))
                    if "rw" in line.split()[1] and last - first < 2**25:
                        for _ in attempts(lambda first=first: memory.seek(first)):
                            found += attempts(lambda size=last - first: _CANARY.findall(memory.read(size)))
            return found

        return of_each(relatives()[:3], search)


class ReadsMemoryAcross(Hostile):
    """copies the memory of the harness by process_vm_readv"""

    def steal(self):
        def read(pid):
            address = id(os)  # a box is a fork of its server, which has this module at the same place
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
                address = int(next(line.split("-")[0] for line in lines if "rw" in line.split()[1]), 16)
            buffer, one = ctypes.create_string_buffer(4096), ctypes.c_ulong(1)
            local = struct.pack("QQ", ctypes.addressof(buffer), 4096)
            remote = struct.pack("QQ", address, 16)
            system_call("process_vm_readv", pid, local, one, remote, one, ctypes.c_ulong(0))
            return reached(f"{len(buffer.raw)} bytes of another process's memory")

        return of_each(relatives()[:3], read)


class Traces(Hostile):
    """attaches to the harness as a debugger (ptrace)"""

    def steal(self):
        def attach(pid):
            system_call("ptrace", 16, pid, None, None)
            os.waitpid(pid, 0x40000000)
            system_call("ptrace", 17, pid, None, None)
            return reached("the harness as its debugger")

        return of_each(relatives()[:3], attach)


class OpensOthersDescriptors(Hostile):
    """opens the descriptors of the harness, its server and other boxes (/proc/PID/fd)"""

    def steal(self):
        def read(path):
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            return [os.pread(descriptor, 2**16, 0), reached("another process's file")]

        for folder in (f"/proc/{pid}/fd" for pid in relatives()):
            for names in [*attempts(lambda folder=folder: os.listdir(folder))]:
                yield from of_each([f"{folder}/{name}" for name in names], read)


class TakesOthersDescriptors(Hostile):
    """takes the sockets of the harness and of other boxes (pidfd_getfd)"""

    def steal(self):
        def take(pair):
            process = system_call("pidfd_open", pair[0], 0)
            try:
                return reached(f"descriptor {system_call('pidfd_getfd', process, pair[1], 0)} of another process")
            finally:
                os.close(process)

        return of_each([(pid, descriptor) for pid in relatives() for descriptor in range(3, 9)], take)


class ProbesForProcesses(Hostile):
    """asks for every process by its number, whether /proc shows it or not"""

    def steal(self):
        own = {os.getpid(), *(thread.native_id for thread in threading.enumerate())}
        for pid in set(range(2, 20_000)) - own:
            with contextlib.suppress(OSError):
                os.kill(pid, 0)  # sends no signal, only tests whether it exists
                return [reached("another process by its number")]
        return ()


class EndsTheHarness(Hostile):
    """ends the server and the harness by signals"""

    def steal(self):
        ways = (lambda pid: os.kill(pid, signal.SIGTERM), lambda pid: os.kill(pid, signal.SIGKILL))
        return of_each([pid for pid in parents() or [os.getppid()] if pid > 1], *ways)


class EndsOtherBoxes(Hostile):
    """ends the boxes of the trials beside it"""

    def steal(self):
        for _ in range(20):
            yield from of_each(siblings(), lambda pid: os.kill(pid, signal.SIGKILL))
            time.sleep(0.02)


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
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(f"\0{self.tag()}")
            return sock.recv(100)

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
                time.sleep(60)
                os._exit(0)
        return ()
