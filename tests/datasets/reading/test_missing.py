"""Gaps are filled with earlier values only, wherever a recording is cut into chunks."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.missing import CarryForward

GAPS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


@given(GAPS, st.lists(st.integers(0, 30), max_size=4))
def test_chunks_give_what_pandas_gives_for_the_whole(gaps, cuts):
    values = np.arange(2.0 * len(gaps)).reshape(-1, 2)
    values[1:][np.array(gaps)[1:]] = math.nan
    expected = pd.DataFrame(values).ffill().to_numpy()
    carry, filled = CarryForward(FileFormat(fill="forward-fill"), 2), values.copy()
    for chunk in np.split(filled, sorted(min(cut, len(values)) for cut in cuts)):
        assert carry.fill(chunk) == []
    np.testing.assert_array_equal(filled, expected)
    assert carry.n_filled == np.isnan(values).sum()


@given(GAPS, st.integers(1, 4), st.integers(0, 30))
def test_a_run_that_is_too_long_is_found_at_its_row(gaps, at_most, cut):
    values = np.arange(2.0 * len(gaps)).reshape(-1, 2)
    values[1:][np.array(gaps)[1:]] = math.nan
    limited = pd.DataFrame(values).ffill(limit=at_most).isna().to_numpy().any(axis=1)
    carry = CarryForward(FileFormat(fill="forward-fill", fill_at_most=at_most), 2)
    found, start = [], 0
    for chunk in np.split(values.copy(), [min(cut, len(values))]):
        found += [start + gap.row for gap in carry.fill(chunk)]
        start += len(chunk)
    assert min(found, default=None) == (int(np.argmax(limited)) if limited.any() else None)


def test_nothing_is_filled_without_an_earlier_value_or_unasked():
    first = CarryForward(FileFormat(fill="forward-fill"), 1).fill(np.array([[math.nan], [1.0]]))
    assert [(gap.row, gap.count) for gap in first] == [(0, 1)]
    unasked = CarryForward(FileFormat(), 1).fill(np.array([[1.0], [math.nan]]))
    assert [gap.row for gap in unasked] == [1]
    assert "a value is missing" in unasked[0].text
