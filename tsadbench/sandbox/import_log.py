"""Notes, inside the box, which packages are loaded and by whom."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from tsadbench.utils.loaded_modules import LoadedModules

_LONGEST_NAME = 200


class _Held:
    """The packages that this process holds; a box inherits what its server has noted."""

    def __init__(self) -> None:
        self._modules = LoadedModules()
        self.packages: set[str] = set()

    def note(self) -> list[str]:
        """Note what is new, and return its modules."""
        new = self._modules.newer()
        self.packages.update(loaded_packages(new))
        return new


_held = _Held()


def note_loaded() -> None:
    """Note what is loaded by now, in the server, so that no box needs to."""
    _held.note()


class ImportLog(MetaPathFinder):
    """Notes what this process loads from now on; it finds nothing itself."""

    def __init__(self) -> None:
        _held.note()
        # Modules that show what the detector imported.
        self._since: list[str] = []
        self._importers: dict[str, set[str]] = {}
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol of finders
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Note who imports a module that is not loaded yet; always None."""
        above, _, _ = fullname.rpartition(".")
        if not above or _is_namespace(above):
            self._importers.setdefault(fullname, set()).add(_importer())
        return None

    @contextmanager
    def leaving_out(self) -> Iterator[None]:
        """Leave out what is loaded inside a block: it is the benchmark's."""
        self._since += _held.note()
        yield
        _held.note()

    def report(self) -> dict[str, object]:
        """Return all packages that were loaded, and for those that were since the start who imported them."""
        self._since += _held.note()
        since = {package: set[str]() for package in loaded_packages(self._since)}
        for module, importers in self._importers.items():
            for package in loaded_packages([module]):
                if package in since:
                    since[package].update(name for one in importers for name in loaded_packages([one]))
        return {
            "held": sorted(_held.packages),
            "since": {package: sorted(importers - {package}) for package, importers in since.items()},
        }


def loaded_packages(modules: Iterable[str]) -> list[str]:
    """Return the top-level packages of modules that this process has loaded, sorted, but for the standard library's.

    Below a namespace package it is the one that holds the module, as for `package_of`.
    """
    packages = set()
    for module in modules:
        parts = module.split(".")
        depth = 1
        while depth < len(parts) and _is_namespace(".".join(parts[:depth])):
            depth += 1
        if parts[0] not in sys.stdlib_module_names and parts[0].isidentifier() and not _is_namespace(module):
            packages.add(".".join(parts[:depth])[:_LONGEST_NAME])
    return sorted(packages)


def _is_namespace(package: str) -> bool:
    loaded = sys.modules.get(package)
    return hasattr(loaded, "__path__") and getattr(loaded, "__file__", None) is None


def _importer() -> str:
    """Return the name of the module whose code runs the import that called a finder."""
    frame = sys._getframe(2)
    while frame.f_back is not None and _name(frame.f_globals).startswith(("importlib", "_frozen_importlib")):
        frame = frame.f_back
    return _name(frame.f_globals)


def _name(variables: dict[str, object]) -> str:
    return str(variables.get("__name__"))
