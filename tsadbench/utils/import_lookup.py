"""Find packages that have not been imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec


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
