"""Files of data sets as their authors publish them: find them, download them and compare them with their checksums.

They are looked for in ``--data DIR``, else in the folder that TSADBENCH_DATA names, else in the cache, which is filled
by downloading.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from tsadbench.errors import DataError, DataNotFoundError, UsageError
from tsadbench.utils.files import cache_folder, digest
from tsadbench.utils.progress import progress
from tsadbench.utils.text import first_of, one_line

VARIABLE = "TSADBENCH_DATA"
# Holds one NAME.source.json for each data set whose files are published.
CATALOGUE = Path(__file__).parent
_SUFFIX = ".source.json"
# Data sets whose files may not be published.
BY_REQUEST = ("swat", "wadi")
HOW = "iTrust (https://itrust.sutd.edu.sg/itrust-labs_datasets) sends them to those who ask"
# Seconds until a server answers, and until it sends more.
TIMEOUT = (3.0, 30.0)
_RETRIES = 2
# The address of a file's content, and that of a page which shows it.
_RAW = re.compile(r"^https://raw\.githubusercontent\.com/([^/]+/[^/]+)/")

FileState: TypeAlias = Literal["as published", "missing", "differs"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set's files are published, and what they contain.

    Parameters
    ----------
    name
        The data set's name, and that of the folder with its files.
    url
        The address of the folder at the source. The variable TSADBENCH_NAME_URL replaces it by that of a mirror.
    licence
        The licence of the files.
    n_bytes
        The size of all files together.
    sha256
        The checksum of each file, by its path in the folder.
    paths
        Where files lie at the source, if not at the same path: the beginning of a path in the folder, and what replaces
        it there. The longest beginning that fits counts; the empty one fits every path.
    """

    name: str
    url: str
    licence: str
    n_bytes: int
    sha256: Mapping[str, str]
    paths: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, name: str) -> Source:
        """Return the source of a data set; a UsageError if its files are not published."""
        if name not in published():
            raise UsageError(f"data set {name!r}: expected one whose files are published: {', '.join(published())}")
        return cls(name=name, **json.loads((CATALOGUE / f"{name}{_SUFFIX}").read_text(encoding="utf-8")))

    @property
    def origin(self) -> str:
        """Where the files are published, how large they are and under which licence, for people."""
        page = _RAW.sub(r"https://github.com/\1/tree/", self.url)
        return f"{self.n_bytes / 1e6:.1f} MB, {self.licence}, published at {page}"

    def address(self, file: str) -> str:
        """Return the address of a file: at the mirror if there is one, otherwise at the source."""
        if mirror := os.environ.get(f"TSADBENCH_{self.name.upper()}_URL"):
            return f"{mirror.rstrip('/')}/{file}"
        beginning = max(filter(file.startswith, self.paths), key=len, default="")
        return f"{self.url}/{self.paths.get(beginning, '')}{file.removeprefix(beginning)}"

    def state(self, folder: Path, file: str) -> FileState:
        """Compare a file in the folder with the published one. A DataError if the file cannot be read."""
        try:
            return "as published" if digest((folder / file).read_bytes()) == self.sha256[file] else "differs"
        except FileNotFoundError:
            return "missing"
        except OSError as error:
            raise DataError(f"{folder / file}: cannot be read ({error.strerror})") from error

    def missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks."""
        return [file for file in self.sha256 if not (folder / file).exists()]

    def require(self, folder: Path) -> None:
        """Raise a DataNotFoundError if the folder lacks files."""
        if missing := self.missing(folder):
            found = f"{len(missing)} of {len(self.sha256)} files are missing in {folder}: {first_of(missing)}"
            raise DataNotFoundError(f"{self.name}: {found}; {_to_fetch(self.name, folder)}  ({self.origin})")

    def changes(self, folder: Path) -> str:
        """Return a sentence that names the files that are not the published ones; empty if there are none."""
        changed = [file for file in self.sha256 if self.state(folder, file) != "as published"]
        differ = "differs" if len(changed) == 1 else "differ"
        count = f"{len(changed)} of {self.name.upper()}'s {len(self.sha256)} files {differ} from the published ones"
        return f"{count}: {', '.join(changed)}." if changed else ""

    def notes(self, folder: Path, *, allow_changed: bool) -> tuple[str, ...]:
        """Return what tables must say of files that are not the published ones; a DataError unless they are allowed."""
        changes = self.changes(folder)
        if changes and not allow_changed:
            raise DataError(
                f"{folder}: {changes} {_to_fetch(self.name, folder)}  or continue with --allow-changed-data"
            )
        return (changes,) if changes else ()


def published() -> list[str]:
    """Return the names of the data sets whose files are published."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in CATALOGUE.glob(f"*{_SUFFIX}"))


def place(name: str, directory: Path | None) -> Path:
    """Return the folder in which a data set's files are or, once fetched, will be."""
    above = directory or os.environ.get(VARIABLE)
    return (Path(above).expanduser() if above else cache_folder()) / name


def find(name: str, directory: Path | None) -> Path:
    """Return the folder that holds a data set's files; a DataNotFoundError if there is none."""
    folder = place(name, directory)
    if folder.is_dir():
        return folder
    how = HOW if name in BY_REQUEST else f"{_to_fetch(name, folder)}  ({Source.load(name).origin})"
    above = f"--data DIR or {VARIABLE}=DIR names the folder that holds {name}/"
    raise DataNotFoundError(f"{name}: there is no folder {folder}; {above}; {how}")


def find_or_download(source: Source, directory: Path | None) -> Path:
    """Return the folder that holds all files of a data set; if no folder is named, download them to the cache.

    A DataNotFoundError if a folder that the user has named lacks files, or if they cannot be downloaded.
    """
    folder = place(source.name, directory)
    if directory is None and not os.environ.get(VARIABLE) and source.missing(folder):
        try:
            download(source, folder)
        except DataError as error:
            instead = f"--data DIR or {VARIABLE}=DIR names a folder that holds {source.name}/"
            raise DataNotFoundError(f"{source.name}: {error}; {instead}  ({source.origin})") from error
    find(source.name, directory)
    source.require(folder)
    return folder


def download(source: Source, folder: Path) -> list[str]:
    """Download the files that are missing or differ from the published ones; return their names.

    A file appears under its name only when it is complete and its checksum is right. Reports progress, a step a file. A
    DataError if a file cannot be downloaded or written, or is not the published one.
    """
    import pooch  # slow to import, and most files are there

    pooch.get_logger().setLevel(logging.ERROR)  # the progress bar shows what it would log
    wrong = [file for file in source.sha256 if source.state(folder, file) != "as published"]
    urls = {file: source.address(file) for file in wrong}
    registry = {file: f"sha256:{source.sha256[file]}" for file in wrong}
    files = pooch.create(folder, base_url="", registry=registry, urls=urls, retry_if_failed=_RETRIES)
    for done, file in enumerate(wrong, start=len(source.sha256) - len(wrong)):
        progress(done, len(source.sha256), file)
        try:
            files.fetch(file, downloader=pooch.HTTPDownloader(timeout=TIMEOUT))
        except (OSError, ValueError) as error:
            reason = one_line(str(error), 300)
            raise DataError(
                f"{file} cannot be downloaded from {urls[file]}: {reason}; running it again continues from here"
            ) from error
        (folder / file).chmod(0o644)  # pooch leaves it readable by its owner only, and folders of data are shared
    progress(len(source.sha256), len(source.sha256))
    return wrong


def _to_fetch(name: str, folder: Path) -> str:
    return f"run  tsadbench data fetch {name} --data {folder.parent}"
