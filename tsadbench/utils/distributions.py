"""Installed packages: their locations, distributions, requirements and versions."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from pathlib import Path

from tsadbench.utils.source_digest import LIBRARY_FOLDERS

_OWN = "tsadbench"
_by_package = cache(packages_distributions)


def find_package(name: str) -> ModuleSpec | None:
    """Return where another process with the same import path would find a top-level module; None if it would not.

    Unlike `importlib.util.find_spec`, it ignores what has been loaded in this process, and imports nothing.
    """
    specs = (finder.find_spec(name, None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in specs if spec is not None), None)


def installed_version(name: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    with suppress(PackageNotFoundError):
        return version(name)
    return None


def normalised(name: str) -> str:
    """Return a distribution's normalised name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions_of(package: str) -> tuple[str, ...]:
    """Return the names of the distributions that hold a top-level package, sorted; several may share a namespace."""
    with suppress(PackageNotFoundError):
        found = distribution({"sklearn": "scikit-learn"}.get(package, package))  # reading all takes half a second
        if f"\n{package}/" in f"\n{found.read_text('RECORD')}":
            return (found.metadata["Name"],)
    return tuple(sorted(set(_by_package().get(package, ()))))


def versions_of(packages: Iterable[str]) -> dict[str, str | None]:
    """Return the versions of the distributions that hold packages, by their names.

    A package outside the library folders, such as an editable install, can change while its version stays. It is
    identified by a hash of its code. So is a package without a distribution.
    """
    versions: dict[str, str | None] = {}
    for package in sorted(packages):
        if (spec := find_package(package)) is not None:
            place = Path([*(spec.submodule_search_locations or ()), str(spec.origin)][0])
            names = distributions_of(package) if place.parent.name in LIBRARY_FOLDERS else ()
            versions |= {name: installed_version(name) for name in names} or {package: f"source {_code_hash(place)}"}
    return versions


def requirements(names: Iterable[str]) -> frozenset[str]:
    """Return the normalised names of the given distributions, of tsadbench, and of all their requirements.

    The requirements of extras are included for the given distributions, but not for tsadbench.
    """
    given = {normalised(name) for name in names} - {_OWN}
    known = [_OWN, *given]
    for name in known:  # grows
        with suppress(PackageNotFoundError):
            for text in distribution(name).requires or ():
                if name in given or "extra" not in text.partition(";")[2]:
                    known += {normalised(re.split(r"[^\w.-]", text, maxsplit=1)[0])} - {*known}
    return frozenset(known)


def _code_hash(place: Path) -> str:
    """Return a hash of the source and compiled files of a package."""
    sha = hashlib.sha256()
    for file in [place] if place.is_file() else sorted(place.rglob("*")):
        if file.suffix in {".py", ".so", ".pyd"} and file.is_file():
            sha.update(f"{file.relative_to(place.parent)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return sha.hexdigest()[:12]
