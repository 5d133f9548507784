"""A system call filter for what Landlock does not cover.

PyPI's ``pyseccomp`` needs the system's libseccomp. Programs of other architectures are killed.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import re
import struct
from collections.abc import Iterator

from tsadbench.sandbox.seal.kernel import call


def _calls(table: str) -> dict[str, tuple[int | None, ...]]:
    """Parse call numbers for x86_64 and aarch64; ``-`` (None) if the architecture has no such call."""
    found = re.findall(r"(\w+) (\d+|-) (\d+|-)", re.sub("#.*", "", table))
    return {name: tuple(None if one == "-" else int(one) for one in numbers) for name, *numbers in found}


DENIED = _calls("""
    # No new socket of any family; `_instructions` lets connected pairs through.
    socket 41 198  connect 42 203  bind 49 200  listen 50 201  accept 43 202  accept4 288 242
    # The kernel's keyrings, which outlive a process and are shared by a user's processes.
    add_key 248 217  request_key 249 218  keyctl 250 219
    # Memory, semaphores and queues of System V, and queues of POSIX: other processes of the same user see them.
    shmget 29 194  shmat 30 196  shmctl 31 195  semget 64 190  semop 65 193  semctl 66 191  semtimedop 220 192
    msgget 68 186  msgsnd 69 189  msgrcv 70 188  msgctl 71 187  mq_open 240 180  mq_unlink 241 181
    mq_timedsend 242 182  mq_timedreceive 243 183  mq_notify 244 184  mq_getsetattr 245 185
    # A ring of calls that a filter does not see.
    io_uring_setup 425 425  io_uring_enter 426 426  io_uring_register 427 427
    # Other processes, and the kernel's own faults.
    ptrace 101 117  process_vm_readv 310 270  process_vm_writev 311 271  process_madvise 440 440  pidfd_getfd 438 438
    kcmp 312 272  bpf 321 280  perf_event_open 298 241  userfaultfd 323 282
    setpriority 141 140  ioprio_set 251 30  sched_setparam 142 118  sched_setscheduler 144 119
    sched_setaffinity 203 122  sched_setattr 314 274  migrate_pages 256 238  move_pages 279 239
    # Namespaces and mounts.
    unshare 272 97  setns 308 268  mount 165 40  umount2 166 39  pivot_root 155 41  chroot 161 51
    open_tree 428 428  move_mount 429 429  fsopen 430 430  fsconfig 431 431  fsmount 432 432  fspick 433 433
    mount_setattr 442 442  open_tree_attr 467 467  statmount 457 457  listmount 458 458
    # Who does what to files, which Landlock does not limit, and which pages of a library another box has read.
    inotify_init 253 -  inotify_init1 294 26  fanotify_init 300 262  fanotify_mark 301 263
    mincore 27 232  cachestat 451 451  name_to_handle_at 303 264  open_by_handle_at 304 265
    quotactl 179 60  quotactl_fd 443 443
    # Counters of the machine and its disks: another box could move them.
    sysinfo 99 179  statfs 137 43  fstatfs 138 44  ustat 136 -
    # The machine itself. A process without capabilities could not use most of them.
    swapon 167 224  swapoff 168 225  reboot 169 142  acct 163 89  syslog 103 116  vhangup 153 58  personality 135 92
    init_module 175 105  finit_module 313 273  delete_module 176 106  kexec_load 246 104  kexec_file_load 320 294
    settimeofday 164 170  clock_settime 227 112  clock_adjtime 305 266  adjtimex 159 171  iopl 172 -  ioperm 173 -
""")
# These do nothing and report success, because honest libraries call them.
PRETENDED = _calls("""
    # They change files anywhere, which Landlock does not limit.
    chmod 90 -  fchmod 91 52  fchmodat 268 53  fchmodat2 452 452
    chown 92 -  fchown 93 55  lchown 94 -  fchownat 260 54
    utime 132 -  utimes 235 -  futimesat 261 -  utimensat 280 88
    setxattr 188 5  lsetxattr 189 6  fsetxattr 190 7  setxattrat 463 463
    removexattr 197 14  lremovexattr 198 15  fremovexattr 199 16  removexattrat 466 466  file_setattr 469 469
    # A lock on a file that two boxes may read would lead from one to the other.
    flock 73 32
    # All processes of a box stay in one group, so that one call ends them.
    setsid 112 157  setpgid 109 154
""")
# Reported as missing, so that the C library falls back to an older call with flags that can be checked.
ABSENT = _calls("clone3 435 435  preadv2 327 286")

_CLONE, _SOCKETPAIR, _PRLIMIT, _FCNTL, _IOCTL, _PRCTL = (56, 220), (53, 199), (302, 261), (72, 25), (16, 29), (157, 167)
_CLOCK_GETTIME, _CLOCK_NANOSLEEP, _TIMER_CREATE = (228, 113), (230, 115), (222, 107)
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_ARCHITECTURE = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_SET_MODE_FILTER, _SET_DUMPABLE = 1, 4
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
_NEW_NAMESPACES = 0x7E02_0000
_AF_UNIX, _SOCK_STREAM, _KIND_OF_SOCKET = 1, 1, 0xF
# Commands of fcntl: locks (SETLK, SETLKW, and those of open files) do nothing and report success; queries of locks,
# leases and notices (GETLK, OFD_GETLK, SETLEASE, NOTIFY) are denied.
_FCNTL_ANSWERS = dict.fromkeys((6, 7, 37, 38), 0) | dict.fromkeys((5, 36, 1024, 1026), errno.EPERM)
# ioctl commands by their letter: "f", "X", "v" and btrfs can change read-only files and folders.
_FILE_SYSTEM_LETTERS, _LETTER = (0x66, 0x58, 0x76, 0x94), 0xFF00

# Classic BPF (linux/filter.h, linux/seccomp.h).
_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_FIRST_X32 = 0x4000_0000
_Instruction = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_calls() -> None:
    """Install the filter for this process and its children. Needs PR_SET_NO_NEW_PRIVS.

    Raises OSError if the kernel lacks seccomp filters, or the machine's call numbers are unknown.
    """
    machine = platform.machine()
    if machine not in _SECCOMP:
        raise OSError(errno.ENOSYS, "this machine's system call numbers are unknown", "seccomp")
    code = program(machine)
    described = _Program(len(code) // 8, code)
    call("seccomp", _SET_MODE_FILTER, 0, ctypes.byref(described), number=_SECCOMP[machine])


def program(machine: str) -> bytes:
    """Return the filter for x86_64 or aarch64 as classic BPF: struct sock_filter after struct sock_filter."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in _instructions(machine))


def _instructions(machine: str) -> Iterator[_Instruction]:
    which = ("x86_64", "aarch64").index(machine)
    denied, allowed = _answer(errno.EPERM), (_RETURN, 0, 0, _ALLOW)
    yield from ((_LOAD, 0, 0, _ARCH), (_IF_EQUAL, 1, 0, _ARCHITECTURE[machine]), (_RETURN, 0, 0, _KILL))
    yield from ((_LOAD, 0, 0, _NUMBER), (_IF_AT_LEAST, 0, 1, _FIRST_X32), (_RETURN, 0, 0, _KILL))
    for calls, answer in ((DENIED, errno.EPERM), (PRETENDED, 0), (ABSENT, errno.ENOSYS)):
        for numbers in calls.values():
            if (number := numbers[which]) is not None:
                yield from _if_equal(number, [_answer(answer)])
    yield from _if_equal(_FCNTL[which], [_argument(1), *_choices(_FCNTL_ANSWERS), allowed])
    letters = dict.fromkeys((letter << 8 for letter in _FILE_SYSTEM_LETTERS), errno.ENOTTY)
    yield from _if_equal(_IOCTL[which], [_argument(1), (_AND, 0, 0, _LETTER), *_choices(letters), allowed])
    yield from _if_equal(_CLONE[which], [_argument(0), (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES), denied, allowed])
    # Only connected pairs that can never reach another socket; multiprocessing and asyncio need them.
    of_stream = [_argument(1), (_AND, 0, 0, _KIND_OF_SOCKET), *_if_equal(_SOCK_STREAM, [allowed]), denied]
    yield from _if_equal(_SOCKETPAIR[which], [_argument(0), *_if_equal(_AF_UNIX, of_stream), denied])
    # Negative clocks count the CPU time of any process.
    for clock in (_CLOCK_GETTIME, _CLOCK_NANOSLEEP, _TIMER_CREATE):
        yield from _if_equal(clock[which], [_argument(0), (_IF_AT_LEAST, 0, 1, 0x8000_0000), denied, allowed])
    # No PR_SET_DUMPABLE: the process must stay measurable from outside.
    yield from _if_equal(_PRCTL[which], [_argument(0), *_if_equal(_SET_DUMPABLE, [denied]), allowed])
    # Only its own limits, given as pid 0.
    yield from _if_equal(_PRLIMIT[which], [_argument(0), *_if_equal(0, [allowed]), denied])
    yield allowed


def _if_equal(value: int, then: list[_Instruction]) -> list[_Instruction]:
    return [(_IF_EQUAL, 0, len(then), value), *then]


def _choices(answers: dict[int, int]) -> list[_Instruction]:
    return [one for value, answer in answers.items() for one in _if_equal(value, [_answer(answer)])]


def _answer(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _FAIL | number)


def _argument(position: int) -> _Instruction:
    """Load the lower half of an argument, which holds every value that is checked."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * position)
