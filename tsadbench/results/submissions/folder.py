"""Reads the folder of a submission, which anybody may have made: no link is followed, no size is believed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tsadbench.execution.stored_files import open_regular
from tsadbench.results.submissions.form import (
    CHECKS,
    CODE,
    DESCRIPTION,
    ENDING,
    MOST_BYTES,
    MOST_FILE_BYTES,
    MOST_FILES,
    RECORDS,
    SCORES,
    STATEMENT,
)
from tsadbench.utils.digests import digest
from tsadbench.utils.text import one_line

_AT_THE_TOP = frozenset({DESCRIPTION, STATEMENT, RECORDS, CHECKS})
_SCORES = re.compile(r"[0-9a-f]{64}" + re.escape(ENDING))
# No dot in front, nothing that is special on some system.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
# Source, and what a pretrained detector needs; nothing that Python loads instead of a source beside it.
_CODE_ENDINGS = (".py", ".toml", ".md", ".txt", ".json", ".csv", ".cfg", ".npy", ".npz", ".safetensors")
_DEEPEST = 8


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """Why a file of a submission is refused.

    Parameters
    ----------
    file
        Its path in the submission's folder, printable; "." for the whole.
    reason
        What was expected and what was found.
    """

    file: str
    reason: str


class Files:
    """The files of a submission, by their paths in its folder.

    Parameters
    ----------
    folder
        The submission's.

    Attributes
    ----------
    faults
        Of names, kinds and sizes. What has one is not read.
    sizes
        Bytes of the files that may be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.faults: list[Fault] = []
        self.sizes: dict[str, int] = {}
        if folder.is_symlink() or not folder.is_dir():
            self.faults.append(Fault(".", "expected a folder, found a link or something else"))
            return
        self._scan(folder, "")
        if len(self.sizes) > MOST_FILES:
            self.faults.append(Fault(".", f"it has more than {MOST_FILES} files"))
        if (total := sum(self.sizes.values())) > MOST_BYTES:
            self.faults.append(Fault(".", f"its files have {total:,} bytes, expected at most {MOST_BYTES:,} in all"))

    def read(self, name: str) -> bytes:
        """Return a file's content; an OSError if it cannot be read, or became larger."""
        with open_regular(self.folder / name, self.sizes[name]) as stream:
            return stream.read()

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that may be read but the description and the statement."""
        return {name: digest(self.read(name)) for name in self.sizes if name not in (DESCRIPTION, STATEMENT)}

    def _scan(self, folder: Path, above: str) -> None:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                if len(self.sizes) > MOST_FILES:
                    return
                name = f"{above}{entry.name}"
                if fault := next(_entry_faults(entry, name), ""):
                    self.faults.append(Fault(one_line(name, 200), fault))
                elif entry.is_dir(follow_symlinks=False):
                    self._scan(folder / entry.name, f"{name}/")
                else:
                    self.sizes[name] = entry.stat(follow_symlinks=False).st_size


def _entry_faults(entry: os.DirEntry[str], name: str) -> Iterator[str]:
    if entry.is_symlink():
        yield "it is a link, and could lead anywhere: put the file itself here"
    elif entry.is_dir(follow_symlinks=False):
        if fault := _folder_fault(name):
            yield fault
    elif not entry.is_file(follow_symlinks=False):
        yield "it is neither a file nor a folder"
    elif fault := path_fault(name):
        yield fault
    elif (size := entry.stat(follow_symlinks=False).st_size) > MOST_FILE_BYTES:
        yield f"it has {size:,} bytes, expected at most {MOST_FILE_BYTES:,}"


def _folder_fault(name: str) -> str:
    top, *below = name.split("/")
    if not below and top in (SCORES, CODE):
        return ""
    return "a submission has no such folder" if top != CODE else _parts_fault(below)


def path_fault(name: str) -> str:
    """Return why a path names no file of a submission; nothing if it does. Nothing is looked up."""
    top, *below = name.split("/")
    if not below:
        return "" if top in _AT_THE_TOP else "a submission has no such file"
    if top == SCORES:
        named = len(below) == 1 and _SCORES.fullmatch(below[0])
        return "" if named else f"expected the SHA-256 of its content and {ENDING} as its name"
    if top != CODE:
        return "a submission has no such file"
    if fault := _parts_fault(below):
        return fault
    if not name.endswith(_CODE_ENDINGS):
        return f"code consists of files that end in {', '.join(_CODE_ENDINGS)}"
    return ""


def _parts_fault(parts: list[str]) -> str:
    if len(parts) > _DEEPEST:
        return f"it lies more than {_DEEPEST} folders deep"
    if not all(map(_PART.fullmatch, parts)):
        return "expected a name of letters, digits, hyphens, dots and underscores, with no dot in front"
    return "it would be loaded instead of its source: leave it out" if "__pycache__" in parts else ""
