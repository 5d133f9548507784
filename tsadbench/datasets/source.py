"""The files of a data set as its authors publish them: their addresses and their checksums."""

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
    """Where a data set's files are published, and what they contain.

    Parameters
    ----------
    name
        The data set's name, and that of the folder with its files.
    url
        The address of the folder; the environment variable `url_variable` overrides it.
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
        names = published()
        if name not in names:
            raise UsageError(f"data set {name!r}: expected one whose files are published, these are: {names}")
        content = json.loads((CATALOGUE / f"{name}{_SUFFIX}").read_text(encoding="utf-8"))
        return cls(name=name, url=content["url"], sha256=content["sha256"])

    @property
    def url_variable(self) -> str:
        """The environment variable that names a mirror, for instance TSADBENCH_SKAB_URL."""
        return f"TSADBENCH_{self.name.upper()}_URL"

    def address(self, file: str) -> str:
        """Return the address of a file."""
        base = os.environ.get(self.url_variable) or self.url
        return f"{base.rstrip('/')}/{file}"

    def missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks."""
        return [file for file in self.sha256 if not (folder / file).exists()]

    def require(self, folder: Path) -> None:
        """Raise a DataNotFoundError if the folder lacks files."""
        missing = self.missing(folder)
        if missing:
            raise DataNotFoundError(
                f"{self.name}: {len(missing)} of {len(self.sha256)} files are missing in {folder}: {listed(missing)}; "
                f"run  tsadbench data fetch {self.name} --data {folder.parent}"
            )

    def notes(self, folder: Path, *, allow_changed: bool) -> tuple[str, ...]:
        """Return what tables must say of files in the folder that differ from the published ones.

        Raises
        ------
        DataError
            If files differ and ``allow_changed`` is False, or a file cannot be read.
        """
        changed = [file for file in self.sha256 if self.state(folder, file) != "as published"]
        if not changed:
            return ()
        verb = "differs" if len(changed) == 1 else "differ"
        if allow_changed:
            count = f"{len(changed)} of {self.name.upper()}'s {len(self.sha256)} files"
            return (f"{count} {verb} from the published ones: {', '.join(changed)}.",)
        raise DataError(
            f"{self.name}: {len(changed)} of {len(self.sha256)} files in {folder} {verb} from the published ones "
            f"(SHA-256): {listed(changed)}; put the published ones there with  tsadbench data fetch {self.name} --data "
            f"{folder.parent}, or continue with --allow-changed-data, which every table will say"
        )

    def state(self, folder: Path, file: str) -> FileState:
        """Compare a file in the folder with the published one.

        Raises
        ------
        DataError
            If the file cannot be read.
        """
        path = folder / file
        if not path.exists():
            return "missing"
        try:
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); put the published file there") from error
        return "as published" if sha256 == self.sha256[file] else "differs"


def published() -> list[str]:
    """Return the names of the data sets whose files are published."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in CATALOGUE.glob(f"*{_SUFFIX}"))


def listed(files: Sequence[str]) -> str:
    """Return files' names for a message: the first few, and how many more there are."""
    rest = len(files) - _SHOWN
    return ", ".join(files[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
