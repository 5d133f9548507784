"""A small plant: four CSV files and the card that describes them, to be broken by the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

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


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    """Return a folder with two training and two test files and their card."""
    folder = tmp_path / "plant"
    for part, name, seed, faults in (
        ("train", "a", 0, None),
        ("train", "b", 1, None),
        ("test", "c", 2, (40, 50)),
        ("test", "d", 3, (30, 60)),
    ):
        (folder / part).mkdir(parents=True, exist_ok=True)
        frame(seed=seed, faults=faults).to_csv(folder / part / f"{name}.csv", index=False)
    (folder / "card.toml").write_text(CARD)
    return folder


@pytest.fixture
def edit(plant: Path) -> Callable[[str, str, str], Path]:
    """Return a function that replaces text in a file of the plant, by default in its card."""

    def edited(old: str, new: str, file: str = "card.toml") -> Path:
        path = plant / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return plant / "card.toml"

    return edited


def line_of(folder: Path, file: str, row: int) -> str:
    """Return the line of a row of a CSV file with a header, counted from 0."""
    return (folder / file).read_text().splitlines()[row + 1]
