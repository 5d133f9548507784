"""What commands tell of data sets: their files, where these are published, what they contain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsadbench.analysis.audit.findings import shipped_note
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.sessions import sessions_of
from tsadbench.datasets.cards.by_request import HOW, OBTAINED
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.datasets.location import find, find_obtained, place
from tsadbench.datasets.source import Source, published
from tsadbench.datasets.suites import SUITES
from tsadbench.errors import DataNotFoundError, UsageError
from tsadbench.registry import entries


@dataclass(frozen=True, slots=True)
class Listed:
    """A registered data set and its files, as `tsadbench data list` tells of them."""

    name: str
    here: bool
    where: str
    licence: str | None = None
    files: int | None = None
    bytes: int | None = None


def sources_of(names: Iterable[str]) -> list[Source]:
    """Return the sources of data sets, and of the data sets of suites, each once.

    Raises
    ------
    UsageError
        If a data set's files are not published. A suite's data sets without published files are passed over.
    """
    sources: dict[str, Source] = {}
    for name in names:
        members = SUITES[name].datasets if name in SUITES else (name,)
        for member in members:
            if name not in SUITES or member in published():
                sources[member] = source_of(member)
    return list(sources.values())


def source_of(name: str) -> Source:
    """Return the source of a data set; a UsageError says why if its files are not published."""
    if name in OBTAINED:
        raise UsageError(f"{name}: its files are not published, so they cannot be fetched or compared; {HOW}")
    if name.endswith(CARD_ENDING):
        raise UsageError(f"{name}: the files of a card lie beside it; check them with  tsadbench data validate {name}")
    if name not in published() and name in {entry.name for entry in entries("datasets")}:
        raise UsageError(f"{name}: it has no files to fetch or to compare, it comes with its package")
    return Source.load(name)


def folder_of(name: str, directory: Path | None) -> Path:
    """Return the folder with a data set's files; a DataNotFoundError if there is none."""
    return find_obtained(name, directory, HOW) if name in OBTAINED else find(source_of(name), directory)


def listed(directory: Path | None) -> Iterator[Listed]:
    """Yield every registered data set; nothing is downloaded or read.

    Parameters
    ----------
    directory
        As ``--data``.
    """
    for name in dict.fromkeys(entry.name for entry in entries("datasets")):
        folder = place(name, directory)
        if name in published():
            source = Source.load(name)
            count, missing = len(source.sha256), len(source.missing(folder))
            where = f"{missing} of {count} files are missing: tsadbench data fetch {name}" if missing else str(folder)
            yield Listed(name, not missing, where, source.licence, count, source.n_bytes)
        elif name in OBTAINED:
            here = folder.is_dir()
            yield Listed(name, here, str(folder) if here else HOW, "by request")
        else:
            yield Listed(name, here=True, where="comes with its package")


def load_here(name: str, directory: Path | None) -> LabelledDataset:
    """Load a data set whose files are on this machine; never download.

    Raises
    ------
    DataNotFoundError
        If files are missing; the message says where they are published.
    """
    if name in published():
        source = Source.load(name)
        source.require(find(source, directory))
    return load_dataset(name)(DataOptions(directory=directory, allow_changed=True))


def contents(loaded: LabelledDataset) -> Iterator[str]:
    """Yield what a data set contains, line by line."""
    data, labels = loaded.dataset, loaded.labels
    yield f"sensors   {len(data.sensors)}: {_first(data.sensors)}"
    yield f"training  {len(data.train)} recordings, {sum(part.n_rows for part in data.train):,} rows"
    yield f"test      {_test_rows(loaded)}"
    for split, members in data.splits.items():
        yield f"split     {split}: {len(members)} recordings"
    sessions = sessions_of(data)
    names = list(dict.fromkeys(sessions[recording.id] for recording in data.test or data.train))
    role = "under test" if data.test else "to train on"
    yield f"sessions  {len(names)} {role}, {'declared' if data.sessions else 'inferred'}: {_first(names)}"
    entities = list(dict.fromkeys(data.entities.values()))
    if len(entities) > 1:
        yield f"entities  {len(entities)}, a model for each: {_first(entities)}"
    yield f"prior     {'none' if data.prior is None else f'{len(data.prior.edges)} edges'}"
    if labels.causes:
        yield f"causes    {sum(map(len, labels.causes.values()))} events with the sensors that are to blame"
    yield f"version   {data.version}"
    for title, text in (("licence", data.licence), ("citation", data.citation)):
        if text:
            yield f"{title:<9} {text}"
    for note in data.notes:
        yield f"note      {note}"


def _test_rows(loaded: LabelledDataset) -> str:
    rows = sum(recording.n_rows for recording in loaded.dataset.test)
    what = f"{len(loaded.dataset.test)} recordings, {rows:,} rows"
    if loaded.missing:
        can = "detectors can be fitted and can score files, but not be compared"
        return f"none: {can}" if loaded.missing == "test recordings" else f"{what}, no labels: {can}"
    anomalous = sum(int(rows_of_recording.sum()) for rows_of_recording in loaded.labels.rows.values())
    return f"{what}, {anomalous:,} anomalous ({anomalous / rows:.1%})"


def description(name: str, directory: Path | None) -> Iterator[str]:
    """Yield what a registered data set contains if its files are here, otherwise where they are published."""
    try:
        yield from contents(load_here(name, directory))
    except DataNotFoundError as error:
        yield f"files     {error}"
    note = shipped_note(name)
    if note:
        yield f"audit     {note.removeprefix(f'{name}: ')}"


def _first(names: Sequence[str], limit: int = 8) -> str:
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "")
