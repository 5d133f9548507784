"""Hogs: processes, memory, disk, output, descriptors, time. Each stops by itself, so that the machine survives."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

from tests.hostile.preamble import Hostile, attempts, reached


class ForksWithoutEnd(Hostile):
    """forks itself until no more are let, or 300 are there"""

    ends = ("ok", "memory")

    def steal(self):
        for _ in range(300):
            try:
                pid = os.fork()
            except OSError as error:
                print(f"kept out: {error}")
                break
            if pid == 0:
                time.sleep(15)
                os._exit(0)
        return ()


class StartsThreads(Hostile):
    """starts threads until no more are let, or 2,000 are there"""

    ends = ("error",)

    def steal(self):
        for _ in range(2000):
            thread = threading.Thread(target=time.sleep, args=(15,), daemon=True)
            if not [*attempts(lambda thread=thread: (thread.start(), True))]:
                return ()
        time.sleep(1.2)
        return [reached("2,000 threads")]


class OpensFilesWithoutEnd(Hostile):
    """has 24 processes open as many files as they may"""

    ends = ("error",)

    def steal(self):
        for _ in range(24):
            if os.fork() == 0:
                with contextlib.suppress(OSError):
                    for _ in range(3000):
                        os.open(os.devnull, os.O_RDONLY)
                time.sleep(15)
                os._exit(0)
        time.sleep(2)
        return [reached("20,000 open files")]


class EatsMemory(Hostile):
    """takes memory until it is ended"""

    ends = ("memory",)

    def steal(self):
        hoard = []
        for _ in range(400):
            hoard.append(np.ones(2**20))
            time.sleep(0.005)
        return ()


class EatsMemoryInFiles(Hostile):
    """takes more memory than it may in files in memory, which count as no process's own"""

    ends = ("error", "killed")

    def steal(self):
        block = b"x" * 2**24

        def fill():
            for _ in range(3):
                descriptor = os.memfd_create("hoard")
                for _ in range(31):  # below the limit of a single file
                    os.write(descriptor, block)
            time.sleep(5)  # a busy machine measures late
            return reached("more memory than --memory allows")

        return attempts(fill)


class FillsTheDisk(Hostile):
    """writes into its own folder until no more fits, or more than a gibibyte is there"""

    ends = ("ok", "error", "memory", "killed")

    def steal(self):
        block = b"x" * 2**24

        def fill():
            for number in range(3):
                with open(f"hoard{number}", "wb") as file:
                    for _ in range(24):
                        file.write(block)
            return reached("more than a gibibyte of the disk")

        return attempts(fill)


class MakesADeepFolder(Hostile):
    """makes a folder so deep that no path reaches its end"""

    ends = ("ok", "error")

    def steal(self):
        def dig():
            for _ in range(3000):
                os.mkdir("d")
                os.chdir("d")

        here = os.open(".", os.O_RDONLY)
        yield from attempts(lambda: dig() or ())
        os.fchdir(here)
        os.close(here)


class LocksItsFolder(Hostile):
    """takes all rights from its own folder, so that it cannot be removed"""

    def steal(self):
        os.makedirs("locked/inside")
        Path("locked/inside/file").write_text("")
        for folder in ("locked/inside", "locked", "."):
            os.chmod(folder, 0)
        return ()


class FloodsItsLog(Hostile):
    """writes to standard output until it is ended"""

    ends = ("error", "killed")

    def steal(self):
        for _ in range(400):
            os.write(1, b"\x1b]0;owned\x07" + b"x" * 2**20)
        return ()


class PullsTheLogAway(Hostile):
    """cuts the log short, seeks in it and makes it sparse and huge"""

    ends = ("ok", "error")

    def steal(self):
        def grow():
            os.ftruncate(1, 2**40)
            os.lseek(1, 2**39, os.SEEK_SET)
            os.write(1, b"far away")

        return attempts(lambda: os.ftruncate(1, 0) or (), lambda: grow() or ())


class RecursesWithoutEnd(Hostile):
    """calls itself until the stack is full"""

    ends = ("killed", "error")

    def steal(self):
        sys.setrecursionlimit(2**30)
        values: list[object] = []
        for _ in range(10**6):
            values = [values]
        return repr(values)
