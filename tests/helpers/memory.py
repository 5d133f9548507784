"""A program that measures what loading a card takes."""

from __future__ import annotations

LOAD = """
import sys
import numpy as np, pandas as pd, scipy.stats
from pathlib import Path
from tsadbench.datasets.cards.reader import load_card
def peak():  # not getrusage: its peak is that of the parent process, where that is higher
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
load_card(Path(sys.argv[1]))  # a small one first: imports and pandas' own tables do not count
before = peak()
data, labels = load_card(Path(sys.argv[2]))
print(peak() - before, sum(one.values.nbytes for one in (*data.train, *data.test)))
"""
