"""Linux system calls that Python's standard library lacks, and Landlock, which uses three of them.

Landlock restricts a process and its children in their access to files, TCP ports and other processes. PyPI's
``landlock`` (1.0.0.dev5) supports neither scopes nor TCP.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from functools import cache

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITY_VERSION = 0x2008_0522

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_FILE, _MAKE_FIFO, _MAKE_LINK = 1 << 7, 1 << 8, 1 << 10, 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
# The file rights that each ABI version handles: rights that are handled but not allowed are denied.
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


def call(name: str, *arguments: object, number: int | None = None) -> int:
    """Call a C library function, or a system call by number; raises an OSError with its name if that fails."""
    if number is not None:
        arguments = number, *arguments
    # The C library passes these on unchanged, so integers must fill a register.
    filled = (ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments)
    found: int = getattr(ctypes.CDLL(None, use_errno=True), name if number is None else "syscall")(*filled)
    if found < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), name)
    return found


def prctl(option: int, value: int) -> None:
    """Change a property of this process."""
    call("prctl", option, value, 0, 0, 0)


def drop_capabilities() -> None:
    """Drop all capabilities, so that no started program can regain them."""
    for capability in range(64):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            break  # no such capability, or this process has none and may not change them
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    call("capset", struct.pack("=II", _CAPABILITY_VERSION, 0), bytes(24))


def close_descriptors(kept: int) -> None:
    """Close every file descriptor of this process except the standard ones and one more."""
    os.closerange(3, kept)
    os.closerange(kept + 1, 2**20)


@cache
def landlock_version() -> int:
    """Return the kernel's Landlock ABI version; 0 if Landlock is missing or disabled."""
    try:
        return call("landlock_create_ruleset", None, 0, _VERSION_FLAG, number=_CREATE_RULESET)
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[str, int]]) -> None:
    """Allow this process only the given rights at or below the given paths; paths that cannot be opened are skipped.

    Needs PR_SET_NO_NEW_PRIVS or CAP_SYS_ADMIN. Raises OSError if the kernel refuses; nothing is restricted then.
    """
    version = landlock_version()
    handled = max(rights for since, rights in _HANDLED.items() if since <= version)
    size = 8 if version < 4 else 16 if version < SCOPES_SINCE else 24
    attributes = struct.pack("=QQQ", handled, _TCP, _SCOPES)
    ruleset = call("landlock_create_ruleset", attributes, size, 0, number=_CREATE_RULESET)
    try:
        for path, rights in rules:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _allow(ruleset, path, rights & handled)
        call("landlock_restrict_self", ruleset, 0, number=_RESTRICT_SELF)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, place)
        call("landlock_add_rule", ruleset, _PATH_BENEATH, rule, 0, number=_ADD_RULE)
    finally:
        os.close(place)
