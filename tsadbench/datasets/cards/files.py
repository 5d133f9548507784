"""Which files a card means. Nothing outside the card's folder is ever read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tsadbench.utils.issues import Issues

PARQUET = (".parquet", ".pq")
# Cells in memory at a time: few enough to be small beside a long file, enough for its reader to be fast.
CHUNK_CELLS = 1_000_000
_TRAIN_ROWS = re.compile(r"(?:^|_)tr_(\d+)(?:_|$)")


@dataclass(frozen=True, slots=True)
class File:
    """One of a card's files.

    Parameters
    ----------
    path
        Where it is.
    name
        Its path as the card's folder sees it, with slashes.
    """

    path: Path
    name: str

    @property
    def id(self) -> str:
        """The name of its recording: the path without the ending."""
        return str(PurePosixPath(self.name).with_suffix(""))

    @property
    def train_rows(self) -> int | None:
        """The number after ``tr_`` in its name, with which TSB-AD says how many rows are for training."""
        found = _TRAIN_ROWS.search(PurePosixPath(self.name).stem)
        return None if found is None else int(found[1])

    @property
    def is_parquet(self) -> bool:
        """Whether its name says that it is a Parquet file; all others are taken for CSV."""
        return self.path.suffix.lower() in PARQUET


def find_files(folder: Path, patterns: Sequence[str], card: str, issues: Issues) -> list[File]:
    """Return the files that any pattern names, each once: patterns in their order, the files of one as people count.

    Parameters
    ----------
    folder
        The card's folder.
    patterns
        File names or patterns (``*``, ``?``, ``[...]``, ``**``), relative to it.
    card
        The card's file name, for messages.
    issues
        Where to note patterns without files and files that lie outside.
    """
    found: dict[str, File] = {}
    for pattern in patterns:
        if not _stays_inside(pattern):
            issues.add(card, f"files {pattern!r}: expected a path below the card's folder, without '..'; move the file")
            continue
        paths = [path for path in folder.glob(pattern) if path.is_file()]
        if not paths:
            issues.add(card, f"files {pattern!r}: there is no such file in {folder}; correct the name or pattern")
        for path in sorted(paths, key=lambda path: as_counted(str(path))):
            name = path.relative_to(folder).as_posix()
            if inside(folder, path, card, name, issues):
                found.setdefault(name, File(path, name))
    return list(found.values())


def find_file(folder: Path, name: str, card: str, key: str, issues: Issues) -> Path | None:
    """Return a single file that the card names, or None, and why among the issues."""
    path = folder / name
    if not _stays_inside(name):
        issues.add(card, f"{key} {name!r}: expected a path below the card's folder, without '..'; move the file")
    elif not path.is_file():
        issues.add(card, f"{key} {name!r}: there is no such file in {folder}; correct the name")
    elif inside(folder, path, card, name, issues):
        return path
    return None


def inside(folder: Path, path: Path, card: str, name: str, issues: Issues) -> bool:
    """Whether a file really lies in the folder, links followed."""
    if path.resolve().is_relative_to(folder.resolve()):
        return True
    issues.add(
        card, f"files {name!r}: is a link out of the card's folder, to {path.resolve()}; put the file itself there"
    )
    return False


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
