"""Installed packages: where they are, which distributions hold them, what these require, and their versions."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from pathlib import Path

from tsadbench.utils.source_digest import LIBRARY_FOLDERS

OWN = "tsadbench"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def find_package(name: str, places: Sequence[str] | None = None) -> ModuleSpec | None:
    """Return where another process with the same import path would find a module; None if it would not.

    Unlike `importlib.util.find_spec`, it ignores what has been loaded in this process, and imports nothing.
    """
    specs = (finder.find_spec(name, places) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in specs if spec is not None), None)


def installed_version(name: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def normalised(name: str) -> str:
    """Return a distribution's normalised name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions_of(package: str) -> tuple[str, ...]:
    """Return the names of the distributions that hold a top-level package, sorted; several may share a namespace."""
    try:
        record = distribution(package).read_text("RECORD") or ""
        if f"\n{package}/" in f"\n{record}":
            return (distribution(package).metadata["Name"],)
    except PackageNotFoundError:
        pass
    return tuple(sorted(set(_by_package().get(package, ()))))


@cache
def _by_package() -> dict[str, list[str]]:
    return dict(packages_distributions())  # reads all that is installed: half a second


def versions_of(packages: Iterable[str]) -> dict[str, str | None]:
    """Return the versions of the distributions that hold packages, by their names.

    A package outside the folders of libraries, such as one that is installed from its source folder, changes while its
    version stays: it counts by a hash of its code. So does one that belongs to no distribution.
    """
    versions: dict[str, str | None] = {}
    for package in sorted(packages):
        place = _place(package)
        if place is None:
            continue
        names = distributions_of(package) if place.parent.name in LIBRARY_FOLDERS else ()
        versions |= {name: installed_version(name) for name in names} or {package: f"source {_code_hash(place)}"}
    return versions


def requirements(names: Iterable[str], *, extras: bool = False) -> frozenset[str]:
    """Return normalised names of distributions and of all that they require, except for the benchmark's.

    With ``extras``, what the given ones require for their extras counts too.
    """
    waiting = [(normalised(name), extras) for name in names]
    known: set[str] = set()
    while waiting:
        name, with_extras = waiting.pop()
        if name not in known and name != OWN:
            known.add(name)
            waiting += [(required, False) for required in _required(name, with_extras)]
    return frozenset(known)


def required_by_core() -> frozenset[str]:
    """Return normalised names of what the benchmark itself requires, at any depth."""
    return requirements(_required(OWN, False))


@cache
def _required(name: str, extras: bool) -> tuple[str, ...]:
    try:
        texts = distribution(name).requires or []
    except PackageNotFoundError:
        return ()
    found = (_NAME.match(text) for text in texts if extras or "extra" not in text.partition(";")[2])
    return tuple(normalised(match[0]) for match in found if match)


def _place(package: str) -> Path | None:
    """Return the folder or file of a package; None if it cannot be imported."""
    spec = find_package(package)
    if spec is None or package in sys.stdlib_module_names:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0]) if folders else Path(spec.origin) if spec.origin and spec.has_location else None


def _code_hash(place: Path) -> str:
    """Return a hash of the source and compiled files of a package."""
    sha = hashlib.sha256()
    for file in [place] if place.is_file() else sorted(place.rglob("*")):
        if file.suffix in {".py", ".so", ".pyd"} and file.is_file():
            sha.update(f"{file.relative_to(place.parent)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return sha.hexdigest()[:12]
