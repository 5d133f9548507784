"""Landlock: what a process and all that it starts can do to files, TCP ports and processes outside.

PyPI's ``landlock`` (1.0.0.dev5) has neither scopes nor TCP; these three system calls are as short as its use would be.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterable
from functools import cache

from tsadbench.sandbox.seal.kernel import system_call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_FILE, _MAKE_FIFO, _MAKE_LINK = 1 << 7, 1 << 8, 1 << 10, 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
# All rights to files that each version of the interface (ABI) handles: what is handled and not allowed is denied.
_HANDLED = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP = 0b11  # bind and connect, since version 4
_SCOPES = 0b11  # abstract sockets, and signals to processes outside, since version 6
SCOPES_SINCE = 6

READ = _READ_FILE | _READ_DIR | _EXECUTE
WRITE = READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE | _MAKE_FIFO | _MAKE_LINK
WRITE |= _REFER | _TRUNCATE
DEVICE = _READ_FILE | _WRITE_FILE
GPU = DEVICE | _IOCTL_DEV
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


@cache
def version() -> int:
    """Return the version of the interface (ABI) that the kernel has; 0 if it has none, or it is switched off."""
    try:
        return system_call("landlock_create_ruleset", _CREATE_RULESET, None, 0, _VERSION_FLAG)
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[str, int]]) -> None:
    """Allow this process the given rights at or below the given paths and nothing else; a missing path is skipped.

    Needs PR_SET_NO_NEW_PRIVS or CAP_SYS_ADMIN. Raises OSError if the kernel refuses; nothing is restricted then.
    """
    handled = max(rights for since, rights in _HANDLED.items() if since <= max(version(), 1))
    size = 8 if version() < 4 else 16 if version() < SCOPES_SINCE else 24
    attributes = _Ruleset(handled, _TCP, _SCOPES)
    ruleset = system_call("landlock_create_ruleset", _CREATE_RULESET, ctypes.byref(attributes), size, 0)
    try:
        for path, rights in rules:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _allow(ruleset, path, rights & handled)
        system_call("landlock_restrict_self", _RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        rule = _PathBeneath(rights, place)
        system_call("landlock_add_rule", _ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(place)
