"""The interpreter that a user names, before anything is known of it."""

from __future__ import annotations

import os

from tsadbench.errors import UsageError


def interpreter_path(text: str) -> str:
    """Return the absolute path of the interpreter that a user names.

    Raises
    ------
    UsageError
        If there is no such program.
    """
    path = os.path.abspath(os.path.expanduser(text))
    if os.path.isdir(path):
        inside = next((found for name in ("bin/python", "python") if os.path.isfile(found := f"{path}/{name}")), None)
        advice = f"; name the interpreter in it, {inside}" if inside else ""
        raise UsageError(f"python={text}: expected the path of a Python interpreter, found a folder{advice}")
    if not os.path.isfile(path):
        raise UsageError(
            f"python={text}: expected the path of a Python interpreter (.../bin/python), found no file {path}"
        )
    if not os.access(path, os.X_OK):
        raise UsageError(f"python={text}: expected the path of a Python interpreter, found a file that cannot be run")
    return path
