"""A box whose inside is played by a function of the test, which may write anything into the channel."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import socket
import stat
import struct
import threading
from collections.abc import Callable

import numpy as np

from tests.helpers.boxed import Sums
from tsadbench import Recording
from tsadbench.sandbox import Box, Construction, Limits, SealStatus
from tsadbench.sandbox.seal.walls import Walls
from tsadbench.sandbox.server import Process, Server
from tsadbench.sandbox.wire import Header, receive, send

Answer = Callable[[socket.socket, Header, list], None]


class PlayedServer(Server):
    """The inside is a thread that passes every request to a function, and hangs up after the last."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._answer = answer

    def start(self, log: int, walls: Walls, threads: int = 1) -> Process:
        ours, theirs = socket.socketpair()
        threading.Thread(target=self._serve, args=(theirs,), daemon=True).start()
        return _Played(os.getpid(), ours, SealStatus("guarded", "it is no process"), "/nonexistent", self)

    def end(self, process: Process) -> int:
        return 0

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError, EOFError):
            while True:
                self._answer(sock, *receive(sock))


class _Played(Process):
    """There is no process that could be killed."""

    def kill(self) -> None:
        pass


def raw_frame(header: object, payload: bytes = b"") -> bytes:
    """Return a frame; a header given as bytes is sent as it is, even if it is not JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack(">Q", len(text)) + text + payload


def honest(sock: socket.socket, header: Header, arrays: list) -> None:
    """Answer as the inside of a box does, for a detector that scores every row with zero."""
    done = {"kind": "done", "request": header["request"]}
    rows = [one.values for one in pickle.loads(arrays[0], buffers=arrays[1:]) if isinstance(one, Recording)]
    replies = {
        "construct": ({"offers_contributions": True, "scores_training_itself": False}, []),
        "set_parameters": ({}, []),
        "fit": ({"training_facts": {"epochs": 3, "share_seen": 0.5, "levelled": True}}, []),
        "training_scores": ({}, [np.zeros(6)]),
        "score": ({}, [np.zeros(len(one)) for one in rows]),
        "contributions": ({}, [np.zeros(one.shape) for one in rows]),
        "held_out_loss": ({"loss": 0.5}, []),
        "learned": ({"parts": ["a", "b"]}, [np.zeros(3, dtype=np.uint8), np.ones(0, dtype=np.uint8)]),
    }
    reply, results = replies[header["kind"]]
    send(sock, {**done, **reply}, results)


def played(answer: Answer, *, timeout: float = 30.0, listener=None) -> Box:
    """Return a box with this inside."""
    construction = Construction.of(Sums, {})
    return Box(construction, threads=1, limits=Limits(timeout=timeout), listener=listener, server=PlayedServer(answer))


class WritesFrames(Sums):
    """Writes a frame into every socket that it finds."""

    def _fit(self, recordings):
        for fd in range(3, 64):
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(os.fstat(fd).st_mode):
                    os.write(fd, raw_frame(b""))
