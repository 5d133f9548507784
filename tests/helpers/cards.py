"""A small plant as files: writes its card and rows, and loads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsadbench.datasets.reader import load_card
from tsadbench.errors import DataError

CARD = """\
schema = 1
name = "plant"

[train]
files = ["train/*.csv"]

[test]
files = ["test/*.csv"]

[columns]
time = "time"

[labels]
kind = "column"
column = "fault"
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


def write_plant(folder: Path, n_rows: int = 60, *, name: str = "plant", seed: int = 0) -> Path:
    """Write a card, a training recording and a test recording with faults in rows 40 to 49; return the card."""
    for part, faults in (("train", None), ("test", (40, 50))):
        (folder / part).mkdir(parents=True, exist_ok=True)
        frame(n_rows, seed=seed + (part == "test"), faults=faults).to_csv(folder / part / "rows.csv", index=False)
    (folder / "card.toml").write_text(CARD.replace("plant", name))
    return folder / "card.toml"


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files into a folder; return the path of its card."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / "card.toml"


def problems(card: Path) -> list[str]:
    """Return the problems of a card, one a line, as the message of the error lists them."""
    with pytest.raises(DataError) as caught:
        load_card(card)
    assert str(card) in str(caught.value)
    return [line.strip() for line in str(caught.value).splitlines()[1:]]
