"""Closes a box: what its process does to itself before any code of a detector runs."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location

from tsadbench.base.status import Seal
from tsadbench.sandbox.walls import Walls
from tsadbench.utils.linux import landlock
from tsadbench.utils.linux.kernel import close_descriptors, drop_capabilities
from tsadbench.utils.linux.namespaces import Keeper, enter, furnish
from tsadbench.utils.linux.seccomp import filter_calls

# Read by the C library, by libraries that count processors or ask for the memory's limit, and to look up time zones and
# users.
_ALWAYS_READABLE = (
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/timezone",
    "/usr/share/zoneinfo",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/openssl.cnf",
    "/sys/devices/system",
    "/sys/kernel/mm/transparent_hugepage",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Without a /proc of its own, a box sees none of any process; of the machine, what numeric libraries ask for.
_OF_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/driver")
_MOST_DESCRIPTORS, _MOST_PROCESSES, _LARGEST_FILE = 4096, 4096, 2**30


class _Importables:
    """Finds the modules of one folder of the import path that may be read, though the folder may not be listed."""

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


@dataclass(frozen=True, slots=True)
class SealStatus:
    """How well boxes are closed on a machine.

    Parameters
    ----------
    seal
        "sealed" or "guarded".
    reason
        Why they are guarded only, or that they are sealed without namespaces; empty otherwise.
    details
        What the kernel offers, one line each.
    """

    seal: Seal
    reason: str
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClosedBox:
    """How well a box's process has closed itself, which it tells the parent before any code of a detector runs.

    Parameters
    ----------
    seal, reason, details
        As in `SealStatus`.
    room
        The folder in which it may write.
    mounted
        Whether that folder is mounted where only the box sees it.
    """

    seal: Seal
    reason: str
    details: tuple[str, ...] = ()
    room: str = ""
    mounted: bool = False


def opened_box(room: str, reason: str, channel: int) -> ClosedBox:
    """Return what a process says that has no walls; it closes only what it has inherited.

    Parameters
    ----------
    room, channel
        As for `close_box`.
    reason
        Why it has none.
    """
    close_descriptors(channel)
    return ClosedBox("guarded", reason, room=tempfile.mkdtemp(dir=room))


def close_box(walls: Walls, room: str, keeper: Keeper | None, missing: str, channel: int) -> ClosedBox:
    """Close this process off from everything but its room, its libraries and its channel.

    Parameters
    ----------
    walls
        What it may reach.
    room
        An empty folder, over which its own is mounted; without namespaces its own is a new one in it.
    keeper
        Of the namespaces that this process was forked into; None if there are none.
    missing
        Why there are none.
    channel
        The only file descriptor, beside the standard ones, that stays open.

    Returns
    -------
    ClosedBox
        "sealed" if each wall stands, else "guarded" and which does not.
    """
    reasons = []
    _limit_resources(alone=keeper is None)
    if keeper is not None:
        try:
            enter(keeper)
            furnish(room, walls.room_mib, walls.hidden, walls.needed_below_hidden())
        except OSError as error:
            reasons.append(f"namespaces: {error}")
    mounted = keeper is not None and not reasons
    if not mounted:
        room = tempfile.mkdtemp(dir=room)
    if keeper is None and (seen := walls.hidden_below_readable()) is not None:
        reasons.append(f"{seen} lies among what may be read, and cannot be covered without namespaces")
    close_descriptors(channel)
    _restrict_imports(walls)
    for name, raise_wall in (
        ("capabilities", drop_capabilities),
        ("Landlock", lambda: landlock.restrict(_rules(walls, room, alone=keeper is None))),
        ("seccomp", lambda: filter_calls(alone=keeper is None)),
    ):
        try:
            raise_wall()
        except OSError as error:
            reasons.append(f"{name}: {error}")
    if keeper is None and landlock.version() < landlock.SCOPES_SINCE:
        reasons.append(f"Landlock {landlock.version()} does not stop signals")
    without = [] if keeper is not None else [f"without namespaces ({missing})"]
    details = (
        f"Landlock: version {landlock.version()}" if landlock.version() else "Landlock: none",
        f"namespaces: none ({missing})" if keeper is None else "namespaces: user, pid, mount, ipc, network, uts",
    )
    return ClosedBox("guarded" if reasons else "sealed", "; ".join(without + reasons), details, room, mounted)


def _limit_resources(*, alone: bool) -> None:
    # A folder of /proc as it is outside: it becomes read-only with the namespaces.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: _MOST_DESCRIPTORS, resource.RLIMIT_FSIZE: _LARGEST_FILE}
    if not alone:  # it counts the processes of a user namespace, and outside all of the user's
        limits[resource.RLIMIT_NPROC] = _MOST_PROCESSES
    for limit, most in limits.items():
        hard = resource.getrlimit(limit)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (value, value))


def _restrict_imports(walls: Walls) -> None:
    for entry, found in walls.importable.items():
        sys.path_importer_cache[entry] = _Importables(found)


def _rules(walls: Walls, room: str, *, alone: bool) -> Iterator[tuple[str, int]]:
    for path in (*_ALWAYS_READABLE, *walls.readable, *(_OF_MACHINE if alone else ("/proc",))):
        yield path, landlock.READ
    for path in _DEVICES:
        yield path, landlock.DEVICE
    for path in walls.devices:
        yield path, landlock.GPU
    yield room, landlock.WRITE
    if not alone:
        yield "/dev/shm", landlock.WRITE
