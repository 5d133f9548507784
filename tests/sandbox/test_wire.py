from __future__ import annotations

import socket
import threading

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_array_equal

from tsadbench.sandbox.wire import receive, send


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
