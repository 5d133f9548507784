"""The data sets of a run store: found by the names that its records have, each loaded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import load_dataset


def loader(
    cards: Sequence[str], directory: Path | None, own: Mapping[str, LabelledDataset] = MappingProxyType({})
) -> Callable[[str], LabelledDataset]:
    """Return a function that loads a data set by its name, once."""
    known = dict(own)
    for card in cards:
        loaded = load_dataset(card)(DataOptions())
        known[loaded.dataset.name] = loaded

    @cache
    def load(name: str) -> LabelledDataset:
        return known[name] if name in known else load_dataset(name)(DataOptions(directory, allow_changed=True))

    return load
