from __future__ import annotations

import socket
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_array_equal

from tests.helpers.forged import raw_frame
from tsadbench.sandbox.wire import BrokenFrameError, receive, send


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


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
        b"[" * 10**5,
        b"\xff\xfe{}",
        b"",
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
    threading.Thread(target=ours.sendall, args=(raw_frame(header),)).start()
    with pytest.raises(BrokenFrameError):
        receive(theirs)
