"""Where packages lie that are not imported yet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec


def find_package(name: str, places: Sequence[str] | None = None) -> ModuleSpec | None:
    """Return where another process with the same import path would find a module; None where it would not.

    Unlike `importlib.util.find_spec` it does not count what is loaded here already, and imports nothing. Packages that
    are installed for editing are found by a finder of their own, so that all finders are asked.

    Parameters
    ----------
    name
        The module's full name.
    places
        Folders of the package that holds it; None for one that lies in no other.
    """
    specs = (finder.find_spec(name, places) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in specs if spec is not None), None)
