"""Frames on a socket: a JSON header, then the raw bytes of arrays, which are never copied on the way."""

from __future__ import annotations

import json
import math
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Header: TypeAlias = dict[str, Any]
Array: TypeAlias = NDArray[np.float64] | NDArray[np.uint8]
Tick: TypeAlias = Callable[[], None]

_LENGTH = struct.Struct(">Q")
_MAX_HEADER = 16 * 2**20
_DTYPES = ("float64", "uint8")


class BrokenFrameError(ConnectionError):
    """The other side sent something that is not a frame."""


def send(
    sock: socket.socket, header: Mapping[str, object], arrays: Sequence[Array] = (), tick: Tick | None = None
) -> None:
    """Send one frame.

    Parameters
    ----------
    sock
        The socket; with a timeout, ``tick`` is called whenever it expires.
    header
        JSON values.
    arrays
        C-contiguous float64 or uint8 arrays, sent without a copy.
    tick
        Called while the other side does not read; may raise.
    """
    described = {**header, "arrays": [[array.dtype.name, list(array.shape)] for array in arrays]}
    text = json.dumps(described).encode()
    _send_all(sock, memoryview(_LENGTH.pack(len(text)) + text), tick)
    for array in arrays:
        if array.size:
            _send_all(sock, array.data.cast("B"), tick)


def receive(
    sock: socket.socket, *, max_bytes: int | None = None, tick: Tick | None = None
) -> tuple[Header, list[Array]]:
    """Receive one frame.

    Parameters
    ----------
    sock
        The socket; with a timeout, ``tick`` is called whenever it expires.
    max_bytes
        Largest total size of the arrays; None: no limit.
    tick
        Called while nothing arrives; may raise.

    Raises
    ------
    EOFError
        If the other side is gone.
    BrokenFrameError
        If it sent something else, or too much.
    """
    (length,) = _LENGTH.unpack(_receive_exactly(sock, _LENGTH.size, tick))
    if length > _MAX_HEADER:
        raise BrokenFrameError(f"a header of {length} bytes")
    try:
        header: Header = json.loads(_receive_exactly(sock, length, tick))
        shapes = [(str(name), tuple(int(n) for n in shape)) for name, shape in header.pop("arrays")]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BrokenFrameError(f"an invalid header ({error})") from error
    return header, _receive_arrays(sock, shapes, max_bytes, tick)


def _receive_arrays(
    sock: socket.socket, shapes: Sequence[tuple[str, tuple[int, ...]]], max_bytes: int | None, tick: Tick | None
) -> list[Array]:
    if any(name not in _DTYPES or min(shape, default=0) < 0 for name, shape in shapes):
        raise BrokenFrameError("arrays of a type or shape that is not sent here")
    sizes = [np.dtype(name).itemsize * math.prod(shape) for name, shape in shapes]
    if max_bytes is not None and sum(sizes) > max_bytes:
        raise BrokenFrameError(f"arrays of {sum(sizes)} bytes, at most {max_bytes} were expected")
    return [
        np.frombuffer(_receive_exactly(sock, size, tick), dtype=name).reshape(shape)
        for size, (name, shape) in zip(sizes, shapes, strict=True)
    ]


def _send_all(sock: socket.socket, data: memoryview, tick: Tick | None) -> None:
    while data:
        if tick is not None:
            tick()
        try:
            data = data[sock.send(data) :]
        except TimeoutError:
            continue


def _receive_exactly(sock: socket.socket, size: int, tick: Tick | None) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        if tick is not None:
            tick()
        try:
            count = sock.recv_into(view)
        except TimeoutError:
            continue
        if count == 0:
            raise EOFError("the other side is gone")
        view = view[count:]
    return data
