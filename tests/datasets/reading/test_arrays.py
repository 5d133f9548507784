"""MATLAB, R and pickled arrays: what is read, and what is refused in one message."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tsadbench.datasets.reading.pickled import read_pickle

VALUES = np.random.default_rng(0).normal(size=(5, 3))


def frame(table):
    """All of a table's rows, by column number."""
    return pd.concat(list(table.chunks(range(len(table.header)))))


def matlab(**variables):
    file = io.BytesIO()
    scipy.io.savemat(file, variables, do_compression=True)
    return file.getvalue()


class TestPickle:
    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("dtype", ["f4", ">f8", "i2", "?", "u8"])
    def test_reads_what_numpy_reads(self, protocol, order, dtype):
        values = np.array(np.arange(12).reshape(4, 3) % 7, dtype=dtype, order=order)
        content = pickle.dumps(values, protocol=protocol)
        for old, new in ((content, content), (b"numpy._core", b"numpy.core")):
            # From protocol 4 on, the length of a name stands before it.
            changed = content.replace(old, new) if protocol < 4 else content
            table = read_pickle(changed)[""]
            assert table.header == ("", "", "")
            assert np.array_equal(frame(table).to_numpy(), values)

    @settings(deadline=None, max_examples=50)
    @given(
        arrays_of.arrays(np.float64, arrays_of.array_shapes(min_dims=1, max_dims=2)), st.integers(0, 5), st.booleans()
    )
    def test_reads_any_matrix(self, values, protocol, transposed):
        values = values.T if transposed else values
        table = read_pickle(pickle.dumps(values, protocol=protocol))[""]
        expected = values.reshape(len(values), -1)
        assert np.array_equal(frame(table).to_numpy(), expected, equal_nan=True)
        assert table.n_rows == len(values)
        assert table.line(0) is None
