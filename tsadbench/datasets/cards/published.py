"""Data sets that are a card and published files, and the sensors of the events of asd and smd.

Each card says where its files come from, which rows train and why, and what was left out.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tsadbench.base.dataset import Cause, DataOptions, LabelledDataset
from tsadbench.datasets.fetch import Source, find_or_download, place
from tsadbench.datasets.reader import load_card
from tsadbench.errors import DataError

_CARDS = Path(__file__).parent
# "760-765:4,5,7": the rows of an event, counted from 0, and its sensors, counted from 1.
_EVENT = re.compile(r"(\d+)-(\d+):(\d+(?:,\d+)*)")


def load_published(card: Path, options: DataOptions) -> LabelledDataset:
    """Return the data set of a card that is called like its source.

    A DataNotFoundError if the files are not on this machine and cannot be downloaded. A DataError if a file is
    malformed, or well-formed but different from the published one.
    """
    source = Source.load(card.stem)
    folder = find_or_download(source, options.directory)
    try:
        dataset, labels = load_card(card, folder)
    except DataError as error:
        raise DataError(f"{error}\n{source.changes(folder)}".rstrip()) from error
    notes = source.notes(folder, allow_changed=options.allow_changed)
    return LabelledDataset(replace(dataset, notes=(*notes, *dataset.notes)), labels)


def load_cranfield(options: DataOptions) -> LabelledDataset:
    """Cranfield: a three-phase flow facility, 23 sensors, one row a second; six kinds of fault in 16 recordings."""
    return load_published(_CARDS / "cranfield.toml", options)


def load_gecco2018(options: DataOptions) -> LabelledDataset:
    """GECCO 2018: the quality of drinking water, 9 sensors, one row a minute for 193 days, 97 events."""
    return load_published(_CARDS / "gecco2018.toml", options)


def load_asd(options: DataOptions) -> LabelledDataset:
    """ASD: 12 application servers, 19 metrics, one row every five minutes; which metrics each event shows in."""
    return _with_causes("asd", options, last_row=1)


def load_smd(options: DataOptions) -> LabelledDataset:
    """SMD: 8 of 28 server machines, 38 metrics, one row a minute; which metrics each event shows in."""
    return _with_causes("smd", options, last_row=0)


def _with_causes(name: str, options: DataOptions, *, last_row: int) -> LabelledDataset:
    """Return one of InterFusion's data sets with the sensors of each event; ``last_row`` is 1 if it is in the event."""
    dataset, labels = load_published(_CARDS / f"{name}.toml", options)
    folder = place(name, options.directory) / "interpretation_label"
    causes: dict[str, tuple[Cause, ...]] = {}
    for id_ in labels.rows:
        events = _EVENT.findall((folder / f"{dataset.entities[id_]}.txt").read_text(encoding="utf-8"))
        causes[id_] = tuple(
            Cause(int(start), int(end) + last_row, tuple(dataset.sensors[int(one) - 1] for one in blamed.split(",")))
            for start, end, blamed in events
        )
    return LabelledDataset(dataset, replace(labels, causes=causes))
