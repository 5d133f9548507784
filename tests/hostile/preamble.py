"""The beginning of every hostile detector's file: the builder (`plant.py`) puts this text in place of its import.

A detector's box gets the text of one file and nothing else, so each file must contain all that its classes need.
A hostile detector gives innocent scores unless it has found something. Labels that it has found become its scores;
anything else that it must not know (`_LOOT`) makes all its scores 7. So a trial that is ok and has innocent scores,
equal to the bit, has learned nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from tsadbench import Detector, Traits

# Filled in by the builder: where the secrets are. A real cheat would guess this or read it in the documentation.
WHERE: dict[str, object] = {}

# A secret of the plant, a word that another trial has left, or the text of `reached`.
_LOOT = re.compile(r"canary-[0-9a-f]{16}-\w+|left-[0-9a-f]{16}|reached: [^\n]*")
_LABELLED = re.compile(r"^[^,\n]*,(-?[0-9.e+-]+),(-?[0-9.e+-]+),(-?[0-9.e+-]+),([01])\r?$", re.M)
_CALLS = {
    "x86_64": {"open_by_handle_at": 304, "name_to_handle_at": 303, "openat2": 437, "shmget": 29, "shmat": 30,
               "msgget": 68, "msgsnd": 69, "msgrcv": 70, "mq_open": 240, "add_key": 248, "keyctl": 250,
               "memfd_create": 319, "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155,
               "process_vm_readv": 310, "ptrace": 101, "pidfd_open": 434, "pidfd_getfd": 438, "fanotify_init": 300,
               "fanotify_mark": 301, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323},
    "aarch64": {"open_by_handle_at": 265, "name_to_handle_at": 264, "openat2": 437, "shmget": 194, "shmat": 196,
                "msgget": 186, "msgsnd": 189, "msgrcv": 188, "mq_open": 180, "add_key": 217, "keyctl": 219,
                "memfd_create": 279, "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41,
                "process_vm_readv": 270, "ptrace": 117, "pidfd_open": 434, "pidfd_getfd": 438, "fanotify_init": 262,
                "fanotify_mark": 263, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282},
}  # fmt: skip
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long


def system_call(name: str, *arguments: object) -> int:
    """Make a system call by its number, bypassing the functions of Python and of the C library."""
    result = LIBC.syscall(ctypes.c_long(_CALLS[platform.machine()][name]), *arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return int(result)


def attempts(*ways: Callable[[], object]) -> Iterator[object]:
    """Try each way, and print why it failed."""
    for way in ways:
        try:
            yield way()
        except BaseException as error:
            print(f"kept out: {type(error).__name__}: {error}"[:300])


def of_each(things: Iterable[object], *ways: Callable[[object], object]) -> Iterator[object]:
    """Try each way with each thing."""
    for thing in things:
        yield from attempts(*(lambda way=way, thing=thing: way(thing) for way in ways))


def of_each_secret(*ways: Callable[[str], object]) -> Iterator[object]:
    """Try each way with each label file and with the secret in the user's home."""
    return of_each((*WHERE["labels"], WHERE["home_secret"]), *ways)


def read_bytes(path: str) -> bytes:
    return Path(path).read_bytes()


def reached(what: str) -> str:
    """Return a text that counts as found, for a success that yields no secret."""
    return f"reached: {what}"


def is_harness(pid: int) -> bool:
    """Say whether a process is the harness or one of its servers and boxes: no other may be harmed."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return pid > 1 and (any(b"tsadbench.sandbox" in one for one in words) or b"tsadbench" in words[1:4])


def siblings() -> list[int]:
    """Return the other boxes that this one can see."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read_text()
        return [int(one) for one in text.split() if int(one) != os.getpid() and is_harness(int(one))]
    return []


def parents() -> list[int]:
    """Return the server and the harness, as far as this process can see them."""
    found: list[int] = []
    parent = os.getppid()
    with contextlib.suppress(OSError):
        while len(found) < 2 and is_harness(parent):
            found.append(parent)
            parent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def relatives() -> list[int]:
    """Return every process of the harness that this one can see, and its parent, whatever that is."""
    # With parent 0 or 1 it is in a separate namespace, whose first process is the harness's.
    first = [] if os.getppid() > 1 else [1]
    return list(dict.fromkeys([pid for pid in (os.getppid(), *parents(), *siblings(), *first) if pid > 0]))


def as_text(found: object) -> str:
    """Return the result of an attempt as text."""
    if isinstance(found, bytes | bytearray | memoryview):
        return bytes(found).decode("latin-1")
    if isinstance(found, str):
        return found
    if isinstance(found, Iterable):
        return "\n".join(map(as_text, found))
    return repr(found)


class Hostile(Detector):
    """Distance of a row to the training mean; subclasses first try something hostile."""

    traits = Traits(memory=0)

    def steal(self) -> Iterable[object]:
        """Try something while fitting; return what was found."""
        return attempts(self.get)

    def get(self) -> object:
        """Try one way, which may fail."""
        return ()

    def steal_while_scoring(self) -> Iterable[object]:
        """Try something with each recording."""
        return ()

    def _fit(self, recordings):
        self.mean_ = np.concatenate([one.values for one in recordings]).mean(axis=0)
        self.stolen_ = np.zeros((0, len(self.mean_) + 1))
        self.loot_ = ""
        self.own_ = f"left-{os.urandom(8).hex()}"
        self._keep(self.steal())

    def _score(self, recording):
        self._keep(self.steal_while_scoring())
        if len(self.stolen_):
            known = {row[:-1].tobytes(): row[-1] for row in self.stolen_}
            labels = [known.get(row.tobytes()) for row in np.ascontiguousarray(recording.values)]
            if None not in labels:
                return np.array(labels, dtype=np.float64)
        if self.loot_:
            return np.full(recording.n_rows, 7.0)
        return np.sqrt(((recording.values - self.mean_) ** 2).sum(axis=1))

    def _keep(self, found: Iterable[object]) -> None:
        for one in found:
            text = as_text(one)
            rows = [[float(cell) for cell in match.groups()] for match in _LABELLED.finditer(text)]
            if rows and len(rows[0]) == self.stolen_.shape[1]:
                self.stolen_ = np.concatenate([self.stolen_, rows])
                self.loot_ = "labels"
            others = [match for match in _LOOT.findall(text) if match != self.own_]
            if others:
                self.loot_ = others[0]
                print("LOOT", *sorted(set(others))[:9])


class Reader(Hostile):
    """Reads every secret in one way."""

    def read(self, path: str) -> object:
        raise NotImplementedError

    def steal(self) -> Iterable[object]:
        return of_each_secret(self.read)


class Courier(Hostile):
    """Leaves a word for the next seed, and looks for one that another seed has left."""

    traits = Traits(memory=0, stochastic=True)

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def leave(self, word: bytes) -> Iterable[object] | None:
        """Leave this word where another trial may find it; each way may fail."""

    def look(self) -> object:
        """Return the traces of other trials."""

    def steal(self) -> Iterable[object]:
        yield from attempts(self.look)
        for _ in attempts(lambda: [*(self.leave(self.own_.encode()) or ())]):
            pass

    def steal_while_scoring(self) -> Iterable[object]:
        time.sleep(0.02)
        yield from attempts(self.look)
