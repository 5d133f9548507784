"""Scripts that belong to no package, loaded as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def load_script(file: Path) -> ModuleType:
    """Return the module that a Python file makes; it does not run as a program."""
    spec = importlib.util.spec_from_file_location(f"script_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
