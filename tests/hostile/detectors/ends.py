"""Ends: every way in which a process can end, and errors that are traps for whoever prints them."""

from __future__ import annotations

import ctypes
import os

from tests.hostile.preamble import Hostile


class LeavesAtOnce(Hostile):
    """ends its process as if all were well"""

    ends = ("error",)

    def steal(self):
        os._exit(0)


class BreaksDown(Hostile):
    """writes to address 0"""

    ends = ("killed",)

    def steal(self):
        ctypes.memset(0, 0, 1)


class _Trap(Exception):  # noqa: N818 - named for what it is
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class RaisesATrap(Hostile):
    """raises an error that raises another when it is printed"""

    ends = ("error",)

    def steal(self):
        raise _Trap


class RaisesAFlood(Hostile):
    """raises an error whose text has a quarter of a gigabyte"""

    ends = ("error", "memory", "killed")

    def steal(self):
        raise ValueError("\x1b[2J" * 2**26)


class RaisesControlCharacters(Hostile):
    """raises an error that would clear a terminal, rename its window and turn its text round"""

    ends = ("error",)

    def steal(self):
        raise ValueError("\x1b[2J\x1b]0;owned\x07\x9b31m\u202eevil\u2066\ud800\n=1+1\r<script>alert(1)</script>")
