"""Names that come from somebody's file: what they may consist of, and where they may lead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Annotated, TypeAlias

from annotated_types import Len, Predicate

from tsadbench.errors import StoreError

_ABSOLUTE_START = r"(?<![\w./~])"
_ABSOLUTE_FOLDERS = re.compile(_ABSOLUTE_START + r"/(?!/)(?:[^/\s,=\[\]'\"]+/)*(?=[^/\s])")
_LONGEST = 200
_LONGEST_LABEL = 20_000
_LONGEST_CORPUS = 100
_MOST_CORPORA = 20
# A detector's label, or the id of a recording or an episode, as pydantic checks it.
LabelText: TypeAlias = Annotated[str, Len(1, _LONGEST_LABEL), Predicate(str.isprintable)]


def name_fault(name: str) -> str:
    """Return why a text cannot be the name of a file or a folder, or ""."""
    if fault := label_fault(name, _LONGEST):
        return fault
    if name.startswith("."):
        return "it begins with a dot"
    return "it contains a path's separator" if set("/\\") & set(name) else ""


def label_fault(label: str, longest: int = _LONGEST_LABEL) -> str:
    """Return why a text cannot be a detector's label, or the id of a recording or an episode, or ""."""
    if not 0 < len(label) <= longest:
        return f"it has {len(label)} characters, expected 1 to {longest}"
    return "" if label.isprintable() else "it contains characters that cannot be printed"


def corpora_fault(names: object) -> str:
    """Return why names cannot say what a detector was pretrained on, or ""; they are a tuple of short texts."""
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        return f'expected names in a tuple, such as ("UCR archive",), found {names!r:.80}'
    if len(names) > _MOST_CORPORA:
        return f"{len(names)} names, expected at most {_MOST_CORPORA}"
    return next((f"{name!r:.80}: {fault}" for name in names if (fault := label_fault(name, _LONGEST_CORPUS))), "")


def inside(folder: Path, *names: str) -> Path:
    """Return a path inside a folder, which every path made of a record's fields is.

    Raises a StoreError if a name is not valid (`name_fault`), or a link leads out of the folder.
    """
    path = folder
    for name in names:
        if fault := name_fault(name):
            raise StoreError(f"{name[:_LONGEST]!r} cannot be the name of a file in {folder}: {fault}")
        path = path / name
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise StoreError(f"{path}: it is a link that leads out of {folder}; remove the link")
    return path


def without_folders(text: str, folder: Path | None = None) -> str:
    """Return a text with absolute paths reduced to their last component, those below ``folder`` to relative ones.

    The folder is the working directory by default.
    """
    below = re.escape(str(folder or Path.cwd()).rstrip("/"))
    return _ABSOLUTE_FOLDERS.sub("", re.sub(f"{_ABSOLUTE_START}{below}/(?=[^/])", "", text))


def command_without_folders(words: Sequence[str], folder: Path | None = None) -> list[str]:
    """Return a command line as records hold it: the program's base name and its arguments, without absolute paths."""
    return [PurePath(words[0]).name, *(without_folders(word, folder) for word in words[1:])] if words else []
