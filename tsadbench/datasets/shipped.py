"""Data sets that ship as a card in ``cards``; their authors publish the files, or send them on request.

Each card says where its files come from, which rows train and why, and what was left out. Files are looked up in
``--data DIR``, else in TSADBENCH_DATA, else in the cache, into which missing ones with a checksum are downloaded.
"""

from __future__ import annotations

import json
import logging
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tsadbench.base.dataset import DataOptions, LabelledDataset, Loader
from tsadbench.datasets.reader import load_card
from tsadbench.errors import DataError, DataNotFoundError, UsageError
from tsadbench.registry import entries
from tsadbench.utils.files import cache_folder, digest
from tsadbench.utils.progress import progress
from tsadbench.utils.text import first_of, one_line

VARIABLE = "TSADBENCH_DATA"
CATALOGUE = _HERE = Path(__file__).parent  # holds one NAME.source.json for each data set with files
_SUFFIX = ".source.json"
TIMEOUT = (3.0, 30.0)  # timeouts in seconds: to connect, and between packets


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set's files are published, and what they contain."""

    name: str
    url: str  # the folder's address; the variable TSADBENCH_NAME_URL names a mirror
    licence: str
    n_bytes: int  # total size; 0 if unknown
    sha256: Mapping[str, str]  # file path in the folder -> SHA-256, "" if unknown
    # Path prefix in the folder -> prefix at the source; the longest match counts.
    paths: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, name: str) -> Source:
        """Return the source of a data set; a UsageError if it has none."""
        if name not in published():
            raise UsageError(f"data set {name!r}: expected one with files: {', '.join(published())}")
        return cls(name=name, **json.loads((CATALOGUE / f"{name}{_SUFFIX}").read_text(encoding="utf-8")))

    @property
    def is_checked(self) -> bool:
        """Whether all checksums are known; only then are the files downloaded."""
        return all(self.sha256.values())

    def address(self, file: str) -> str:
        """Return the address of a file, at the mirror if there is one."""
        if mirror := os.environ.get(f"TSADBENCH_{self.name.upper()}_URL"):
            return f"{mirror.rstrip('/')}/{file}"
        beginning = max(filter(file.startswith, self.paths), key=len, default="")
        return f"{self.url}/{self.paths.get(beginning, '')}{file.removeprefix(beginning)}"

    def how_to_get(self, folder: Path) -> str:
        """Return the instructions for getting the files into a folder."""
        if not self.is_checked:
            return f"get them from {self.url} ({self.licence}) and put them into {folder}"
        about = f"{self.n_bytes / 1e6:.1f} MB, {self.licence}, published at {self.url}"
        return f"run  tsadbench data fetch {self.name} --data {folder.parent}  ({about})"

    def missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks."""
        return [file for file in self.sha256 if not (folder / file).exists()]

    def changed(self, folder: Path) -> list[str]:
        """Return the files that are missing or differ from the published ones; a DataError if one cannot be read."""
        try:
            there = self.sha256.keys() - self.missing(folder)
            known = {file: one for file, one in self.sha256.items() if file in there and one}
            same = there - {file for file, one in known.items() if digest((folder / file).read_bytes()) != one}
        except OSError as error:
            raise DataError(f"{error.filename}: cannot be read ({error.strerror})") from error
        return [file for file in self.sha256 if file not in same]


def published() -> list[str]:
    """Return the names of the data sets that have a source."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in CATALOGUE.glob(f"*{_SUFFIX}"))


def place(name: str, directory: Path | None) -> Path:
    """Return the folder for a data set's files, whether they are there or not."""
    above = directory or os.environ.get(VARIABLE)
    return (Path(os.path.expanduser(above)) if above else cache_folder()) / name


def find(name: str, directory: Path | None) -> Path:
    """Return the folder with a data set's files; if no folder is named, download published files to the cache.

    Raises a DataNotFoundError if a folder named by the user lacks files, or if files cannot be downloaded.
    """
    folder, source = place(name, directory), Source.load(name)
    missing = source.missing(folder)
    above = f"--data DIR or {VARIABLE}=DIR names the folder that holds {name}/"
    if missing and directory is None and not os.environ.get(VARIABLE):
        try:
            download(source, folder)
        except DataError as error:
            raise DataNotFoundError(f"{name}: {error}; {above}") from error
    elif missing:
        found = f"{len(missing)} of its files are missing in {folder}: {first_of(missing)}"
        raise DataNotFoundError(f"{name}: {found}; {above}; {source.how_to_get(folder)}")
    return folder


def download(source: Source, folder: Path) -> list[str]:
    """Download the files that are missing or differ from the published ones; return their names.

    Files appear only when complete and verified; a DataError if a file cannot be downloaded or written, or if a
    checksum is unknown.
    """
    if not source.is_checked:
        names = first_of([*source.sha256])
        raise DataError(f"{names}: not downloaded, because no checksum is known; {source.how_to_get(folder)}")
    import pooch  # slow to import and rarely needed

    pooch.get_logger().setLevel(logging.ERROR)  # the progress bar replaces its log
    wrong, total = source.changed(folder), len(source.sha256)
    urls = {file: source.address(file) for file in wrong}
    files = pooch.create(folder, base_url="", registry=dict(source.sha256), urls=urls, retry_if_failed=2)
    for done, file in enumerate(wrong, start=total - len(wrong)):
        progress(done, total, file)
        try:
            files.fetch(file, downloader=pooch.HTTPDownloader(timeout=TIMEOUT))
        except (OSError, ValueError) as error:
            reason = f"{one_line(str(error), 300)}; running it again continues from here"
            raise DataError(f"{file} cannot be downloaded from {urls[file]}: {reason}") from error
        (folder / file).chmod(0o644)  # pooch makes files readable by the owner only, but data folders are shared
    progress(total, total)
    return wrong


def listed(directory: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the name, licence and files of every registered data set, without downloading or reading them."""
    for name in dict.fromkeys(entry.name for entry in entries("datasets")):
        folder = place(name, directory)
        found: dict[str, Any] = {"name": name, "here": True, "where": "comes with its package"}
        if name in published():
            source = Source.load(name)
            found |= {"licence": source.licence, "files": len(source.sha256), "bytes": source.n_bytes or None}
            missing, how = len(source.missing(folder)), f"tsadbench data fetch {name}"
            where = f"{missing} of {found['files']} files are missing: {how if source.is_checked else source.url}"
            found |= {"here": not missing, "where": where if missing else str(folder)}
        yield dict.fromkeys(("licence", "files", "bytes")) | found


def _loader(name: str, about: str) -> Loader:
    """Return a data set's loader, which raises errors as `find` and `load_card`, and a DataError for changed files."""
    card = _HERE / "cards" / f"{name}.toml"

    def load(options: DataOptions) -> LabelledDataset:
        folder = find(name, options.directory)
        source, note = Source.load(name), ""
        if changed := source.changed(folder):
            differ = f"{'differs' if len(changed) == 1 else 'differ'} from the published ones: {', '.join(changed)}."
            note = f"{len(changed)} of {name.upper()}'s {len(source.sha256)} files {differ}"
        try:
            dataset, labels = load_card(card, folder)
        except DataError as error:
            raise DataError(f"{error}\n{note}".rstrip()) from error
        if changed and not options.allow_changed:
            raise DataError(f"{folder}: {note} To restore them, {source.how_to_get(folder)}")
        return LabelledDataset(replace(dataset, notes=(*([note] if note else []), *dataset.notes)), labels)

    load.__name__ = f"load_{name}"  # as `load`, `tsadbench info` would take it for the only loader of this module
    load.__doc__ = about  # what `tsadbench info` prints
    return load


_ABOUT = tomllib.loads((_HERE / "shipped.about.toml").read_text(encoding="utf-8"))
# load_skab, load_tep and so on, which entry points name.
globals().update({f"load_{name}": _loader(name, about) for name, about in _ABOUT.items()})
