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
    """Return why a text cannot be the name of a file or a folder; nothing if it can.

    A name has 1 to 200 characters, all of them printable, does not begin with a dot and contains no separator of
    paths. Letters of any language are allowed, and spaces.
    """
    return label_fault(name, _LONGEST) or (
        "it begins with a dot"
        if name.startswith(".")
        else "it contains a path's separator"
        if set("/\\") & set(name)
        else ""
    )


def label_fault(label: str, longest: int = _LONGEST_LABEL) -> str:
    """Return why a text cannot be a detector's label, or the id of a recording or an episode; nothing if it can."""
    if not 0 < len(label) <= longest:
        return f"it has {len(label)} characters, expected 1 to {longest}"
    return "" if label.isprintable() else "it contains characters that cannot be printed"


def corpora_fault(names: object) -> str:
    """Return why names cannot say what a detector was pretrained on; nothing if they can: a tuple of short texts."""
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        return f'expected names in a tuple, such as ("UCR archive",), found {names!r:.80}'
    if len(names) > _MOST_CORPORA:
        return f"{len(names)} names, expected at most {_MOST_CORPORA}"
    return next((f"{name!r:.80}: {fault}" for name in names if (fault := label_fault(name, _LONGEST_CORPUS))), "")


def inside(folder: Path, *names: str) -> Path:
    """Return a path inside a folder. Every path that is made of a record's fields is made here.

    Raises
    ------
    StoreError
        If one of the names is none (`name_fault`), or the path leads out of the folder by a link.
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
    """Return a text whose absolute paths are reduced to their last component.

    Parameters
    ----------
    text
        Any text: a path, a detector's name, a message.
    folder
        A path below this folder becomes relative to it; None: the working directory.
    """
    below = re.escape(str(folder or Path.cwd()).rstrip("/"))
    return _ABSOLUTE_FOLDERS.sub("", re.sub(f"{_ABSOLUTE_START}{below}/(?=[^/])", "", text))


def command_without_folders(words: Sequence[str], folder: Path | None = None) -> list[str]:
    """Return a command line as records hold it: the program's base name and its arguments, without absolute paths."""
    return [PurePath(words[0]).name, *(without_folders(word, folder) for word in words[1:])] if words else []
