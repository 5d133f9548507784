"""The guard inside the process: its own tables emptied, its frames and memory searched."""

from __future__ import annotations

import ctypes
import gc
import re
import struct
from pathlib import Path

from tests.hostile.preamble import Hostile, attempts, of_each_secret, read_bytes


def hooks() -> list[object]:
    """Return the audit hooks: every callable named `hook` that the garbage collector knows."""
    return [one for one in gc.get_objects() if callable(one) and getattr(one, "__name__", "") == "hook"]


def readable() -> list[tuple[int, int, str]]:
    """Return the first and last address and the file of each part of this process's memory that it may read."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    ranges = [(*(int(end, 16) for end in one[0].split("-")), " ".join(one[5:])) for one in lines if "r" in one[1]]
    return [one for one in ranges if not one[2].startswith("[v")]


def list_at(ranges, address: int) -> tuple[int, ...]:
    """Return the addresses that a Python list at this address holds; empty if there is none."""

    def words(at: int, n: int) -> tuple[int, ...]:
        if any(first <= at and at + 8 * n <= last for first, last, _ in ranges):
            return struct.unpack(f"{n}Q", ctypes.string_at(at, 8 * n))
        return (0,) * n

    _, kind, size, items = words(address, 4)
    return words(items, size) if kind == id(list) and 0 < size < 100 else ()


class RewritesTheHook(Hostile):
    """replaces what the guard's hook has closed over, and its code"""

    def steal(self):
        def nothing(event, arguments):
            pass

        for hook in hooks():
            for cell in getattr(hook, "__closure__", None) or ():
                closed_over = cell.cell_contents
                if isinstance(closed_over, re.Pattern):
                    cell.cell_contents = re.compile("(?!)")
                else:
                    cell.cell_contents = (lambda *_: None) if callable(closed_over) else ()
            for _ in attempts(lambda hook=hook: setattr(hook, "__code__", nothing.__code__)):
                pass
        return of_each_secret(read_bytes)


class ClearsTheHooks(Hostile):
    """clears the interpreter's list of audit hooks by its address"""

    def steal(self):
        ctypes.pythonapi.PyInterpreterState_Get.restype = ctypes.c_void_p
        state = ctypes.pythonapi.PyInterpreterState_Get()
        wanted = {id(hook) for hook in hooks()}
        ranges = readable()
        size = min(2**18, next(last for first, last, _ in ranges if first <= state < last) - state)
        for (address,) in struct.iter_unpack("Q", ctypes.string_at(state, size // 8 * 8)):
            if wanted & set(list_at(ranges, address)):
                ctypes.cast(address, ctypes.py_object).value.clear()
        return of_each_secret(read_bytes)


class SearchesObjects(Hostile):
    """searches every object of the interpreter for labels and secrets"""

    def steal(self):
        for one in gc.get_objects():
            if isinstance(one, dict) and len(one) < 1000:
                yield "\n".join(value for value in one.values() if type(value) is str and len(value) < 10**5)
            elif type(one).__name__ in ("Labels", "Dataset", "LabelledDataset", "Protocol", "RunRequest", "Plan"):
                yield repr(one)


class SearchesItsMemory(Hostile):
    """searches the memory that it has inherited, byte by byte"""

    def steal(self):
        for first, last, file in readable():
            if last - first < 2**26 and "/" not in file:
                found = set(re.findall(rb"canary-[0-9a-f]{16}-[a-z]+", ctypes.string_at(first, last - first)))
                yield "\n".join(one.decode() for one in found)
