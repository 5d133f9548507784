"""Finds a library's classes in its source: importing all of them would take seconds and need more extras."""

from __future__ import annotations

import re
from pathlib import Path

from tsadbench.base import find_package

_CLASS = re.compile(r"^class (\w+)\(([\w\s,.]*)\):", re.MULTILINE)


def classes_derived_from(bases: frozenset[str], package: str) -> dict[str, str]:
    """Return the module of every public class that names one of the bases as its own, by the class's name.

    Parameters
    ----------
    bases
        Names of base classes.
    package
        The package to read, without importing it; its tests are left out.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed.
    """
    folder = _folder(package)
    modules: dict[str, str] = {}
    for file in sorted(folder.rglob("*.py")):
        inside = file.relative_to(folder).with_suffix("").parts
        if "tests" in inside:
            continue
        for name, parents in _CLASS.findall(file.read_text(encoding="utf-8")):
            if bases & set(re.findall(r"\w+", parents)) and not name.startswith("_"):
                modules.setdefault(name, ".".join((package, *inside)))
    return modules


def _folder(package: str) -> Path:
    """Return the folder of a package, without importing it."""
    folders: list[str] | None = None
    for depth, part in enumerate(parts := package.split(".")):
        name = ".".join(parts[: depth + 1])
        spec = find_package(name, folders)
        if spec is None or spec.submodule_search_locations is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=part)
        folders = list(spec.submodule_search_locations)
    return Path((folders or ["."])[0])
