"""The files of a data set as its authors publish them: where they are, and their checksums."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tsadbench.errors import DataError, DataNotFoundError, UsageError

# Holds one NAME.source.json for each data set whose files are published.
CATALOGUE = Path(__file__).parent
_SUFFIX = ".source.json"
_SHOWN = 5

FileState: TypeAlias = Literal["as published", "missing", "differs"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set's files are published, and what their bytes must be.

    Parameters
    ----------
    name
        The data set's name, and that of the folder which holds its files.
    url
        The address under which every file lies; `url_variable` in the environment overrides it.
    sha256
        The checksum of each file, by its path in the folder.
    """

    name: str
    url: str
    sha256: Mapping[str, str]

    @classmethod
    def load(cls, name: str) -> Source:
        """Return the source of the data set of this name.

        Raises
        ------
        UsageError
            If no data set of this name has published files.
        """
        known = published()
        if name not in known:
            raise UsageError(f"data set {name!r}: expected one whose files are published, these are: {known}")
        content = json.loads((CATALOGUE / f"{name}{_SUFFIX}").read_text(encoding="utf-8"))
        return cls(name=name, url=content["url"], sha256=content["sha256"])

    @property
    def url_variable(self) -> str:
        """The environment variable that names a mirror, for instance TSADBENCH_SKAB_URL."""
        return f"TSADBENCH_{self.name.upper()}_URL"

    def address(self, file: str) -> str:
        """Return the address of one of the files."""
        base = os.environ.get(self.url_variable) or self.url
        return f"{base.rstrip('/')}/{file}"

    def missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks."""
        return [file for file in self.sha256 if not (folder / file).exists()]

    def require(self, folder: Path) -> None:
        """Raise a DataNotFoundError where the folder lacks files."""
        missing = self.missing(folder)
        if missing:
            raise DataNotFoundError(
                f"{self.name}: {len(missing)} of {len(self.sha256)} files are missing in {folder}: {listed(missing)}; "
                f"run  tsadbench data fetch {self.name} --data {folder.parent}"
            )

    def notes(self, found: Mapping[str, str], folder: Path, *, allow_changed: bool) -> tuple[str, ...]:
        """Return what tables must say of files that differ from the published ones.

        Parameters
        ----------
        found
            The checksum of each file, as found.
        folder
            Where they were found.
        allow_changed
            Whether such files are accepted.

        Raises
        ------
        DataError
            If files differ and are not accepted.
        """
        changed = self.differing(found)
        if not changed:
            return ()
        verb = "differs" if len(changed) == 1 else "differ"
        if allow_changed:
            names = ", ".join(changed)
            return (
                f"{len(changed)} of {self.name.upper()}'s {len(found)} files {verb} from the published ones: {names}.",
            )
        raise DataError(
            f"{self.name}: {len(changed)} of {len(found)} files in {folder} {verb} from the published ones (SHA-256): "
            f"{listed(changed)}; put the published ones there with  tsadbench data fetch {self.name} --data "
            f"{folder.parent}, or go on with --allow-changed-data, which every table will say"
        )

    def differing(self, found: Mapping[str, str]) -> list[str]:
        """Return those of the files whose checksums, as found, are not the published ones."""
        return [file for file, sha256 in found.items() if self.sha256[file] != sha256]

    def state(self, folder: Path, file: str) -> FileState:
        """Say how one of the files in the folder compares with the published one.

        Raises
        ------
        DataError
            If the file cannot be read.
        """
        if not (folder / file).exists():
            return "missing"
        return "as published" if _checksum(folder / file) == self.sha256[file] else "differs"

    def checksums(self, folder: Path) -> dict[str, str]:
        """Return the checksum of each file in the folder.

        Raises
        ------
        DataError
            If a file cannot be read.
        """
        return {file: _checksum(folder / file) for file in self.sha256}


def _checksum(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); put the published file there") from error


def published() -> list[str]:
    """Return the names of the data sets whose files are published."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in CATALOGUE.glob(f"*{_SUFFIX}"))


def listed(files: Sequence[str]) -> str:
    """Return the files' names for a message: the first few, and how many more there are."""
    rest = len(files) - _SHOWN
    return ", ".join(files[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
