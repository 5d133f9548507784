"""Data sets that are a card and published files: these are found or downloaded, and compared with the published ones.

Each card says where its files come from, which rows train and why, and what was left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tsadbench.base.dataset import Cause, DataOptions, Dataset, LabelledDataset
from tsadbench.datasets.cards.reader import load_card
from tsadbench.datasets.location import find_or_download, place
from tsadbench.datasets.source import Source
from tsadbench.errors import DataError
from tsadbench.utils.files import read_text

_HERE = Path(__file__).parent
_LARGEST = 2**24
# "760-765:4,5,7": the rows of an event, counted from 0, and its sensors, counted from 1.
_EVENT = re.compile(r"(\d{1,9})-(\d{1,9}):(\d{1,4}(?:,\d{1,4})*)")


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
        raise source.with_hint(error, folder) from error
    notes = source.notes(folder, allow_changed=options.allow_changed)
    return LabelledDataset(replace(dataset, notes=(*notes, *dataset.notes)), labels)


def load_cranfield(options: DataOptions) -> LabelledDataset:
    """Cranfield: a three-phase flow facility, 23 sensors, one row a second; six kinds of fault in 16 recordings."""
    return load_published(_HERE / "cranfield.toml", options)


def load_gecco2018(options: DataOptions) -> LabelledDataset:
    """GECCO 2018: the quality of drinking water, 9 sensors, one row a minute for 193 days, 97 events."""
    return load_published(_HERE / "gecco2018.toml", options)


def load_asd(options: DataOptions) -> LabelledDataset:
    """ASD: 12 application servers, 19 metrics, one row every five minutes; which metrics each event shows in."""
    return _load_servers("asd", options, includes_end=True)


def load_smd(options: DataOptions) -> LabelledDataset:
    """SMD: 8 of 28 server machines, 38 metrics, one row a minute; which metrics each event shows in."""
    return _load_servers("smd", options, includes_end=False)


def _load_servers(name: str, options: DataOptions, *, includes_end: bool) -> LabelledDataset:
    """Return one of InterFusion's data sets of servers, with the sensors of each event."""
    dataset, labels = load_published(_HERE / f"{name}.toml", options)
    folder = place(name, options.directory) / "interpretation_label"
    causes = dict(_causes(dataset, folder, includes_end=includes_end))
    return LabelledDataset(dataset, replace(labels, causes=causes))


def _causes(dataset: Dataset, folder: Path, *, includes_end: bool) -> Iterator[tuple[str, tuple[Cause, ...]]]:
    """Yield each test recording's id, and the sensors of its events."""
    n_rows: Mapping[str, int] = {recording.id: recording.n_rows for recording in dataset.test}
    for id_, rows in n_rows.items():
        file = folder / f"{dataset.entities[id_]}.txt"
        try:
            lines = read_text(file, _LARGEST).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{file}: cannot be read ({error}); fetch the file again") from error
        found = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            match = _EVENT.fullmatch(line.strip())
            start, end = (int(match[1]), int(match[2]) + includes_end) if match else (0, 0)
            blamed = [int(sensor) for sensor in match[3].split(",")] if match else [0]
            n_sensors = len(dataset.sensors)
            if not (start < end <= rows and min(blamed) >= 1 and max(blamed) <= n_sensors):
                raise DataError(
                    f"{file}, line {number}: expected START-END:SENSOR,SENSOR,..., rows below {rows} and sensors "
                    f"from 1 to {n_sensors}, found {line.strip()[:60]!r}; fetch the file again"
                )
            found.append(Cause(start, end, tuple(dataset.sensors[sensor - 1] for sensor in blamed)))
        yield id_, tuple(found)
