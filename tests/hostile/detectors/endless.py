"""Endless work: what never comes back ends when its time is up."""

from __future__ import annotations

import gc
import os
import signal
import socket
import struct
import time

from tests.hostile.preamble import Hostile


class NeverScores(Hostile):
    """never comes back from scoring, deaf to every signal"""

    ends = ("timeout",)

    def steal_while_scoring(self):
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True:
            try:
                time.sleep(1)
            except BaseException:
                continue


class HaltsItself(Hostile):
    """halts itself by SIGSTOP"""

    ends = ("timeout", "killed", "ok")

    def steal(self):
        os.kill(os.getpid(), 19)
        return ()


class _Endless(Exception):  # noqa: N818 - named for what it is
    def __str__(self):
        while True:
            pass


class RaisesWithoutEnd(Hostile):
    """raises an error whose text never comes to an end"""

    ends = ("timeout", "error")

    def steal(self):
        raise _Endless


class SaysHalf(Hostile):
    """sends half a frame and waits"""

    ends = ("timeout", "error", "invalid")

    def steal(self):
        for channel in [one for one in gc.get_objects() if isinstance(one, socket.socket)]:
            channel.sendall(struct.pack(">Q", 100) + b'{"kind"')
        time.sleep(60)
        return ()
