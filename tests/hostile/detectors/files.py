"""Files: the labels, the store, the user's home, by every way that leads to a file."""

from __future__ import annotations

import ctypes
import fcntl
import glob
import json
import mmap
import os
import struct
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.hostile.preamble import (
    LIBC,
    WHERE,
    Courier,
    Hostile,
    Reader,
    attempts,
    of_each,
    of_each_secret,
    reached,
    read_bytes,
    system_call,
)


def read_descriptor(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


class OpensByName(Hostile):
    """opens the label files by their paths"""

    def steal(self):
        return of_each_secret(read_bytes)


class ClimbsFromAPathDescriptor(Hostile):
    """opens the parents of its own folder one by one with O_PATH, then label files from the top"""

    def steal(self):
        here = os.open(".", os.O_PATH | os.O_DIRECTORY)
        for _ in range(12):
            here = os.open("..", os.O_PATH | os.O_DIRECTORY, dir_fd=here)
        return of_each_secret(lambda path: read_descriptor(os.open(path[1:], os.O_RDONLY, dir_fd=here)))


class LinksHard(Reader):
    """makes hard links to label files in its own folder"""

    def read(self, path):
        os.link(path, name := f"{len(os.listdir())}.csv")
        return Path(name).read_bytes()


class ReadsWithNumpy(Hostile):
    """reads label files with numpy"""

    def steal(self):
        return of_each_secret(
            lambda path: np.fromfile(path, dtype=np.uint8).tobytes(),
            lambda path: np.memmap(path, dtype=np.uint8, mode="r").tobytes(),
            lambda path: np.genfromtxt(path, dtype=str, delimiter="\n"),
        )


class ReadsWithArrow(Hostile):
    """reads label files with pyarrow, whose C++ opens them"""

    def steal(self):
        import pyarrow as pa
        import pyarrow.fs

        return of_each_secret(
            lambda path: pa.memory_map(path).read(),
            lambda path: pa.OSFile(path).read(),
            lambda path: pyarrow.fs.LocalFileSystem().open_input_file(path).read(),
        )


class ReadsNatively(Hostile):
    """reads label files with the C library's fopen, open and openat2"""

    def steal(self):
        def by_stream(path):
            LIBC.fopen.restype = ctypes.c_void_p
            stream = LIBC.fopen(path.encode(), b"r")
            if not stream:
                raise OSError(ctypes.get_errno(), path)
            buffer = ctypes.create_string_buffer(2**20)
            count = LIBC.fread(buffer, 1, len(buffer), ctypes.c_void_p(stream))
            return buffer.raw[:count]

        def by_open(path):
            descriptor = LIBC.open(path.encode(), 0)
            if descriptor < 0:
                raise OSError(ctypes.get_errno(), path)
            return read_descriptor(descriptor)

        def by_openat2(path):
            how = struct.pack("QQQ", os.O_RDONLY, 0, 0)
            return read_descriptor(system_call("openat2", -100, path.encode(), how, len(how)))

        return of_each_secret(by_stream, by_open, by_openat2)


class OpensByHandle(Reader):
    """asks for label files' handles and opens them by handle, round every folder's rights"""

    def read(self, path):
        handle = ctypes.create_string_buffer(struct.pack("Ii", 120, 0), 128)
        mount = ctypes.c_int()
        system_call("name_to_handle_at", -100, path.encode(), handle, ctypes.byref(mount), 0)
        root = os.open("/", os.O_RDONLY)
        return read_descriptor(system_call("open_by_handle_at", root, handle, os.O_RDONLY))


class SearchesFolders(Hostile):
    """lists and reads the home, temporary, cache and working folders, wherever it can"""

    def steal(self):
        starts = [*WHERE["outside"], os.path.expanduser("~"), tempfile.gettempdir(), os.path.dirname(__file__)]
        for start in dict.fromkeys(starts):
            yield from attempts(lambda start=start: "\n".join(os.listdir(start)))
            paths = glob.glob(f"{glob.escape(start)}/**/*", recursive=True, include_hidden=True)[:200]
            yield from paths
            yield from of_each(filter(os.path.isfile, paths), lambda path: read_bytes(path)[: 2**20])


class AsksTheHarness(Hostile):
    """has tsadbench itself load the data set with its labels"""

    def steal(self):
        from tsadbench.base import DataOptions
        from tsadbench.datasets.loading import load_dataset

        def rows(name):
            data = load_dataset(name)(DataOptions())
            labels = data.labels.rows
            return [
                ",".join(["", *map(repr, map(float, values)), str(int(label))])
                for one in data.dataset.test
                for values, label in zip(one.values, labels[one.id], strict=True)
            ]

        return attempts(lambda: rows(WHERE["card"]))


class ReadsTheStore(Hostile):
    """reads the records, scores and logs of earlier trials"""

    def steal(self):
        yield from of_each(
            WHERE["stores"], os.listdir, lambda folder: read_bytes(f"{folder}/store.json") and reached("the store")
        )
        for folder in WHERE["stores"]:
            yield from of_each(glob.glob(f"{folder}/**/*.json", recursive=True)[:50], read_bytes)


class RewritesTheStore(Hostile):
    """gives the trials of others other scores, and puts a record of its own beside them"""

    def steal(self):
        def rewrite(path):
            record = json.loads(Path(path).read_text())
            record["reason"] = "rewritten"
            Path(path).write_text(json.dumps(record))
            return reached("another trial's record")

        for folder in WHERE["stores"]:
            yield from of_each(glob.glob(f"{folder}/records/*.json"), rewrite)
        yield from of_each(WHERE["stores"], lambda folder: os.mkdir(f"{folder}/forged") or reached("the store"))


class WritesTheData(Hostile):
    """empties a training file, and moves a label file into its own folder"""

    def steal(self):
        def empty():
            with open(WHERE["labels"][0], "a") as file:
                file.write("\n")
            return reached("the data")

        def move():
            os.rename(WHERE["labels"][1], "labels.csv")
            return Path("labels.csv").read_bytes()

        return attempts(empty, move)


class UsesLeftDescriptors(Hostile):
    """reads every descriptor that it was started with"""

    def steal(self):
        def read(descriptor):
            content = os.pread(descriptor, 2**16, 0)
            return [content, reached(f"descriptor {descriptor}")] if content else ()

        files = {number: os.path.realpath(f"/proc/self/fd/{number}") for number in range(3, 256)}
        own = os.path.realpath("/proc/self/fd/1")
        opened = [
            number for number, file in files.items() if file != own and os.path.lexists(f"/proc/self/fd/{number}")
        ]
        return of_each(opened, read, os.listdir)


class ReadsThroughARing(Hostile):
    """opens and reads label files by io_uring, which no filter of system calls sees"""

    def steal(self):
        return of_each_secret(read_by_ring)


def read_by_ring(path: str) -> bytes:
    """Open and read a file by an io_uring of one entry."""
    parameters = ctypes.create_string_buffer(120)
    ring = LIBC.syscall(ctypes.c_long(425), 4, parameters)
    if ring < 0:
        raise OSError(ctypes.get_errno(), "io_uring_setup")
    words = struct.unpack("10I" + "10I" + "10I", parameters.raw)
    sq = dict(zip(("head", "tail", "mask", "entries", "flags", "dropped", "array"), words[10:17], strict=True))
    cq = dict(zip(("head", "tail", "mask", "entries", "overflow", "cqes"), words[20:26], strict=True))
    queue = mmap.mmap(ring, sq["array"] + 4 * words[0], offset=0)
    done = mmap.mmap(ring, cq["cqes"] + 16 * words[1], offset=0x8000000)
    entries = mmap.mmap(ring, 64 * words[0], offset=0x10000000)

    def submit(entry: bytes) -> int:
        (tail,) = struct.unpack_from("I", queue, sq["tail"])
        (mask,) = struct.unpack_from("I", queue, sq["mask"])
        slot = tail & mask
        entries[64 * slot : 64 * slot + 64] = entry
        struct.pack_into("I", queue, sq["array"] + 4 * slot, slot)
        struct.pack_into("I", queue, sq["tail"], tail + 1)
        if LIBC.syscall(ctypes.c_long(426), ring, 1, 1, 1, None, 0) < 0:
            raise OSError(ctypes.get_errno(), "io_uring_enter")
        (head,) = struct.unpack_from("I", done, cq["head"])
        (done_mask,) = struct.unpack_from("I", done, cq["mask"])
        (result,) = struct.unpack_from("i", done, cq["cqes"] + 16 * (head & done_mask) + 8)
        struct.pack_into("I", done, cq["head"], head + 1)
        if result < 0:
            raise OSError(-result, f"io_uring: {os.strerror(-result)}")
        return result

    name = ctypes.create_string_buffer(path.encode())
    opening = struct.pack("BBHiQQIIQ24x", 18, 0, 0, -100, 0, ctypes.addressof(name), 0, os.O_RDONLY, 0)
    descriptor = submit(opening)
    buffer = ctypes.create_string_buffer(2**18)
    reading = struct.pack("BBHiQQIIQ24x", 22, 0, 0, descriptor, 0, ctypes.addressof(buffer), len(buffer), 0, 0)
    count = submit(reading)
    return buffer.raw[:count]


class WatchesFiles(Hostile):
    """has the kernel report who opens which file (inotify, dnotify, fanotify)"""

    def steal(self):
        def watch():
            descriptor = LIBC.inotify_init1(0)
            if (
                descriptor < 0
                or LIBC.inotify_add_watch(descriptor, os.path.dirname(WHERE["labels"][0]).encode(), 0xFFF) < 0
            ):
                raise OSError(ctypes.get_errno(), "inotify")
            return reached("events of the data's folder")

        def watch_old():
            folder = os.open(os.path.dirname(os.__file__), os.O_RDONLY)
            fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
            fcntl.fcntl(folder, fcntl.F_NOTIFY, 0)
            return reached("a signal whenever another trial reads a library")

        def watch_all():
            descriptor = system_call("fanotify_init", 0, os.O_RDONLY)
            mark = 0x1 | 0x10
            system_call("fanotify_mark", descriptor, mark, ctypes.c_uint64(0x20), -100, WHERE["labels"][0].encode())
            return reached("events of every file system")

        return attempts(watch, watch_old, watch_all)


class Remounts(Hostile):
    """makes new namespaces, enters others', mounts and takes off mounts, changes its root"""

    def steal(self):
        def enter(kind):
            system_call("setns", os.open(f"/proc/{os.getppid()}/ns/{kind}", os.O_RDONLY), 0)
            return reached(f"another {kind} namespace")

        def chroot():
            os.mkdir("hole")
            here = os.open(".", os.O_RDONLY)
            os.chroot("hole")
            os.fchdir(here)
            for _ in range(20):
                os.chdir("..")
            os.chroot(".")
            return reached("another root")

        def new_user():
            system_call("unshare", 0x10000000 | 0x00020000)
            return reached("a user namespace of its own")

        def mount():
            os.makedirs("mounted", exist_ok=True)
            system_call("mount", b"none", b"mounted", b"tmpfs", 0, None)
            system_call("umount2", b"mounted", 2)
            return reached("a mount")

        pid = os.fork()  # a success must not affect the rest of the trial
        if pid == 0:
            ended = 1
            try:
                done = [
                    *attempts(lambda: enter("mnt"), lambda: enter("pid_for_children"), mount, new_user, mount, chroot)
                ]
                ended = 0 if done else 1
            finally:
                os._exit(ended)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
            yield reached("namespaces, mounts or another root")


class LeavesFiles(Courier):
    """leaves files in every folder that may be written, for the next seed"""

    def places(self):
        folders = [*WHERE["outside"], os.path.expanduser("~"), tempfile.gettempdir(), os.getcwd(), "/var/tmp", "/run"]
        folders += [os.path.dirname(np.__file__), os.path.dirname(sys.modules["tsadbench"].__file__), sys.prefix]
        return [f"{folder}/{WHERE['tag']}-note" for folder in dict.fromkeys(folders)]

    def leave(self, word):
        return of_each(self.places(), lambda place: Path(place).write_bytes(word))

    def look(self):
        return of_each(self.places(), read_bytes)
