"""Frames on a socket: a JSON header, then the raw bytes of arrays, which are never copied on the way."""

from __future__ import annotations

import json
import math
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Header: TypeAlias = dict[str, Any]
Array: TypeAlias = NDArray[np.float64] | NDArray[np.uint8]
Tick: TypeAlias = Callable[[], None]
# An array's dtype and shape.
ArrayKind: TypeAlias = tuple[str, tuple[int, ...]]
_Buffer = TypeVar("_Buffer", bytearray, memoryview)

_LENGTH = struct.Struct(">Q")
_MAX_HEADER = 16 * 2**20
# What a failure may say.
LONGEST_REASON, LONGEST_TRACEBACK = 10_000, 2**16
_DTYPES = ("float64", "uint8")
_MOST_DIMENSIONS = 2
_MOST_VALUES = 2**48


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


def receive(sock: socket.socket, tick: Tick | None = None) -> tuple[Header, list[Array]]:
    """Receive one frame of a sender that is trusted.

    Parameters
    ----------
    sock
        The socket; with a timeout, ``tick`` is called whenever it expires.
    tick
        Called while nothing arrives; may raise.

    Raises
    ------
    EOFError
        If the other side is gone.
    BrokenFrameError
        If it sent something else.
    """
    header, kinds = receive_header(sock, tick)
    return header, receive_arrays(sock, kinds, tick)


def receive_header(
    sock: socket.socket, tick: Tick | None = None, *, max_bytes: int = _MAX_HEADER
) -> tuple[Header, list[ArrayKind]]:
    """Receive the first part of a frame: its header and the kinds of its arrays; nothing is allocated for them.

    Parameters
    ----------
    sock, tick
        As for `receive`.
    max_bytes
        Largest size of the header.

    Raises
    ------
    EOFError, BrokenFrameError
        As for `receive`.
    """
    (length,) = _LENGTH.unpack(_receive_exactly(sock, bytearray(_LENGTH.size), tick))
    if length > max_bytes:
        raise BrokenFrameError(f"a header of {length} bytes")
    try:
        header: Header = json.loads(_receive_exactly(sock, bytearray(length), tick))
        kinds = [(name, tuple(shape)) for name, shape in header.pop("arrays")]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BrokenFrameError(f"an invalid header ({type(error).__name__}: {error})") from error
    for name, shape in kinds:
        good = len(shape) <= _MOST_DIMENSIONS and all(type(n) is int and 0 <= n <= _MOST_VALUES for n in shape)
        if name not in _DTYPES or not good or math.prod(shape) > _MOST_VALUES:
            raise BrokenFrameError("arrays of a type or shape that is not sent here")
    return header, kinds


def receive_arrays(sock: socket.socket, kinds: Sequence[ArrayKind], tick: Tick | None = None) -> list[Array]:
    """Receive the rest of a frame: its arrays.

    Parameters
    ----------
    sock, tick
        As for `receive`.
    kinds
        What `receive_header` returned.

    Raises
    ------
    EOFError
        As for `receive`.
    BrokenFrameError
        If there is no memory for them.
    """
    arrays: list[Array] = []
    for name, shape in kinds:
        try:
            array = np.empty(shape, dtype=name)
        except MemoryError as error:
            raise BrokenFrameError(f"an array of shape {list(shape)}, for which there is no memory") from error
        if array.size:
            _receive_exactly(sock, array.data.cast("B"), tick)
        arrays.append(array)
    return arrays


def _send_all(sock: socket.socket, data: memoryview, tick: Tick | None) -> None:
    while data:
        if tick is not None:
            tick()
        try:
            data = data[sock.send(data) :]
        except TimeoutError:
            continue


def _receive_exactly(sock: socket.socket, buffer: _Buffer, tick: Tick | None) -> _Buffer:
    view = memoryview(buffer)
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
    return buffer
