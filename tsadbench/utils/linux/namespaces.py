"""A box's own world: process numbers, mounts, network, IPC and host name, made by a process that does nothing else.

A box is forked from a large process, which takes milliseconds: a second fork, for the first process of a namespace of
process numbers, would double that. So a small process, forked from the server before it grows, makes the first process
of each box's namespaces (the *keeper*), ahead of time. The server enters the keeper's namespace of process numbers for
its children and forks; the box enters the others. So the box stays the server's child, has a number outside, and is
not the first process inside, which would ignore the signals that it sends to itself. The keeper waits for whatever the
box leaves behind, and if the keeper is killed, the kernel kills all that is left in its namespace.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tsadbench.utils.linux.kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MACHINE,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    PR_SET_PDEATHSIG,
    call,
    close_descriptors,
    drop_capabilities,
    make_mounts_read_only,
    mount,
    prctl,
    system_call,
)

_OWN = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS
_CLONE = {"x86_64": 56, "aarch64": 220}
_NOBODY = 65534
_MOST_PROCESSES = 4096
_MARK = b"k"
_PATIENCE_MS = 2000


@dataclass(frozen=True, slots=True)
class Keeper:
    """The first process of a box's namespaces.

    Parameters
    ----------
    pid
        Its number.
    handle
        A file descriptor that stands for it.
    """

    pid: int
    handle: int

    def end(self) -> None:
        """Kill it, and with it all that is left in its namespace; return when they are gone."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        gone = select.poll()
        gone.register(self.handle, select.POLLIN)
        gone.poll(_PATIENCE_MS)
        os.close(self.handle)


class Keepers:
    """Makes keepers, one ahead of the need. Has to be constructed while the process is small and has one thread.

    Raises
    ------
    OSError
        If the kernel does not allow namespaces, or a part of what a keeper needs; it names the call.
    """

    def __init__(self) -> None:
        _become_owner_of_namespaces()
        self._channel, theirs = socket.socketpair()
        server = os.getpid()
        maker = os.fork()
        if not maker:
            try:
                self._channel.close()
                _make_keepers(theirs, server)
            finally:
                os._exit(0)
        theirs.close()
        self._ask()
        self._next: Keeper | None = self._receive()  # tells whether all of it works

    def take(self) -> Keeper:
        """Return a keeper that belongs to nobody else."""
        keeper = self._next or self._receive()
        self._next = None
        self._ask()
        return keeper

    def _ask(self) -> None:
        self._channel.sendall(_MARK)

    def _receive(self) -> Keeper:
        message, handles, _, _ = socket.recv_fds(self._channel, 200, 1)
        if not handles:
            number, _, text = message.decode().partition(" ")
            raise OSError(int(number or 0), text or "the maker of namespaces has ended")
        return Keeper(int(message), handles[0])


def keepers_or_reason(*, wanted: bool) -> Keepers | str:
    """Return a maker of keepers, or why there is none."""
    try:
        return Keepers() if wanted else "not asked for"
    except OSError as error:
        return str(error)


def children_enter(keeper: Keeper) -> None:
    """Have the children that this process forks from here on number their processes in the keeper's namespace."""
    call("setns", keeper.handle, CLONE_NEWPID)


def enter(keeper: Keeper) -> None:
    """Enter the keeper's other namespaces."""
    call("setns", keeper.handle, _OWN)


def furnish(room: str, mib: int, hidden: Sequence[str], needed: Sequence[str]) -> None:
    """Mount a box's own folder over the room, and empty ones over what it may not see. Needs `enter`.

    Parameters
    ----------
    room
        An empty folder. /dev/shm is a part of what is mounted there.
    mib
        Its size.
    hidden
        Folders that look empty from here on. One that does not exist is passed over.
    needed
        Files and folders below hidden ones that stay where they are, a folder before what lies in it.
    """
    for folder in hidden:
        if os.path.isdir(folder):
            _cover(folder, [path for path in needed if path.startswith(folder + os.sep)])
    os.makedirs(room, exist_ok=True)  # it may lie in a folder that is hidden now
    mount("box", room, "tmpfs", MS_NOSUID | MS_NODEV, f"size={mib}m,mode=0700")
    shared = os.path.join(room, "shm")
    os.mkdir(shared)
    if os.path.isdir("/dev/shm"):
        mount(shared, "/dev/shm", "", MS_BIND)


def _cover(folder: str, needed: Sequence[str]) -> None:
    kept = [(path, os.open(path, os.O_PATH)) for path in needed]
    mount("nothing", folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0700")
    for path, handle in kept:
        inside_another = os.path.lexists(path)
        if not inside_another:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                os.mkdir(path)
            else:
                os.close(os.open(path, os.O_CREAT))
            mount(f"/proc/self/fd/{handle}", path, "", MS_BIND | MS_REC)
        os.close(handle)


def _become_owner_of_namespaces() -> None:
    """Enter a user namespace in which this process may do anything, as nobody."""
    user, group = os.getuid(), os.getgid()
    call("unshare", CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{_NOBODY} {user} 1"), ("gid_map", f"{_NOBODY} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text)


def _make_keepers(channel: socket.socket, server: int) -> None:
    """Make a keeper for each byte that arrives, until the channel closes."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        return
    close_descriptors(channel.fileno())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets keepers, and they their orphans, at their end
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what the first process of a namespace has no handler for, it ignores
    while channel.recv(1):
        try:
            keeper = _make_keeper()
        except OSError as error:
            channel.sendall(f"{error.errno or 0} {error.strerror or error} ({error.filename})".encode()[:200])
        else:
            socket.send_fds(channel, [str(keeper.pid).encode()], [keeper.handle])
            os.close(keeper.handle)


def _make_keeper() -> Keeper:
    ready, told = os.pipe()
    # Not os.fork, after which this process could not return to its own namespace.
    assert MACHINE is not None
    pid = system_call("clone", _CLONE[MACHINE], CLONE_NEWPID | signal.SIGCHLD, 0, 0, 0, 0)
    if not pid:
        _keep(told)
    os.close(told)
    try:
        handle = os.pidfd_open(pid)
        trouble = os.read(ready, 200).decode()
    finally:
        os.close(ready)
    if trouble != _MARK.decode():
        os.close(handle)
        number, _, text = trouble.partition(" ")
        raise OSError(int(number or 0), text)
    return Keeper(pid, handle)


def _keep(told: int) -> NoReturn:
    """Be the first process of new namespaces, and do nothing in them."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        call("unshare", _OWN)
        call("sethostname", b"box", 3)
        mount("none", "/", "", MS_REC | MS_PRIVATE)
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        with contextlib.suppress(OSError):  # kernels before 6.14 have one limit for the whole machine
            Path("/proc/sys/kernel/pid_max").write_text(str(_MOST_PROCESSES))
        make_mounts_read_only()
        drop_capabilities()
        os.write(told, _MARK)
        os.close(told)
        while True:
            signal.pause()
    except OSError as error:
        os.write(told, f"{error.errno or 0} {error.strerror} ({error.filename})".encode()[:200])
    finally:
        os._exit(1)
