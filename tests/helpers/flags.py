"""A data set with hand-written events and flags."""

from __future__ import annotations

import numpy as np

from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset

# Rows 0 and 1 are not evaluated. "x" marks an anomalous or a flagged row.
ANOMALOUS = {"a": ".....xxx....", "b": "xxxx....xx", "c": "........"}
FLAGGED = {"a": "x..x..xxx..x", "b": "..x..xxx..", "c": "........"}
MINUTES = {"a": list(range(12)), "b": [0, 1, 2, 3, 4, 5, 6, 7, 8, 52], "c": list(range(8))}
SPLITS = {"overall": ("a", "b", "c"), "a": ("a",), "b": ("b",), "c": ("c",)}


def rows(text: str) -> np.ndarray:
    return np.array([character == "x" for character in text])


def make_dataset() -> LabelledDataset:
    """Return the data set "hand": one row per minute, with a gap in b."""

    def recording(name: str, minutes: list[int]) -> Recording:
        values = np.random.default_rng(len(minutes)).normal(size=(len(minutes), 2))
        return Recording(name, values, ("p", "q"), 60.0 * np.array(minutes))

    train = (recording("normal", list(range(40))),)
    dataset = Dataset("hand", train, tuple(recording(name, minutes) for name, minutes in MINUTES.items()), SPLITS)
    return LabelledDataset(dataset, Labels({name: rows(text) for name, text in ANOMALOUS.items()}, SPLITS))
