"""Detectors that misbehave inside the box, each in one way."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path

import numpy as np

from tsadbench import Detector
from tsadbench.utils.progress import progress


class Sums(Detector):
    """A row's score is the sum of its values; behaves."""

    def _fit(self, recordings):
        for done in range(3):
            progress(done + 1, 3, f"epoch {done}")

    def _score(self, recording):
        return recording.values.sum(axis=1)

    def _contributions(self, recording):
        return np.array(recording.values)


class Farewell(Sums):
    """Prints when the values of a recording that it has scored leave its memory."""

    def _score(self, recording):
        weakref.finalize(recording.values, os.write, 1, b"gone\n")
        return super()._score(recording)


class Tells(Sums):
    """Prints what it can see of its surroundings."""

    def _fit(self, recordings):
        print("environment", sorted(os.environ))
        print("directory", os.listdir(), os.getcwd())
        print("temporary", tempfile.gettempdir())
        print("ids", [one.id for one in recordings], "prefix", repr(recordings[0].id[:3]), recordings[0].time[0])
        sys.stderr.write("to standard error\n")


class Misbehaves(Sums):
    """Does one thing wrong while it is fitted."""

    def __init__(self, *, how: str = "", path: str = "") -> None:
        self.how = how
        self.path = path

    def _fit(self, recordings):
        getattr(self, f"_{self.how}")()

    def _kill(self):
        os.kill(os.getpid(), 9)

    def _exit(self):
        os._exit(3)

    def _leave(self):
        sys.exit("leaving")

    def _sleep(self):
        time.sleep(600)

    def _fork(self):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        time.sleep(600)

    def _read_quietly(self):
        try:
            Path(self.path).read_bytes()
        except BaseException:
            print("nobody will know")

    def _cat(self):
        subprocess.run(["cat", self.path], check=False)

    def _link(self):
        os.symlink(self.path, "harmless")

    def _numpy(self):
        np.loadtxt(self.path, dtype=str)

    def _chatter(self):
        for _ in range(3_000):  # 286 MiB: more than the log may have, less than any file
            print("x" * 10**5)
        time.sleep(60)


class Threads(Detector):
    """Scores with the numbers of threads that torch and BLAS use: rows 0 and 1."""

    def _fit(self, recordings):
        import torch
        from threadpoolctl import threadpool_info

        pools = [pool["num_threads"] for pool in threadpool_info()]
        self.numbers_ = [float(torch.get_num_threads()), float(max(pools))]

    def _score(self, recording):
        return np.resize(np.array(self.numbers_), recording.n_rows)
