"""Notes, inside the box, which packages the detector loads, and which packages import them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

_LONGEST_NAME = 200


class ImportLog(MetaPathFinder):
    """Notes who imports what from now on; it finds nothing itself."""

    def __init__(self) -> None:
        self._importers: dict[str, set[str]] = {}
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol of finders
        target: object | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Note who imports a module that is not loaded yet; always None."""
        above, _, _ = fullname.rpartition(".")
        if not above or _is_namespace(above):
            self._importers.setdefault(fullname, set()).add(_importer())
        return None

    def importers(self) -> dict[str, list[str]]:
        """Return the packages that were loaded since the start, each with the packages whose code imported it."""
        found: dict[str, set[str]] = {}
        for module, importers in self._importers.items():
            if module in sys.modules and (package := _package(module)):
                found.setdefault(package, set()).update(filter(None, map(_package, importers)))
        return {package: sorted(importers - {package}) for package, importers in sorted(found.items())}


def _package(module: str) -> str:
    """Return the top-level package of a module, below a namespace package the one that holds the module.

    Empty for the standard library and namespace packages themselves.
    """
    parts = module.split(".")
    depth = 1
    while depth < len(parts) and _is_namespace(".".join(parts[:depth])):
        depth += 1
    if parts[0] in sys.stdlib_module_names or not parts[0].isidentifier() or _is_namespace(module):
        return ""
    return ".".join(parts[:depth])[:_LONGEST_NAME]


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
