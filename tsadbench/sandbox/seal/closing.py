"""Closes a box: what its process does to itself before any code of a detector runs."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location

from tsadbench.base.status import Seal
from tsadbench.sandbox.seal import kernel
from tsadbench.sandbox.seal.seccomp import filter_calls
from tsadbench.sandbox.seal.walls import LARGEST_FILE, Walls

# Read by the C library and PyTorch, to count processors, to find limits, and to look up time zones and users. No
# counter in /proc or /sys, such as free memory: another box could change it to pass a message.
_ALWAYS_READABLE = (
    "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/usr/share/zoneinfo", "/etc/passwd", "/etc/group",
    "/etc/nsswitch.conf", "/etc/os-release", "/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/proc/cpuinfo",
    *(f"/sys/devices/system/cpu/{name}" for name in ("online", "possible", "present", "kernel_max")),
    *(f"/sys/fs/cgroup/{name}" for name in ("cpu.max", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")),
    *(f"/sys/fs/cgroup/{name}" for name in ("memory.max", "memory/memory.limit_in_bytes")),
)  # fmt: skip
# In the process's own /proc: threadpoolctl (and so scikit-learn) finds loaded libraries there, and psutil memory use.
_OWN = ("/proc/self/maps", "/proc/self/stat", "/proc/self/statm", "/proc/self/status")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class SealStatus:
    """How well a box is closed: "sealed", or "guarded" for a reason."""

    seal: Seal
    reason: str


def close_box(walls: Walls, room: str, channel: int) -> SealStatus:
    """Restrict this process to its libraries (read-only), its socket, and its room."""
    exposed = walls.exposed()
    reasons = [f"{exposed} is in a library folder, which boxes may read"] if exposed else []
    _limit_resources()
    kernel.close_descriptors(channel)
    # Keep these open, or the kernel drops their rules. O_PATH: nothing is read.
    for path in _OWN:
        with contextlib.suppress(OSError):
            os.open(path, os.O_PATH | os.O_CLOEXEC)
    for entry, found in walls.importable.items():
        sys.path_importer_cache[entry] = _Importables(found)
    version = kernel.landlock_version()
    if version < kernel.SCOPES_SINCE:
        abi = f"Landlock {version}" if version else "no Landlock"
        reasons.append(f"Linux {platform.release()} has {abi}; the seal needs Landlock 6 (Linux 6.12)")
    try:
        kernel.drop_capabilities()
        if version:
            kernel.restrict(_rules(walls, room))
        filter_calls()
    except OSError as error:
        reasons.append(f"the kernel refuses {error.filename or 'a call'}: {error.strerror or error}")
    return SealStatus("guarded" if reasons else "sealed", "; ".join(reasons))


def move_in(room: str) -> None:
    """Make the room this process's home, temporary directory and working directory."""
    work, temporary, home = (os.path.join(room, name) for name in ("empty", "temporary", "home"))
    for folder in (work, temporary, home):
        os.mkdir(folder, 0o700)
    os.chdir(work)
    os.environ |= {"HOME": home, "XDG_CACHE_HOME": os.path.join(home, ".cache"), "TMPDIR": temporary}
    tempfile.tempdir = temporary


class _Importables:
    """Finds the readable modules of an import folder that may not be listed."""

    def __init__(self, found: dict[str, str]) -> None:
        self._found = found

    def find_spec(self, name: str, target: object = None) -> ModuleSpec | None:  # noqa: ARG002 - the finders' protocol
        path = self._found.get(name.rpartition(".")[2])
        if path is None:
            return None
        if not os.path.isdir(path):
            return spec_from_file_location(name, path)
        start = os.path.join(path, "__init__.py")
        if os.path.isfile(start):
            return spec_from_file_location(name, start, submodule_search_locations=[path])
        namespace = ModuleSpec(name, None, is_package=True)
        namespace.submodule_search_locations = [path]
        return namespace


def _limit_resources() -> None:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 1024, resource.RLIMIT_FSIZE: LARGEST_FILE}
    for limit, most in limits.items():
        with contextlib.suppress(ValueError):  # it is lower already
            resource.setrlimit(limit, (most, most))


def _rules(walls: Walls, room: str) -> Iterator[tuple[str, int]]:
    yield from ((path, kernel.READ) for path in (*_ALWAYS_READABLE, *_OWN, *walls.readable))
    yield from ((path, kernel.DEVICE) for path in _DEVICES)
    yield from ((path, kernel.GPU) for path in walls.devices)
    yield room, kernel.WRITE
