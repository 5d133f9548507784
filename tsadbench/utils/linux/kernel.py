"""Linux calls that Python's standard library does not offer. Each raises OSError with the call's name if it fails."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from functools import cache

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x1000_0000, 0x2000_0000, 0x4000_0000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_CAP_AMBIENT = 1, 36, 38, 24, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_AT_RECURSIVE, _MOUNT_ATTR_RDONLY = 0x8000, 1
_CAPABILITY_VERSION = 0x2008_0522
_MOUNT_SETATTR = 442  # the same number on all architectures, as all newer calls
# Of the running machine; None: one for which the numbers of its older calls are not known here.
MACHINE = {"x86_64": "x86_64", "aarch64": "aarch64"}.get(platform.machine())


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library by name.

    Raises
    ------
    OSError
        If it returns a negative number, or if the library does not have it.
    """
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
    filled = (ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments)
    try:
        return call("syscall", ctypes.c_long(number), *filled)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


def prctl(option: int, value: int = 0, more: int = 0) -> None:
    """Change a property of this process."""
    call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(more), ctypes.c_ulong(0), ctypes.c_ulong(0))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system, or a folder elsewhere (MS_BIND)."""
    texts = (text.encode() or None for text in (source, target, kind))
    call("mount", *texts, ctypes.c_ulong(flags), options.encode() or None)


def make_mounts_read_only() -> None:
    """Make every mount of this mount namespace read-only; devices can still be written to."""
    attributes = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY, 0, 0, 0)
    size = ctypes.sizeof(attributes)
    system_call("mount_setattr", _MOUNT_SETATTR, -1, b"/", _AT_RECURSIVE, ctypes.byref(attributes), size)


def drop_capabilities() -> None:
    """Give up all capabilities, and with them the means to get any back by starting a program."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break  # the kernel has no more of them, or this process has no right to, because it has none
    prctl(PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    call("capset", ctypes.byref(header), ctypes.byref(none))


def close_descriptors(kept: int) -> None:
    """Close every file descriptor of this process but the standard ones and one more."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            with contextlib.suppress(OSError):  # the one that listed them
                os.close(int(name))
