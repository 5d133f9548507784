"""From one trial to the next: memory, queues, keys and locks that outlive a process or are shared by several."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import re
import struct
import time
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path

import numpy as np

from tests.hostile.preamble import LIBC, WHERE, Courier, attempts, of_each, system_call

_KEY = int(str(WHERE["tag"])[-6:], 16) | 0x10000000
_SIZE = 64
_PAGE = mmap.PAGESIZE
_RINGS = (-4, -5, -3)  # the keyrings of the user, of the user session, of the session


class SharesMemorySysV(Courier):
    """leaves a System V shared memory segment"""

    def attached(self):
        identifier = system_call("shmget", _KEY, ctypes.c_size_t(_SIZE), 0o1666)
        return ctypes.c_char * _SIZE, system_call("shmat", identifier, None, 0)

    def leave(self, word):
        kind, address = self.attached()
        kind.from_address(address).value = word

    def look(self):
        kind, address = self.attached()
        return kind.from_address(address).value


class SharesMemoryPosix(Courier):
    """leaves a POSIX shared memory object"""

    def leave(self, word):
        block = shared_memory.SharedMemory(f"{WHERE['tag']}-posix", create=True, size=_SIZE)
        resource_tracker.unregister(block._name, "shared_memory")
        block.buf[: len(word)] = word

    def look(self):
        block = shared_memory.SharedMemory(f"{WHERE['tag']}-posix")
        resource_tracker.unregister(block._name, "shared_memory")
        return bytes(block.buf)


class SharesMessagesSysV(Courier):
    """leaves messages in a System V queue"""

    def steal_while_scoring(self):
        return ()  # looking takes a word out of the queue

    def leave(self, word):
        message = ctypes.create_string_buffer((1).to_bytes(8, "little") + word)
        for _ in range(2):
            queue = system_call("msgget", _KEY, 0o1666)
            system_call("msgsnd", queue, message, ctypes.c_size_t(len(word)), 0o4000)

    def look(self):
        message = ctypes.create_string_buffer(8 + _SIZE)
        system_call("msgrcv", system_call("msgget", _KEY, 0), message, ctypes.c_size_t(_SIZE), ctypes.c_long(0), 0o4000)
        return message.raw[8:]


class SharesMessagesPosix(Courier):
    """leaves messages in a POSIX queue"""

    def steal_while_scoring(self):
        return ()  # looking takes a word out of the queue

    def queue(self, flags):
        attributes = (ctypes.c_long * 8)(0, 4, _SIZE)
        LIBC.mq_open.restype = ctypes.c_int
        descriptor = LIBC.mq_open(f"/{WHERE['tag']}-queue".encode(), flags | os.O_NONBLOCK, 0o666, attributes)
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), "mq_open")
        return descriptor

    def leave(self, word):
        for _ in range(2):
            if LIBC.mq_send(self.queue(os.O_RDWR | os.O_CREAT), word, ctypes.c_size_t(len(word)), 0) < 0:
                raise OSError(ctypes.get_errno(), "mq_send")

    def look(self):
        buffer = ctypes.create_string_buffer(_SIZE)
        if LIBC.mq_receive(self.queue(os.O_RDWR), buffer, ctypes.c_size_t(_SIZE), None) < 0:
            raise OSError(ctypes.get_errno(), "mq_receive")
        return buffer.raw


class SharesKeys(Courier):
    """leaves a key in the kernel's keyring of the user"""

    def leave(self, word):
        name = f"{WHERE['tag']}-key".encode()
        length = ctypes.c_size_t(len(word))
        return of_each(_RINGS, lambda ring: system_call("add_key", b"user", name, word, length, ring))

    def look(self):
        def read(ring):
            key = system_call("keyctl", 10, ring, b"user", f"{WHERE['tag']}-key".encode(), 0)
            buffer = ctypes.create_string_buffer(_SIZE)
            system_call("keyctl", 11, key, buffer, ctypes.c_size_t(_SIZE))
            return buffer.raw

        return of_each(_RINGS, read)


class SharesLocks(Courier):
    """writes a word into the places of the locks on a file of Python's own, where the trial beside it reads them"""

    def leave(self, word):
        self.locked_ = os.open(os.__file__, os.O_RDONLY)
        digits = word.decode().removeprefix("left-")
        for number in range(4):
            place = 2**40 + 2**20 * number + int(digits[4 * number : 4 * number + 4], 16)
            fcntl.fcntl(self.locked_, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, place, 1, 0))

    def look(self):
        descriptor = os.open(os.__file__, os.O_RDONLY)
        digits = ""
        for number in range(4):
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 2**40 + 2**20 * number, 2**16, 0)
            kind, _, place, _, _ = struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
            if kind == fcntl.F_UNLCK:
                return ()
            digits += f"{place % 2**20:04x}"
        return f"left-{digits}"


class SharesThePageCache(Courier):
    """reads some pages of a file that nobody reads; the next seed asks the kernel which of them are in memory"""

    def opened(self):
        descriptor = os.open(os.path.join(os.path.dirname(os.__file__), "pydoc_data", "topics.py"), os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        return descriptor

    def leave(self, word):
        descriptor = self.opened()
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        digits = int(word.decode().removeprefix("left-"), 16)
        for bit in range(64):
            os.pread(descriptor, 1, _PAGE * (2 * bit + (digits >> bit & 1)))

    def look(self):
        def cached(descriptor, page):
            try:
                return os.preadv(descriptor, [bytearray(1)], _PAGE * page, os.RWF_NOWAIT) == 1
            except BlockingIOError:
                return False

        def mapped(descriptor, page):
            memory = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
            resident = ctypes.create_string_buffer(len(memory) // _PAGE + 1)
            address = np.frombuffer(memory, dtype=np.uint8).ctypes.data
            if LIBC.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(memory)), resident):
                raise OSError(ctypes.get_errno(), "mincore")
            return bool(resident.raw[page] & 1)

        def probe(asks):
            descriptor = self.opened()
            digits = 0
            for bit in range(64):
                zero, one = asks(descriptor, 2 * bit), asks(descriptor, 2 * bit + 1)
                if zero == one:
                    return ()
                digits |= one << bit
            return f"left-{digits:016x}"

        return attempts(lambda: probe(cached), lambda: probe(mapped))


class SharesInheritedMemory(Courier):
    """writes into memory that it shares with the process it was forked from, and so with every other box"""

    def shared(self):
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, rights, *_ = line.split()
            if rights == "rw-s":
                first, last = (int(end, 16) for end in span.split("-"))
                yield first, last - first

    def leave(self, word):
        large = [first for first, size in self.shared() if size >= _SIZE]
        return of_each(large, lambda first: ctypes.memmove(first, word, len(word)))

    def look(self):
        return of_each(self.shared(), lambda span: ctypes.string_at(span[0], min(span[1], 2**20)))


class SharesCounters(Courier):
    """spells a word in how much memory it keeps in files, which the next seed reads from the machine's counters"""

    def steal(self):
        return attempts(self.spell if self.seed % 2 else self.look)

    def steal_while_scoring(self):
        return ()

    def spell(self):
        for digit in self.own_.removeprefix("left-") * 3:
            descriptor = os.memfd_create("level")
            os.posix_fallocate(descriptor, 0, 2**21 * (int(digit, 16) + 1))
            time.sleep(0.04)
            os.close(descriptor)
            time.sleep(0.04)

    def level(self):
        for path in ("/proc/meminfo", "/sys/devices/system/node/node0/meminfo"):
            for text in [*attempts(lambda path=path: Path(path).read_text())]:
                return int(re.search(r"Shmem: +(\d+)", text)[1]) / 2**11
        facts = (ctypes.c_ulong * 20)()
        return () if LIBC.sysinfo(facts) else facts[6] / 2**21

    def look(self):
        levels, start = [], time.monotonic()
        while time.monotonic() < start + 6:
            levels.append(float(self.level()))
            time.sleep(0.002)
        heights = np.round(np.array(levels) - min(levels)).astype(int)
        parts = np.split(heights, np.flatnonzero((heights[1:] > 0) != (heights[:-1] > 0)) + 1)
        digits = "".join(f"{part.max() - 1:x}" for part in parts if 0 < part.max() < 17 and len(part) > 4)
        return f"left-{digits[:16]}" if len(digits) >= 16 else ()
