"""The source code that a class runs: its own, its bases', and what these import of the packages they lie in."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from tsadbench._version import __version__

# A class's bases in these are told apart by the versions that records keep; so is the core, but for its base classes.
_VERSIONED = frozenset({"numpy", "pandas", "scipy", "sklearn", "torch", "torch_geometric"})
_CORE = "tsadbench"
# A module that lies in one of these by itself has no neighbours of its own.
_LIBRARY_FOLDERS = frozenset({"site-packages", "dist-packages"})


@cache
def code_hash(cls: type) -> str:
    """Return the SHA-256 over the files of `source_files`, wherever they lie, and the version of tsadbench."""
    digest = hashlib.sha256(__version__.encode())
    for file in source_files(cls):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def source_files(cls: type) -> tuple[Path, ...]:
    """Return the files whose change may change what a class computes.

    They are the files of the class and its bases, and all that these import, anywhere in them and at any depth, from
    the package they lie in (a file in no package: from its own folder). Other packages are left out: what is installed
    has a version.

    Parameters
    ----------
    cls
        Any class. Bases in the standard library and in the libraries whose versions records keep are left out.

    Returns
    -------
    tuple of Path
        In an order that hangs on names and contents alone, each file once. Empty for a class that has no file.
    """
    found: dict[Path, None] = {}
    waiting = deque(_modules_of(cls))
    while waiting:
        name, file = waiting.popleft()
        if file in found:
            continue
        found[file] = None
        if name.partition(".")[0] != _CORE:
            waiting.extend(_imported(name, file))
    return tuple(found)


def _modules_of(cls: type) -> Iterator[tuple[str, Path]]:
    for base in cls.__mro__:
        top = base.__module__.partition(".")[0]
        if top in _VERSIONED or top in sys.stdlib_module_names:
            continue
        file = getattr(sys.modules.get(base.__module__), "__file__", None)
        if file is not None:
            yield base.__module__, Path(file)


def _imported(name: str, file: Path) -> Iterator[tuple[str, Path]]:
    """Yield the modules that a file imports from its own package or folder, with the packages they lie in."""
    package = getattr(sys.modules.get(name.partition(".")[0]), "__path__", None)
    for wanted in (name, *_names(file.read_bytes(), name, is_package=file.stem == "__init__")):
        if package is None and file.parent.name not in _LIBRARY_FOLDERS:
            yield from _located(wanted.split("."), 0, [str(file.parent)])
        elif package is not None and wanted.partition(".")[0] == name.partition(".")[0]:
            yield from _located(wanted.split("."), 1, list(package))


@cache
def _names(source: bytes, name: str, *, is_package: bool) -> tuple[str, ...]:
    """Return the full names of all that may be modules: ``from a import b`` gives ``a.b``, of which ``a`` is a part."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # compiled, or broken and not imported yet: it counts by its bytes alone
        return ()
    package = name.split(".") if is_package else name.split(".")[:-1]
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base += node.module.split(".") if node.module else []
            found += (".".join([*base, alias.name]) for alias in node.names)
    return tuple(found)


def _located(parts: Sequence[str], known: int, folders: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files of a module and of the packages around it; the first ``known`` of them lie in ``folders``."""
    if known and (file := getattr(sys.modules[parts[0]], "__file__", None)):
        yield parts[0], Path(file)
    for depth in range(known + 1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:depth]), folders)
        if spec is None:
            return
        if spec.has_location and spec.origin:
            yield spec.name, Path(spec.origin)
        if spec.submodule_search_locations is None:
            return
        folders = list(spec.submodule_search_locations)
