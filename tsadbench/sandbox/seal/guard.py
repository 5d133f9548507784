"""Ends the trial when the detector opens a file in a data set's folder.

It gives the reason by name, and is all that guards a box that the kernel does not seal: against mistakes and lazy
cheating, not against native code, for an audit hook sees only what Python does.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence

# Audit events whose arguments may name a file that is opened, listed or passed to a program.
_EVENTS = frozenset({
    "open", "os.listdir", "os.scandir", "os.chdir", "os.exec", "os.link", "os.posix_spawn", "os.rename", "os.spawn",
    "os.startfile", "os.symlink", "os.system", "shutil.copyfile", "shutil.copytree", "shutil.move", "sqlite3.connect",
    "subprocess.Popen",
})  # fmt: skip


def forbid(folders: Sequence[str], violated: Callable[[str], None], allowed: Sequence[str] = ()) -> None:
    """Call ``violated(what)``, which must not return, when this process opens, lists or passes on what folders hold.

    An exception would reach the detector, which could catch it and go on. Folders are absolute and without links. What
    lies in ``allowed`` files and folders (libraries) is allowed, unless it is forbidden below one of them.
    """
    if not folders:
        return
    # A folder may stand inside a command line or a URI, but only as a whole path: "/data" is not in "/database".
    named = re.compile("|".join(re.escape(folder) + r"(?![\w.-])" for folder in folders))

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in _EVENTS:
            for text in _texts(arguments):
                forbidden = _depth(text, folders)
                if (forbidden or named.search(text)) and forbidden >= _depth(text, allowed):
                    violated(f"the detector reached for the data's folder ({event}: {text[:200]})")

    sys.addaudithook(hook)


def _texts(value: object) -> list[str]:
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(one)]
    return [os.fsdecode(value)] if isinstance(value, str | bytes | os.PathLike) else []


def _depth(path: str, folders: Sequence[str]) -> int:
    """Return the length of the longest of the folders that a path lies in; 0 if it lies in none."""
    try:
        real = os.path.realpath(path)  # a link elsewhere must not lead around the guard
    except (OSError, ValueError):
        return 0
    return max((len(folder) for folder in folders if real == folder or real.startswith(folder + os.sep)), default=0)
