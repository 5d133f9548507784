"""Which installed distributions hold packages, what these require, and their versions."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions, version
from pathlib import Path
from urllib.parse import unquote, urlparse

from tsadbench.utils.import_lookup import find_package

# The benchmark itself: its code counts by fingerprints, and its version by itself.
OWN = "tsadbench"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CODE_ENDINGS = frozenset({".py", ".so", ".pyd"})


def installed_version(name: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def normalised(name: str) -> str:
    """Return a distribution's name as two spellings of it have it in common (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions_of(module: str) -> tuple[str, ...]:
    """Return the names of the distributions that hold a module, sorted.

    Parameters
    ----------
    module
        Its full name, or that of its package. If several distributions share a namespace, the full name tells them
        apart; if it does not, all of them are returned.
    """
    top = module.partition(".")[0]
    found = {name for entry in sys.path for name in _packages_below(*_state(entry)).get(top, ())}
    if len(found) > 1:
        inside = {name for name in found if _holds(name, module)}
        found = inside or found
    if not found and (place := _place(top)) is not None:
        found = {name for folder, name in _editable() if place.is_relative_to(folder)}
    return tuple(sorted(found))


def versions_of(modules: Iterable[str]) -> dict[str, str | None]:
    """Return the versions of the distributions that hold modules, by their names.

    A distribution that is installed from its source folder keeps its version while it is worked on: a hash of its code
    stands behind the version. A module that belongs to no distribution counts by a hash of its code alone.
    """
    versions: dict[str, str | None] = {}
    for module in sorted(modules):
        names = distributions_of(module)
        for name in names:
            one = _installed(name)
            changes = one is not None and normalised(name) != OWN and _source_folder(one) is not None
            number = installed_version(name)
            versions[name] = f"{number}, source {_code_hash(module)}" if changes else number
        if not names and _place(module.partition(".")[0]) is not None:
            versions[module] = f"source {_code_hash(module)}"
    return versions


def requirements(names: Iterable[str], *, extras: bool = False) -> frozenset[str]:
    """Return normalised names of distributions and, at any depth, of those that they require, but for the benchmark's.

    Parameters
    ----------
    names
        The distributions.
    extras
        Whether what the given ones require for their extras counts too.
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


def _state(entry: str) -> tuple[str, int]:
    try:
        return entry, os.stat(entry or ".").st_mtime_ns
    except OSError:
        return entry, 0


# Reading what is installed takes a third of a second: once for each folder, until something is installed there.
@lru_cache(maxsize=200)
def _packages_below(entry: str, _: int) -> dict[str, tuple[str, ...]]:
    """Return the distributions in a folder of the import path, by the top-level packages that they hold."""
    found: dict[str, set[str]] = {}
    for one in distributions(path=[entry]):
        for package in _top_level(one) if one.metadata["Name"] else ():  # the metadata of a damaged one have no name
            found.setdefault(package, set()).add(one.metadata["Name"])
    return {package: tuple(sorted(names)) for package, names in found.items()}


def _top_level(one: Distribution) -> set[str]:
    declared = one.read_text("top_level.txt")
    if declared:
        return set(declared.split())
    files = (file for file in one.files or () if file.suffix in _CODE_ENDINGS)
    return {file.parts[0] if len(file.parts) > 1 else file.name.partition(".")[0] for file in files}


def _holds(name: str, module: str) -> bool:
    """Whether a distribution has a file of a module, or of its package."""
    path = module.replace(".", "/")
    one = _installed(name)
    return one is not None and any(file.as_posix().startswith((f"{path}/", f"{path}.")) for file in one.files or ())


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:  # a damaged one, whose folder is not called after it
        return None


@cache
def _editable() -> tuple[tuple[Path, str], ...]:
    """Return the source folders of distributions that were installed from them, with their names."""
    found = ((_source_folder(one), one.metadata["Name"]) for one in distributions())
    return tuple((folder, name) for folder, name in found if folder is not None)


def _source_folder(one: Distribution) -> Path | None:
    try:
        direct = json.loads(one.read_text("direct_url.json") or "{}")
        if not direct.get("dir_info", {}).get("editable"):
            return None
        return Path(unquote(urlparse(direct["url"]).path))
    except (ValueError, KeyError, AttributeError, TypeError):
        return None


def _place(package: str) -> Path | None:
    """Return the file or the folder of a top-level package that could be imported; None if it could not."""
    spec = find_package(package)
    if spec is None or package in sys.stdlib_module_names:
        return None
    folders = list(spec.submodule_search_locations or ())
    if folders:
        return Path(folders[0])
    return Path(spec.origin) if spec.origin and spec.has_location else None


def _code_hash(module: str) -> str:
    """Return a hash of the code of a module's top-level package."""
    place = _place(module.partition(".")[0])
    sha = hashlib.sha256()
    for name, file in sorted(_code_files(place)) if place is not None else ():
        sha.update(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return sha.hexdigest()[:12]


def _code_files(place: Path) -> Iterator[tuple[str, Path]]:
    if place.is_file():
        yield place.name, place
        return
    for file in place.rglob("*"):
        if file.suffix in _CODE_ENDINGS and file.is_file():
            yield file.relative_to(place).as_posix(), file
