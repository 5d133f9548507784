"""The guard inside the process: its own tables emptied, its frames and memory searched."""

from __future__ import annotations

import ctypes
import gc
import re
import struct

from tests.hostile.preamble import Hostile, attempts, of_each_secret, read_bytes


def hooks() -> list[object]:
    """Return the audit hooks: every callable named `hook` that the garbage collector knows."""
    return [one for one in gc.get_objects() if callable(one) and getattr(one, "__name__", "") == "hook"]


def list_at(memory, address: int) -> tuple[int, ...]:
    """Return the addresses that a Python list at this address holds; empty if there is none."""
    memory.seek(address)
    _, kind, size, items = struct.unpack("4Q", memory.read(32))
    if kind != id(list) or not 0 < size < 100:
        return ()
    memory.seek(items)
    return struct.unpack(f"{size}Q", memory.read(8 * size))


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
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            memory.seek(state)
            for (address,) in struct.iter_unpack("Q", memory.read(2**18)):
                try:
                    listed = list_at(memory, address)
                except (OSError, OverflowError, ValueError, struct.error):
                    continue
                if wanted & set(listed):
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
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
            for line in maps:
                first, last = (int(end, 16) for end in line.split()[0].split("-"))
                if "r" in line.split()[1] and last - first < 2**26 and "/" not in line and "[v" not in line:
                    yield from attempts(lambda first=first, last=last: found(memory, first, last))


def found(memory, first: int, last: int) -> str:
    memory.seek(first)
    return "\n".join(one.decode() for one in set(re.findall(rb"canary-[0-9a-f]{16}-[a-z]+", memory.read(last - first))))
