"""Native code: machine code written into memory, libraries written into the private folder, foreign system calls."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import shutil
import struct
import subprocess
import sys
from pathlib import Path

from tests.hostile.preamble import LIBC, Hostile, attempts, of_each_secret, reached, system_call


def mapped(code: bytes):
    """Return a function of one address that runs these bytes."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    function = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(address)
    function.page = page
    return function


def read_descriptor(descriptor: int) -> bytes:
    if descriptor < 0:
        raise OSError(-descriptor, os.strerror(-descriptor))
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


class WritesMachineCode(Hostile):
    """writes machine code into memory that opens label files by the system call itself"""

    def steal(self):
        code = {
            # mov rsi,rdi; mov rdi,-100; xor edx,edx; mov eax,257 (openat); syscall; ret
            "x86_64": bytes.fromhex("4889fe48c7c79cffffff31d2b8010100000f05c3"),
            # mov x1,x0; mov x0,#-100; mov x2,#0; mov x8,#56 (openat); svc #0; ret
            "aarch64": struct.pack("<6I", 0xAA0003E1, 0x92800C60, 0xD2800002, 0xD2800708, 0xD4000001, 0xD65F03C0),
        }[platform.machine()]
        opens = mapped(code)
        return of_each_secret(lambda path: read_descriptor(opens(ctypes.create_string_buffer(path.encode()))))


class CallsAsAnotherMachine(Hostile):
    """makes system calls of the 32-bit machine, which have other numbers"""

    ends = ("ok", "killed")

    def steal(self):
        if platform.machine() != "x86_64":
            return ()
        # mov ebx,edi; xor ecx,ecx; xor edx,edx; mov eax,5 (open); push rbx; int 0x80; pop rbx; ret
        opens = mapped(bytes.fromhex("5389fb31c931d2b805000000cd805bc3"))
        low = 0x40  # MAP_32BIT: a 32-bit call takes 32-bit addresses
        LIBC.mmap.restype = ctypes.c_void_p
        LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        buffer = LIBC.mmap(None, 4096, 3, 0x22 | low, -1, 0)

        def read(path):
            ctypes.memmove(buffer, path.encode() + b"\0", len(path.encode()) + 1)
            return read_descriptor(ctypes.c_int(opens(buffer)).value)

        return of_each_secret(read)


class CallsAsAnEmulatedMachine(Hostile):
    """makes system calls with the x32 bit set, which a filter by number overlooks"""

    ends = ("ok", "killed")

    def steal(self):
        if platform.machine() != "x86_64":
            return ()

        def read(path):
            number = 0x40000000 | 257
            return read_descriptor(int(LIBC.syscall(ctypes.c_long(number), -100, path.encode(), 0, 0)))

        return of_each_secret(read)


class WritesALibrary(Hostile):
    """copies the C library into its own folder, loads the copy, and opens label files with it"""

    def steal(self):
        source = next(
            line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libc.so" in line
        )
        shutil.copyfile(source, "harmless.so")
        copy = ctypes.CDLL("./harmless.so", use_errno=True)

        def read(path):
            descriptor = copy.open(path.encode(), 0)
            return read_descriptor(descriptor if descriptor >= 0 else -(ctypes.get_errno() or 1))

        return of_each_secret(read)


class RunsAProgramFromMemory(Hostile):
    """starts a program from a file in memory that no folder holds"""

    def steal(self):
        descriptor = os.memfd_create("harmless")
        os.write(descriptor, Path(sys.executable).resolve().read_bytes())

        def read(path):
            return subprocess.run(
                [f"/proc/self/fd/{descriptor}", "-c", f"print(open({path[::-1]!r}[::-1]).read())"],
                check=True, capture_output=True, pass_fds=(descriptor,), env={"PYTHONHOME": sys.base_prefix},
            ).stdout  # fmt: skip

        return of_each_secret(read)


class AsksTheKernelForMore(Hostile):
    """opens the kernel's large interfaces: bpf, perf_event_open, userfaultfd"""

    def steal(self):
        attribute = ctypes.create_string_buffer(struct.pack("IIIII", 1, 4, 4, 1, 0), 128)
        event = ctypes.create_string_buffer(struct.pack("IIQ", 1, 128, 0), 128)
        return attempts(
            lambda: system_call("bpf", 0, attribute, 128) and reached("bpf"),
            lambda: system_call("perf_event_open", event, 0, -1, -1, 0) and reached("perf_event_open"),
            lambda: system_call("userfaultfd", 0) and reached("userfaultfd"),
        )
