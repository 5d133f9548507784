"""The filter of system calls, run by hand: against the kernel's own headers, and instruction by instruction."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from tsadbench.sandbox.seal import seccomp
from tsadbench.sandbox.seal.seccomp import program

ALLOW, KILL, DENY = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
AUDIT_ARCH = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
I386, ARM = 0x4000_0003, 0x4000_0028
HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"),),
}


def verdict(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """Run the filter on one call, as the kernel's interpreter of classic BPF would."""
    arch = AUDIT_ARCH[machine] if arch is None else arch
    data = struct.pack("=IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    code = list(struct.iter_unpack("=HBBI", program(machine)))
    at = accumulator = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return value


def numbers(machine: str) -> dict[str, int]:
    """Return the numbers of calls that the kernel's headers know."""
    for header in HEADERS[machine]:
        if header.is_file():
            found = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)\b", header.read_text(), re.MULTILINE)
            return {name: int(number) for name, number in found}
    pytest.skip("the kernel's headers are not installed (linux-libc-dev)")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_exactly_the_listed_calls_of_the_kernels_headers_are_denied(machine):
    answers = dict.fromkeys(seccomp.DENIED, errno.EPERM) | dict.fromkeys(seccomp.PRETENDED, 0)
    answers |= dict.fromkeys(seccomp.ABSENT, errno.ENOSYS)
    looked_at = {"clone", "socketpair", "prlimit64", "fcntl", "ioctl", "prctl"}
    for name, number in numbers(machine).items():
        if name in looked_at or name in ("syscalls", "arch_specific_syscall"):
            continue
        assert verdict(machine, number) == (DENY | answers[name] if name in answers else ALLOW), name


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_are_judged_by_their_arguments(machine):
    known, denied = numbers(machine), DENY | errno.EPERM

    def found(name: str, *arguments: int) -> int:
        return verdict(machine, known[name], *arguments)

    assert {command: found("fcntl", 3, command) for command in (6, 7, 37, 38)} == dict.fromkeys((6, 7, 37, 38), DENY)
    assert {found("fcntl", 3, command) for command in (5, 36, 1024, 1026)} == {denied}
    assert {found("fcntl", 3, command) for command in (0, 1, 2, 3, 4, 1030, 1033)} == {ALLOW}
    assert found("clone", 0x01200011) == ALLOW  # fork
    assert found("clone", 0x003D0F00) == ALLOW  # a thread
    for namespace in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert found("clone", namespace | 17) == denied
    unix, inet, stream, datagram, flags = 1, 2, 1, 2, 0x80800  # SOCK_CLOEXEC | SOCK_NONBLOCK
    assert found("socketpair", unix, stream) == ALLOW
    assert found("socketpair", unix, stream | flags) == ALLOW
    assert found("socketpair", unix, datagram) == denied
    assert found("socketpair", unix, datagram | flags) == denied
    assert found("socketpair", inet, stream) == denied
    assert found("prlimit64", 7) == denied
    assert found("prlimit64", 0) == ALLOW
    clocks = ("clock_gettime", "clock_nanosleep", "timer_create")
    assert {found(name, (~4321 << 3 | 2) & 0xFFFF_FFFF) for name in clocks} == {denied}  # of process 4321
    assert {found(name, clock) for name in clocks for clock in range(12)} == {ALLOW}
    assert found("prctl", 4) == denied  # PR_SET_DUMPABLE
    assert found("prctl", 15) == ALLOW  # PR_SET_NAME
    # FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, BTRFS_IOC_SUBVOL_CREATE; TCGETS, FIONREAD, a command of NVIDIA's driver.
    assert {found("ioctl", 3, one) for one in (0x40086602, 0x401C5820, 0x5000940E)} == {DENY | errno.ENOTTY}
    assert {found("ioctl", 3, one) for one in (0x5401, 0x541B, 0xC020462A)} == {ALLOW}


@pytest.mark.parametrize(("machine", "other"), [("x86_64", I386), ("aarch64", ARM), ("x86_64", AUDIT_ARCH["aarch64"])])
def test_programs_of_other_architectures_are_killed(machine, other):
    assert verdict(machine, 0, arch=other) == KILL


def test_the_calls_of_x32_are_killed():
    assert verdict("x86_64", 0x4000_0000 | 41) == KILL
