"""Forged frames: what the box may say to the harness, said by the detector."""

from __future__ import annotations

import gc
import json
import os
import socket
import stat
import struct
import time

from tests.hostile.preamble import Hostile, of_each


def channels() -> list[socket.socket]:
    """Return every socket of this process, found by its objects and by its descriptors."""
    found = {one.fileno(): one for one in gc.get_objects() if isinstance(one, socket.socket) and one.fileno() >= 0}
    for descriptor in range(3, 64):
        try:
            if descriptor not in found and stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                found[descriptor] = socket.socket(fileno=os.dup(descriptor))
        except OSError:
            continue
    return list(found.values())


def say(header: object, body: bytes = b"") -> None:
    """Send one frame."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    for channel in channels():
        channel.sendall(struct.pack(">Q", len(text)) + text + body)


class SaysScoresAhead(Hostile):
    """sends scores ahead of time, for requests that nobody has made yet"""

    ends = ("error", "invalid")

    def _score(self, recording):
        shape = [recording.n_rows]
        say({"kind": "done", "request": "0" * 16, "arrays": [["float64", shape]]}, struct.pack("d", 7.0) * shape[0])
        return super()._score(recording)


class SaysOk(Hostile):
    """sends a failure with the status ok, whose texts are markup and escape codes"""

    ends = ("error", "invalid")

    def steal(self):
        say({"kind": "failure", "status": "ok", "reason": "\x1b[2J<b>", "traceback": "", "arrays": []})
        return ()


class SaysMuch(Hostile):
    """announces a header of 2^63 bytes"""

    ends = ("error", "invalid")

    def steal(self):
        for channel in channels():
            channel.sendall(struct.pack(">Q", 2**63))
        return ()


class SaysProgressWithoutEnd(Hostile):
    """reports progress 20,000 times, with notes that are escape codes"""

    ends = ("ok", "error", "invalid")

    def steal(self):
        for number in range(20_000):
            say({"kind": "progress", "done": number, "total": 20_000, "note": "\x1b[2J", "arrays": []})
        return ()


class HangsUp(Hostile):
    """closes the channel and goes on"""

    ends = ("error", "killed", "invalid")

    def steal(self):
        for channel in channels():
            channel.shutdown(socket.SHUT_RDWR)
        for _ in of_each(range(3, 64), os.close):
            pass
        time.sleep(1)
        return ()


class SendsDescriptors(Hostile):
    """sends file descriptors to the harness over the channel"""

    ends = ("error", "invalid", "ok")

    def steal(self):
        return of_each(channels(), lambda channel: socket.send_fds(channel, [b"\0"], [0, 1, 2] * 80) and ())
