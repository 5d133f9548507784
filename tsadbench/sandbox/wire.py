"""The box's wire protocol: frames on a socket, and the valid answers of a box.

A frame is a JSON header followed by the raw bytes of arrays, without copies. A detector owns its process and can write
anything into the socket, so its frames are validated before any memory is allocated for their arrays.
"""

from __future__ import annotations

import json
import math
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

Header: TypeAlias = dict[str, Any]
Array: TypeAlias = NDArray[np.float64] | NDArray[np.uint8]
Tick: TypeAlias = Callable[[], None]
# An array's dtype and shape.
ArrayKind: TypeAlias = tuple[str, tuple[int, ...]]
_Buffer = TypeVar("_Buffer", bytearray, memoryview)

_LENGTH = struct.Struct(">Q")
_MAX_HEADER = 16 * 2**20
# The largest header of an answer: enough for any text, too small to exhaust memory.
MAX_REPLY_BYTES = 2 * 2**20
LONGEST_REASON, LONGEST_TRACEBACK, LONGEST_NOTE = 10_000, 2**16, 1000
_DTYPES = ("float64", "uint8")
_MOST_DIMENSIONS = 2
_MOST_VALUES = 2**48
# Largest size of all parts of a model file. Memory is only used once bytes arrive.
_MAX_PART_BYTES = 8 * 2**30


class BrokenFrameError(ConnectionError):
    """The other side sent an invalid frame."""


def send(
    sock: socket.socket, header: Mapping[str, object], arrays: Sequence[Array] = (), tick: Tick | None = None
) -> None:
    """Send a frame: JSON values and C-contiguous arrays. ``tick`` is called before each attempt to send."""
    described = {**header, "arrays": [[array.dtype.name, list(array.shape)] for array in arrays]}
    text = json.dumps(described).encode()
    for data in (memoryview(_LENGTH.pack(len(text)) + text), *(one.data.cast("B") for one in arrays if one.size)):
        rest = data
        while rest:
            if tick is not None:
                tick()
            try:
                rest = rest[sock.send(rest) :]
            except TimeoutError:
                continue


def receive(sock: socket.socket) -> tuple[Header, list[Array]]:
    """Receive a frame from a trusted sender; an EOFError if it is gone, a BrokenFrameError if the frame is invalid."""
    header, kinds = receive_header(sock)
    return header, receive_arrays(sock, kinds)


def receive_header(
    sock: socket.socket, tick: Tick | None = None, *, max_bytes: int = _MAX_HEADER
) -> tuple[Header, list[ArrayKind]]:
    """Receive a frame's header and its arrays' dtypes and shapes, without allocating memory for them."""
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
            raise BrokenFrameError("arrays of an unexpected type or shape")
    return header, kinds


def receive_arrays(sock: socket.socket, kinds: Sequence[ArrayKind], tick: Tick | None = None) -> list[Array]:
    """Receive the rest of a frame: its arrays; a BrokenFrameError if there is no memory for them."""
    arrays: list[Array] = []
    for name, shape in kinds:
        try:
            array = np.empty(shape, dtype=name)
        except MemoryError as error:
            raise BrokenFrameError(f"an array of shape {list(shape)} that does not fit into memory") from error
        if array.size:
            _receive_exactly(sock, array.data.cast("B"), tick)
        arrays.append(array)
    return arrays


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


_Count: TypeAlias = Annotated[int, Field(ge=0, le=2**53)]
_Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
_Integer: TypeAlias = Annotated[int, Field(gt=-(2**63), lt=2**63)]
_Reason: TypeAlias = Annotated[str, Field(max_length=LONGEST_REASON)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Progress(_Strict):
    """A progress report; the answer follows later."""

    kind: Literal["progress"]
    done: _Count
    total: _Count
    note: Annotated[str, Field(max_length=LONGEST_NOTE)]


class Failure(_Strict):
    """The detector raised an error or broke its contract. Only the harness reports other failures."""

    kind: Literal["failure"]
    status: Literal["error", "invalid"]
    reason: _Reason
    traceback: Annotated[str, Field(max_length=LONGEST_TRACEBACK)]
    forbidden: bool = False  # it opened something in a forbidden folder


class Done(_Strict):
    """An answer. It repeats the request's secret mark, so it cannot be written before the request.

    The comments name the kinds of requests that use a field.
    """

    kind: Literal["done"]
    request: str
    # construct
    offers_contributions: bool = False
    scores_training_itself: bool = False
    # fit
    training_facts: Annotated[
        dict[Annotated[str, Field(max_length=40)], bool | _Integer | _Finite | None], Field(max_length=32)
    ] = {}
    # held_out_loss
    loss: _Finite = 0.0
    # restore: how far scores reach, as in `Traits`
    look_ahead: _Count = 0
    memory: _Count | None = None
    adaptive: bool = False
    leaky: Annotated[str, Field(max_length=300)] = ""
    # fork
    pid: Annotated[int, Field(ge=0, lt=2**31)] = 0
    # learned: the names of the parts of a model file, which follow as arrays of bytes
    parts: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=10_000)] = []
    # question: its answer as JSON
    answer: str = ""
    # learned, question: name and text of an error raised on purpose
    refused: Annotated[str, Field(max_length=100)] | None = None
    text: _Reason = ""


_REPLY: TypeAdapter[Done | Progress | Failure]
_REPLY = TypeAdapter(Annotated[Done | Progress | Failure, Field(discriminator="kind")])


def read_reply(
    mark: str, shapes: Sequence[tuple[int, ...]] | None, header: Header, arrays: Sequence[ArrayKind]
) -> Done | Progress | Failure:
    """Validate a frame's header before its arrays are received; a BrokenFrameError if it is not valid.

    Valid are the answer to the request with this ``mark``, progress, and failures. The answer must be followed by
    float64 arrays of these ``shapes``, or, if ``shapes`` is None, by one array of bytes for each of its ``parts``.
    """
    try:
        reply = _REPLY.validate_python(header)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise BrokenFrameError(f"{'.'.join(map(str, first['loc']))}: {first['msg']:.200}") from error
    if isinstance(reply, Done) and reply.request != mark:
        raise BrokenFrameError("an unrequested answer")
    if isinstance(reply, Done) and shapes is None:
        n_bytes = sum(sum(shape) for _, shape in arrays)
        bytes_alone = all(name == "uint8" and len(shape) == 1 for name, shape in arrays)
        if not bytes_alone or not len(set(reply.parts)) == len(reply.parts) == len(arrays) or n_bytes > _MAX_PART_BYTES:
            raise BrokenFrameError(f"{len(reply.parts)} parts of a model in {len(arrays)} arrays")
    else:
        wanted = [("float64", tuple(shape)) for shape in shapes or ()] if isinstance(reply, Done) else []
        if list(arrays) != wanted:
            raise BrokenFrameError(f"arrays {list(arrays[:3])} where {wanted[:3]} were expected")
    return reply
