"""The line of an author's own files in which an error arose, not that of tsadbench or of a library that they call."""

from __future__ import annotations

import inspect
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType

from tsadbench.utils.source_digest import LIBRARY_FOLDERS

_STANDARD_LIBRARY = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})


def own_place(error: BaseException, module: str = "") -> str:
    """Return ``/path/file.py:12``, the innermost line of the author's code in an error's traceback, or "".

    The package of ``module``, in which the author's class is defined, is the author's wherever it lies.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    own = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _is_own(frame.f_code.co_filename, str(frame.f_globals.get("__name__")), module):
            own = f"{frame.f_code.co_filename}:{line}"
    return own


def place_of(function: Callable[..., object]) -> str:
    """Return ``/path/file.py:12``, where a function is defined; empty if that is not known."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if isinstance(code, CodeType) else ""


def place_of_class(cls: type) -> str:
    """Return ``/path/file.py:12``, where a class is defined; empty if its source is not known."""
    try:
        return f"{inspect.getsourcefile(cls)}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):
        return ""


def short(place: str) -> str:
    """Return a place without its folders."""
    return Path(place).name


def _is_own(file: str, module: str, author: str) -> bool:
    package = module.partition(".")[0]
    if author and package == author.partition(".")[0]:
        return True
    if package.startswith("tsadbench") or not file.endswith(".py"):
        return False
    return not (file.startswith(_STANDARD_LIBRARY) or LIBRARY_FOLDERS & {*Path(file).parts})
