"""A small data set and a slow detector, for runs in whole processes, as users start them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.cards import CARD, frame
from tests.helpers.plant import DETECTORS, Plant


@pytest.fixture
def small(tmp_path: Path) -> Plant:
    folder = tmp_path / "plant"
    for part, name, seed, faults in (("train", "a", 0, None), ("test", "c", 2, (40, 50)), ("test", "d", 3, (30, 60))):
        (folder / part).mkdir(parents=True, exist_ok=True)
        frame(120, seed=seed, faults=faults).to_csv(folder / part / f"{name}.csv", index=False)
    (folder / "card.toml").write_text(CARD)
    (tmp_path / "detectors.py").write_text(DETECTORS)
    return Plant(tmp_path)
