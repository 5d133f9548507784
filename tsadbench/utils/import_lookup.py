"""Find packages that have not been imported, and what code imports by a call."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path


def find_package(name: str, places: Sequence[str] | None = None) -> ModuleSpec | None:
    """Return where another process with the same import path would find a module; None if it would not.

    Unlike `importlib.util.find_spec`, it ignores what has been loaded in this process, and imports nothing. It asks all
    finders, because editable installations bring their own.

    Parameters
    ----------
    name
        The module's full name.
    places
        Folders of the parent package; None for a top-level module.
    """
    specs = (finder.find_spec(name, places) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in specs if spec is not None), None)


def package_of(module: str) -> str:
    """Return the top-level package of a module; below a namespace, which several may share, the one that holds it."""
    parts = module.split(".")
    spec = find_package(parts[0])
    folders = list(spec.submodule_search_locations or ()) if spec is not None and spec.origin is None else []
    depth = 1
    while depth < len(parts) and folders:
        # Python's finders look for a module of a namespace only after the namespace has been imported.
        below = [Path(folder, parts[depth]) for folder in folders]
        if not any(place.is_dir() or list(place.parent.glob(f"{place.name}.*")) for place in below):
            break
        folders = [str(place) for place in below if place.is_dir()]
        folders = [] if any(Path(folder, "__init__.py").exists() for folder in folders) else folders
        depth += 1
    return ".".join(parts[:depth])


def imported_by_call(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that code imports by ``importlib.import_module("name")`` or ``__import__("name")``."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ) if not name.startswith("."):
                yield name
