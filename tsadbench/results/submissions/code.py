"""The code of submitted detectors: what a submission takes along, and how a box gets at it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tsadbench.errors import UsageError
from tsadbench.registry import Kind, entries, is_registered, locate
from tsadbench.results.submissions.folder import path_fault
from tsadbench.results.submissions.form import CODE
from tsadbench.utils.import_lookup import find_package
from tsadbench.utils.parameters import Label, parse_label

SHIPPED, CLOSED = "shipped", "closed"
_OWN = "tsadbench"
# Named in a label, they stand for something that only its maker's machine has.
_OF_A_MACHINE = {"python": "an interpreter", "prior": "the file of a prior"}


def code_of(label: str) -> tuple[str, Mapping[str, Path]]:
    """Return where a detector's class is in a submission, and the files to take along, by their paths there.

    Raises
    ------
    UsageError
        If its code cannot be found as files, or holds some that a submission cannot have.
    """
    target = parse_label(label).target
    if is_shipped(target):
        return SHIPPED, {}
    source = locate(target)
    place, _, name = source.reference.rpartition(":")
    if source.text is not None:
        files = {f"{CODE}/{Path(place).name}": Path(place)}
        return f"{CODE}/{Path(place).name}:{name}", _allowed(label, files)
    top = place.partition(".")[0]
    package = find_package(top)
    if source.library or package is None or package.origin is None:
        raise UsageError(f"{label}: its code was not found as files; --closed submits it without")
    folders = list(package.submodule_search_locations or ())
    if not folders:
        return source.reference, _allowed(label, {f"{CODE}/{top}.py": Path(package.origin)})
    folder = Path(folders[0])
    found = (file for file in sorted(folder.rglob("*")) if file.is_file() and "__pycache__" not in file.parts)
    files = {f"{CODE}/{top}/{file.relative_to(folder).as_posix()}": file for file in found}
    return source.reference, _allowed(label, {path: file for path, file in files.items() if file.name != "py.typed"})


def is_shipped(target: str) -> bool:
    """Whether a detector, or the library that it belongs to, comes with tsadbench."""
    name, colon, _ = target.partition(":")
    kind: Kind = "families" if colon else "detectors"
    own = any(entry.name == name and entry.package == _OWN for entry in entries(kind))
    return own or (not colon and is_registered(target) and locate(target).owner == _OWN)


def machine_fault(label: str) -> str:
    """Return what a label names that no other machine has; nothing if it names nothing of the kind."""
    names = parse_label(label).arguments
    return next(
        (f"its label names {what}, {names[one]!r:.80}" for one, what in _OF_A_MACHINE.items() if one in names), ""
    )


def code_fault(label: str, code: str, files: Mapping[str, object]) -> str:
    """Return why the code that a submission names for a label cannot be what it says; nothing if it can.

    Parameters
    ----------
    label, code
        As `SubmittedDetector` has them.
    files
        The submission's, by their paths.
    """
    target = parse_label(label).target
    if code == CLOSED:
        return ""
    if code == SHIPPED or is_shipped(target):
        return (
            ""
            if code == SHIPPED and is_shipped(target)
            else f"{target} and the code {code!r:.80} do not belong together"
        )
    place, _, name = code.rpartition(":")
    if not place or not all(part.isidentifier() for part in name.split(".")):
        return f"code: expected {CODE}/FILE.py:Class or package.module:Class, found {code!r:.80}"
    if place.endswith(".py"):
        in_place = place.startswith(f"{CODE}/") and not path_fault(place) and place in files
        return "" if in_place else f"code: {place!r:.80} is no file of the submission"
    parts = place.split(".")
    top = parts[0]
    if not all(part.isidentifier() for part in parts) or not any(
        path == f"{CODE}/{top}.py" or path.startswith(f"{CODE}/{top}/") for path in files
    ):
        return f"code: {place!r:.80} is no module of the submission"
    return ""


def foreign_code_fault(code: str, folder: Path) -> str:
    """Return why a package of a submission cannot be imported here beside what is installed; nothing if it can.

    What is installed comes first: it must be the same to the byte, as on the machine of the submission's maker.
    """
    place = code.rpartition(":")[0]
    top = place.partition(".")[0]
    if place.endswith(".py"):
        return ""
    if top in sys.stdlib_module_names or top.startswith((_OWN, "sitecustomize", "usercustomize")):
        return f"code: the package {top!r:.80} has the name of one of Python's or of tsadbench's"
    if find_package(top) is None:
        return ""
    try:
        _, installed = code_of(code)
        same = all(file.read_bytes() == (folder / path).read_bytes() for path, file in installed.items())
    except (OSError, UsageError):
        same = False
    return "" if same else f"code: another package {top!r:.80} is installed here, and would be run instead"


@contextmanager
def importable(folder: Path, code: str) -> Iterator[None]:
    """Let boxes import a submission's package for a block: behind all that is installed, which it cannot replace."""
    if code.rpartition(":")[0].endswith(".py"):
        yield
        return
    place = str((folder / CODE).resolve())
    sys.path.append(place)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(place)


def label_here(label: str, code: str, folder: Path) -> str:
    """Return the label under which a submitted detector is run from its submission's folder."""
    if code == SHIPPED:
        return label
    parsed = parse_label(label)
    place, _, name = code.rpartition(":")
    target = f"{(folder / place).resolve()}:{name}" if place.endswith(".py") else code
    return str(Label(target, parsed.arguments))


def _allowed(label: str, files: Mapping[str, Path]) -> Mapping[str, Path]:
    for path, file in files.items():
        if fault := path_fault(path):
            raise UsageError(f"{label}: its code has the file {file}: {fault}; --closed submits it without its code")
    return files
