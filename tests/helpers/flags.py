"""A data set whose events and flags were put down by hand."""

from __future__ import annotations

import numpy as np

from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset

# Rows 0 and 1 are not evaluated. "x" stands for an anomalous row, and for a flagged one.
ANOMALOUS = {"a": ".....xxx....", "b": "xxxx....xx", "c": "........"}
FLAGGED = {"a": "x..x..xxx..x", "b": "..x..xxx..", "c": "........"}
MINUTES = {"a": list(range(12)), "b": [0, 1, 2, 3, 4, 5, 6, 7, 8, 52], "c": list(range(8))}
SPLITS = {"overall": ("a", "b", "c"), "a": ("a",), "b": ("b",), "c": ("c",)}


def rows(text: str) -> np.ndarray:
    return np.array([character == "x" for character in text])


def make_dataset(timeless: tuple[str, ...] = ()) -> LabelledDataset:
    """The data set "hand": a row a minute, but for a gap in b; some recordings without time where asked for."""

    def recording(name: str, minutes: list[int]) -> Recording:
        values = np.random.default_rng(len(minutes)).normal(size=(len(minutes), 2))
        time = None if name in timeless else 60.0 * np.array(minutes)
        return Recording(name, values, ("p", "q"), time)

    train = (recording("normal", list(range(40))),)
    dataset = Dataset("hand", train, tuple(recording(name, minutes) for name, minutes in MINUTES.items()), SPLITS)
    return LabelledDataset(dataset, Labels({name: rows(text) for name, text in ANOMALOUS.items()}, SPLITS))
