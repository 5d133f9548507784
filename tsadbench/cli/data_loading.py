"""How commands that read a run store come by the data sets behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsadbench.base.dataset import LabelledDataset


def loader(cards: Sequence[str], directory: Path | None) -> Callable[[str], LabelledDataset]:
    """Return what loads the data set of a name, each once.

    Parameters
    ----------
    cards
        Paths of cards: data sets of the user's own, known by the names that the cards give them.
    directory
        The folder that holds the data sets' folders; None searches as the documentation says.
    """
    from functools import cache

    from tsadbench.base.dataset import DataOptions
    from tsadbench.datasets.loading import load_dataset

    own: dict[str, LabelledDataset] = {}
    for card in cards:
        loaded = load_dataset(card)(DataOptions())
        own[loaded.dataset.name] = loaded

    @cache
    def load(name: str) -> LabelledDataset:
        return own[name] if name in own else load_dataset(name)(DataOptions(directory=directory, allow_changed=True))

    return load
