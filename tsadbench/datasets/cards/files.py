"""Which files a card means. Nothing outside the card's folder is ever read."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tsadbench.datasets.reading.arrays import ARRAYS
from tsadbench.datasets.reading.parquet import PARQUET
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.utils.issues import Issue
from tsadbench.utils.text import printable

_TRAIN_ROWS = re.compile(r"(?:^|_)tr_(\d+)(?:_|$)")
_BELOW = "expected a path below the card's folder, without '..'; move the file"


@dataclass(frozen=True, slots=True)
class File:
    """One of a card's files.

    Parameters
    ----------
    path
        Where it is.
    name
        Its path as the card's folder sees it, with slashes.
    id
        The name of its recording.
    """

    path: Path
    name: str
    id: str

    @property
    def train_rows(self) -> int | None:
        """The number after ``tr_`` in its name, with which TSB-AD says how many rows are for training."""
        number = _TRAIN_ROWS.search(PurePosixPath(self.name).stem)
        return None if number is None else int(number[1])

    @property
    def is_parquet(self) -> bool:
        """Whether its name says that it is a Parquet file."""
        return self.path.suffix.lower() in PARQUET

    @property
    def is_array(self) -> bool:
        """Whether its name says that it holds arrays: MATLAB's, R's or a pickle. Files of other names are CSV."""
        return self.path.suffix.lower() in ARRAYS


def find_files(
    folder: Path, patterns: Sequence[str], card: str, *, ids: str = "path"
) -> tuple[list[File], list[Issue]]:
    """Return the files that any pattern names, each once, and what is wrong with the patterns."""
    files: dict[str, File] = {}
    issues = []
    for pattern in patterns:
        if not _stays_inside(pattern):
            issues.append(Issue(card, f"files {pattern!r}: {_BELOW}"))
            continue
        try:
            found = [path for path in folder.glob(_searching(pattern)) if not path.is_dir()]
        except (ValueError, IndexError, NotImplementedError):
            issues.append(
                Issue(card, f"files {pattern!r}: expected a name or pattern; '**' stands alone between slashes")
            )
            continue
        if not found:
            issues.append(Issue(card, f"files {pattern!r}: {_absence(folder / pattern, folder)}"))
        for path in sorted(found, key=lambda path: as_counted(str(path))):
            name = path.relative_to(folder).as_posix()
            try:
                check_name(name)
                if not path.is_file():
                    raise MalformedError(f"files {name!r}: {_absence(path, folder)}")
                _check_inside(folder, path, name)
            except MalformedError as error:
                issues.append(Issue(card, error.text))
            else:
                id_ = path.stem if ids == "file name" else str(PurePosixPath(name).with_suffix(""))
                files.setdefault(name, File(path, name, id_))
    return list(files.values()), issues


def find_file(folder: Path, name: str, key: str) -> Path:
    """Return a single file that the card names under a key.

    A MalformedError if there is no such file, or it lies outside the folder.
    """
    path = folder / name
    if not _stays_inside(name):
        raise MalformedError(f"{key} {name!r}: {_BELOW}")
    if not path.is_file():
        raise MalformedError(f"{key} {name!r}: {_absence(path, folder)}")
    _check_inside(folder, path, name)
    return path


def _searching(pattern: str) -> str:
    """Return a pattern that finds links to nothing as well: a plain name after a pattern would leave them out."""
    above, _, last = pattern.rpartition("/")
    plain = last[:1] not in ("", ".", "!") and not re.search(r"[*?\[]", last)
    return f"{above}/[{last[0]}]{last[1:]}" if plain and re.search(r"[*?\[]", above) else pattern


def check_name(name: str) -> None:
    """Raise a MalformedError if a file's name cannot be shown, or kept in a record: it is not UTF-8, for instance."""
    shown = printable(name)
    if shown != name:
        text = "its name is not UTF-8 or has characters that are not shown; rename it"
        raise MalformedError(f"files '{shown}': {text}")


def _absence(path: Path, folder: Path) -> str:
    """Return why there is no file to read at a path."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "is a link in a loop; put the file itself there"
        if os.path.lexists(path):
            return "is a link to nothing; put the file itself there"
        return f"there is no such file in {folder}; correct the name or pattern"
    except ValueError:  # a null byte
        return f"there is no such file in {folder}; correct the name or pattern"
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFREG: "no folder"}
    kind = kinds.get(stat.S_IFMT(mode), "a device")
    return f"is {kind}; expected a file: take it out of the folder, or correct the name or pattern"


def _check_inside(folder: Path, path: Path, name: str) -> None:
    """Raise a MalformedError unless a file really lies in the folder, links followed."""
    if not path.resolve().is_relative_to(folder.resolve()):
        target = path.resolve()
        raise MalformedError(
            f"files {name!r}: is a link out of the card's folder, to {target}; put the file itself there"
        )


def as_counted(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts "2" before "10".

    Examples
    --------
    >>> sorted(["d10.csv", "d2.csv"], key=as_counted)
    ['d2.csv', 'd10.csv']
    """
    parts = re.findall(r"\d+|\D+", text)
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)


def _stays_inside(pattern: str) -> bool:
    parts = PurePosixPath(pattern.replace("\\", "/"))
    return bool(pattern) and not parts.is_absolute() and ".." not in parts.parts and not re.match(r"[A-Za-z]:", pattern)
