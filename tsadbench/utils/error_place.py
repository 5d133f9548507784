"""Find the line of a detector author's own code that caused an error, skipping tsadbench and libraries."""

from __future__ import annotations

import inspect
import sysconfig
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tsadbench.utils.source_digest import LIBRARY_FOLDERS

_STANDARD_LIBRARY = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})


def own_place(error: BaseException, module: str = "") -> str:
    """Return ``/path/file.py:12``, the innermost line of the author's code in an error's traceback, or "".

    All code in the package of ``module``, which defines the author's class, counts as the author's.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    own, author = "", module.partition(".")[0] or None
    for frame, line in traceback.walk_tb(error.__traceback__):
        file, package = frame.f_code.co_filename, str(frame.f_globals.get("__name__")).partition(".")[0]
        library = file.startswith(_STANDARD_LIBRARY) or LIBRARY_FOLDERS & {*Path(file).parts}
        if package == author or (file.endswith(".py") and not library and not package.startswith("tsadbench")):
            own = f"{file}:{line}"
    return own


def place_of(item: Callable[..., object]) -> str:
    """Return ``/path/file.py:12``, where a function or a class is defined, or "" if unknown."""
    if (code := getattr(item, "__code__", None)) is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    with suppress(OSError, TypeError):
        return f"{inspect.getsourcefile(item)}:{inspect.getsourcelines(item)[1]}"
    return ""
