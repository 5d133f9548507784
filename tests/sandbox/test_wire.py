from __future__ import annotations

import json
import socket
import struct
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_array_equal

from tsadbench.sandbox.wire import BrokenFrameError, receive, send


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def raw(sock, header: object, payload: bytes = b"") -> None:
    text = json.dumps(header).encode()
    sock.sendall(struct.pack(">Q", len(text)) + text + payload)


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(st.text(), st.integers() | st.text() | st.none(), max_size=4),
    st.lists(arrays(np.float64, array_shapes(max_dims=2, min_side=0)), max_size=3),
)
def test_frames_come_back_as_they_were(header, values):
    header.pop("arrays", None)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=send, args=(ours, header, values))
        sender.start()
        got, results = receive(theirs)
        sender.join()
    assert got == header
    for before, after in zip(values, results, strict=True):
        assert_array_equal(before, after)


def test_a_closed_socket_is_the_end(pair):
    ours, theirs = pair
    ours.close()
    with pytest.raises(EOFError):
        receive(theirs)


@pytest.mark.parametrize(
    "header",
    [
        [],
        {"arrays": [["object", [1]]]},
        {"arrays": [["float64", [-1]]]},
        {"arrays": [["float64", [10**15]]]},
        {"arrays": [["float64", [2**40, 2**40]]]},
        {"arrays": [["float64", [True]]]},
    ],
)
def test_what_is_no_frame_or_too_large_is_refused_before_anything_is_allocated(pair, header):
    ours, theirs = pair
    raw(ours, header)
    with pytest.raises(BrokenFrameError):
        receive(theirs)


@pytest.mark.parametrize("text", [b"[" * 10**5, b"\xff\xfe{}", b""])
def test_what_is_no_json_or_too_deep_is_refused(pair, text):
    ours, theirs = pair
    threading.Thread(target=ours.sendall, args=(struct.pack(">Q", len(text)) + text,)).start()
    with pytest.raises(BrokenFrameError):
        receive(theirs)
