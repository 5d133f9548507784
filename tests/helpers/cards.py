"""A small plant as files: its card, its rows, its lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

CARD = """\
schema = 1
name = "plant"

[train]
files = ["train/*.csv"]

[test]
files = ["test/*.csv"]

[columns]
time = "time"
label = "fault"
"""


def frame(n_rows: int = 60, *, seed: int = 0, faults: tuple[int, int] | None = None) -> pd.DataFrame:
    """Return rows of two sensors, a second apart, labelled."""
    rng = np.random.default_rng(seed)
    time = pd.date_range("2024-05-01 12:00:00", periods=n_rows, freq="s").strftime("%Y-%m-%d %H:%M:%S")
    found = pd.DataFrame({"time": time, "flow": rng.normal(size=n_rows), "head": rng.normal(10, 2, size=n_rows)})
    found["fault"] = 0
    if faults is not None:
        found.loc[faults[0] : faults[1] - 1, "fault"] = 1
    return found


def line_of(folder: Path, file: str, row: int) -> str:
    """Return the line of a row of a CSV file with a header, counted from 0."""
    return (folder / file).read_text().splitlines()[row + 1]
