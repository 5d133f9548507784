"""A small plant: four CSV files and the card that describes them, to be broken by the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.cards import CARD, frame


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
