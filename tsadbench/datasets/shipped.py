"""The data sets that are a card in ``cards`` and files that the user downloads or requests.

Each card says where its files come from, which rows train and why, and what was left out.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from tsadbench.base.dataset import DataOptions, LabelledDataset, Loader
from tsadbench.datasets.fetch import BY_REQUEST, Source, find, find_or_download, how_to_get
from tsadbench.datasets.reader import load_card
from tsadbench.errors import DataError

_HERE = Path(__file__).parent


def _loader(name: str, about: str) -> Loader:
    """Return the loader of a data set whose files are published, or sent to those who ask.

    It downloads missing files if it may. A DataNotFoundError if there are none. A DataError if a file is malformed, or
    well-formed but different from the published one.
    """
    card = _HERE / "cards" / f"{name}.toml"

    def load(options: DataOptions) -> LabelledDataset:
        if name in BY_REQUEST:
            return load_card(card, find(name, options.directory))
        source, note = Source.load(name), ""
        folder = find_or_download(source, options.directory)
        if changed := source.changed(folder):
            differ = f"{'differs' if len(changed) == 1 else 'differ'} from the published ones: {', '.join(changed)}."
            note = f"{len(changed)} of {name.upper()}'s {len(source.sha256)} files {differ}"
        try:
            dataset, labels = load_card(card, folder)
        except DataError as error:
            raise DataError(f"{error}\n{note}".rstrip()) from error
        if changed and not options.allow_changed:
            raise DataError(f"{folder}: {note} To restore them, {how_to_get(name, folder)}")
        return LabelledDataset(replace(dataset, notes=(*([note] if note else []), *dataset.notes)), labels)

    load.__doc__ = about  # what `tsadbench info` prints
    return load


_ABOUT = tomllib.loads((_HERE / "shipped.about.toml").read_text(encoding="utf-8"))
load_skab, load_tep, load_cranfield, load_gecco2018, load_asd, load_smd, load_causrca, load_swat, load_wadi = (
    _loader(name, _ABOUT[name])
    for name in ("skab", "tep", "cranfield", "gecco2018", "asd", "smd", "causrca", "swat", "wadi")
)
