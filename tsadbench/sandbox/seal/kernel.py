"""Linux calls that Python's standard library does not offer. Each raises OSError with the call's name if it fails."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from functools import cache

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4
_CAPABILITY_VERSION = 0x2008_0522
# Of the running machine; None: one for which the numbers of its older calls are not known here.
MACHINE = {"x86_64": "x86_64", "aarch64": "aarch64"}.get(platform.machine())


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library; a negative result, or a library without it, raises OSError."""
    try:
        function = getattr(_libc(), name)
    except AttributeError as error:
        raise OSError(f"the C library has no {name}") from error
    found: int = function(*arguments)
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return found


def system_call(name: str, number: int, *arguments: object) -> int:
    """Call the kernel by number; ``name`` stands in the error."""
    # The C library passes them on as they are: integers have to fill a register.
    filled = (ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in (number, *arguments))
    try:
        return call("syscall", *filled)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


def prctl(option: int, value: int = 0) -> None:
    """Change a property of this process."""
    call("prctl", option, *(ctypes.c_ulong(one) for one in (value, 0, 0, 0)))


def drop_capabilities() -> None:
    """Give up all capabilities, and with them the means to get any back by starting a program."""
    for capability in range(64):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            break  # the kernel has no more of them, or this process has no right to, because it has none
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    call("capset", ctypes.byref(header), ctypes.byref(none))


def close_descriptors(kept: int) -> None:
    """Close every file descriptor of this process except the standard ones and one more."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) != kept:
            with contextlib.suppress(OSError):  # the one that listed them
                os.close(int(name))
