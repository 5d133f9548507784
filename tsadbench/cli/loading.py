"""Where commands that read a store get the data of its trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsadbench.dataset import LabelledDataset


def dataset_loader(cards: Sequence[str], directory: Path | None) -> Callable[[str], LabelledDataset]:
    """Return what loads a data set by the name that records have for it.

    Parameters
    ----------
    cards
        Cards of data sets of the user's own: they are read at once, for their names stand inside.
    directory
        Folder that holds the data sets' folders; None searches as the documentation says.
    """
    from tsadbench.dataset import DataOptions
    from tsadbench.registry import load_dataset

    own: dict[str, LabelledDataset] = {}
    for card in cards:
        loaded = load_dataset(card)(DataOptions())
        own[loaded.dataset.name] = loaded

    def load(name: str) -> LabelledDataset:
        return own[name] if name in own else load_dataset(name)(DataOptions(directory=directory, allow_changed=True))

    return load
