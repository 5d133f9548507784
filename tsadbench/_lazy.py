"""Names of a package that are imported on first use (PEP 562): `tsadbench --help` must not wait for them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def lazy(package: str, file: str) -> Callable[[str], object]:
    """Return a package's ``__getattr__``, which imports what its file imports from tsadbench for type checkers."""
    nodes = ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))
    own = [one for one in nodes if isinstance(one, ast.ImportFrom) and str(one.module).startswith("tsadbench.")]
    module_of = {one.name: str(node.module) for node in own for one in node.names}

    def get(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
