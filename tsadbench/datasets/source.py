"""The files of a data set as its authors publish them: their addresses and their checksums."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from tsadbench.errors import DataError, DataNotFoundError, UsageError
from tsadbench.utils.files import digest
from tsadbench.utils.text import first_of

# Holds one NAME.source.json for each data set whose files are published.
CATALOGUE = Path(__file__).parent
_SUFFIX = ".source.json"
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
        The address of the folder at the source.
    licence
        The licence of the files.
    n_bytes
        The size of all files together.
    sha256
        The checksum of each file, by its path in the folder.
    paths
        Where files lie at the source, if not at the same path: the beginning of a path in the folder, and what replaces
        it there. The longest beginning that fits counts; the empty one fits every path.
    sizes
        Bytes of files whose sizes are known, by their paths: more of a file is not downloaded.
    """

    name: str
    url: str
    licence: str
    n_bytes: int
    sha256: Mapping[str, str]
    paths: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def load(cls, name: str) -> Source:
        """Return the source of the data set of this name.

        A UsageError if no data set of this name has published files.
        """
        names = published()
        if name not in names:
            raise UsageError(f"data set {name!r}: expected one whose files are published, these are: {names}")
        content = json.loads((CATALOGUE / f"{name}{_SUFFIX}").read_text(encoding="utf-8"))
        return cls(name=name, **content)

    @property
    def url_variable(self) -> str:
        """The environment variable that names a mirror: a copy of the data set's folder, say TSADBENCH_SKAB_URL."""
        return f"TSADBENCH_{self.name.upper()}_URL"

    def address(self, file: str) -> str:
        """Return the address of a file: at the mirror if there is one, otherwise at the source."""
        mirror = os.environ.get(self.url_variable)
        if mirror:
            return f"{mirror.rstrip('/')}/{file}"
        beginning = max((one for one in self.paths if file.startswith(one)), key=len, default="")
        return f"{self.url}/{self.paths.get(beginning, '')}{file.removeprefix(beginning)}"

    @property
    def origin(self) -> str:
        """Where the files are published, how large they are and under which licence, for people."""
        page = _RAW.sub(r"https://github.com/\1/tree/", self.url)
        return f"{megabytes(self.n_bytes)} MB, {self.licence}, published at {page}"

    def missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks."""
        return [file for file in self.sha256 if not (folder / file).exists()]

    def require(self, folder: Path) -> None:
        """Raise a DataNotFoundError if the folder lacks files."""
        missing = self.missing(folder)
        if missing:
            raise DataNotFoundError(
                f"{self.name}: {len(missing)} of {len(self.sha256)} files are missing in {folder}: "
                f"{first_of(missing)}; run  tsadbench data fetch {self.name} --data {folder.parent}  ({self.origin})"
            )

    def notes(self, folder: Path, *, allow_changed: bool) -> tuple[str, ...]:
        """Return what tables must say of files in the folder that differ from the published ones.

        A DataError if files differ and ``allow_changed`` is False, or a file cannot be read.
        """
        changed = self._changed(folder)
        if not changed:
            return ()
        if allow_changed:
            count = f"{len(changed)} of {self.name.upper()}'s {len(self.sha256)} files"
            return (f"{count} {_verb(changed)} from the published ones: {', '.join(changed)}.",)
        raise DataError(
            f"{self._told(changed, folder)}, or continue with --allow-changed-data, which every table will say"
        )

    def with_hint(self, error: DataError, folder: Path) -> DataError:
        """Return an error about the folder's files; if some are not the published ones, it says how to get these."""
        changed = self._changed(folder)
        return DataError(f"{error}\n{self._told(changed, folder)}") if changed else error

    def _changed(self, folder: Path) -> list[str]:
        return [file for file in self.sha256 if self.state(folder, file) != "as published"]

    def _told(self, changed: Sequence[str], folder: Path) -> str:
        return (
            f"{self.name}: {len(changed)} of {len(self.sha256)} files in {folder} {_verb(changed)} from the published "
            f"ones (SHA-256): {first_of(changed)}; put the published ones there with  tsadbench data fetch {self.name} "
            f"--data {folder.parent}"
        )

    def state(self, folder: Path, file: str) -> FileState:
        """Compare a file in the folder with the published one. A DataError if the file cannot be read."""
        path = folder / file
        if not path.exists():
            return "missing"
        try:
            sha256 = digest(path.read_bytes())
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); put the published file there") from error
        return "as published" if sha256 == self.sha256[file] else "differs"


def published() -> list[str]:
    """Return the names of the data sets whose files are published."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in CATALOGUE.glob(f"*{_SUFFIX}"))


def _verb(changed: Sequence[str]) -> str:
    return "differs" if len(changed) == 1 else "differ"


def megabytes(n_bytes: int) -> str:
    """Return a size in megabytes, which are millions of bytes.

    Examples
    --------
    >>> megabytes(12_141_006), megabytes(924_488)
    ('12.1', '0.9')
    """
    return f"{n_bytes / 1e6:.1f}"
