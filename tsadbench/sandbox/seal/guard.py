"""Ends the trial when the detector opens a file in a data set's folder.

The error names the file. Without a kernel seal this hook is the only protection: it catches mistakes and lazy
cheating, but not native code, because audit hooks only see Python.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence

# Audit events whose arguments may name a file.
_EVENTS = frozenset({
    "open", "os.listdir", "os.scandir", "os.chdir", "os.exec", "os.link", "os.posix_spawn", "os.rename", "os.symlink",
    "os.system", "shutil.copyfile", "shutil.copytree", "shutil.move", "sqlite3.connect", "subprocess.Popen",
})  # fmt: skip


def forbid(folders: Sequence[str], violated: Callable[[str], None], allowed: Sequence[str] = ()) -> None:
    """Call ``violated(what)``, which must not return, when this process accesses something in the folders.

    An exception would not do, because the detector could catch it. Paths are absolute and without links. ``allowed``
    files and folders (libraries) are exempt, except for forbidden folders inside them.
    """
    if not folders:
        return
    # A folder may be part of a command line or a URI, but only as a whole path: "/data" is not in "/database".
    named = re.compile("|".join(rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])" for folder in folders))

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in _EVENTS:
            for text in _texts(arguments):
                forbidden = _depth(text, folders)
                if (forbidden or named.search(text)) and forbidden >= _depth(text, allowed):
                    violated(f"the detector accessed the data folder ({event}: {text[:200]})")

    sys.addaudithook(hook)


def _texts(value: object) -> list[str]:
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(one)]
    return [os.fsdecode(value)] if isinstance(value, str | bytes | os.PathLike) else []


def _depth(path: str, folders: Sequence[str]) -> int:
    """Return the length of the longest folder that contains a path, or 0."""
    try:
        real = os.path.realpath(path)  # a link must not bypass the guard
    except (OSError, ValueError):
        return 0
    return max((len(folder) for folder in folders if real == folder or real.startswith(folder + os.sep)), default=0)
