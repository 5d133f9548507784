"""Shared rows against dictionaries of rows, with and without time."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsadbench.base import Recording, shared_rows

few_rows = st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 1), st.integers(0, 1)), min_size=1, max_size=15)


def recording(name: str, rows, *, timed: bool = True) -> Recording:
    table = np.array(rows, dtype=np.float64)
    return Recording(name, table[:, 1:], ("flow", "heat"), table[:, 0] if timed else None)


@pytest.mark.parametrize("timed", [(True, True, True), (True, False, True), (False, False, False)])
@pytest.mark.parametrize("untimed", ["distinct", "by value"])
@settings(deadline=None, max_examples=50)
@given(tables=st.tuples(few_rows, few_rows, few_rows))
def test_equal_numbers_are_equal_rows_of_two_recordings(tables, untimed, timed):
    numbers = shared_rows(
        [recording(name, rows, timed=has) for name, rows, has in zip("abc", tables, timed, strict=True)],
        untimed=untimed,
    )
    by_value = untimed == "by value" and not all(timed)
    owners = defaultdict(set)
    keys = []
    for owner, (rows, has) in enumerate(zip(tables, timed, strict=True)):
        # Each row that equals no other gets a unique key.
        plain = [row[1:] if by_value else row if has else (owner, place, "alone") for place, row in enumerate(rows)]
        keys.append(plain)
        for key in plain:
            owners[key].add(owner)
    number_of = {}
    for found, plain in zip(numbers, keys, strict=True):
        for number, key in zip(found.tolist(), plain, strict=True):
            assert (number >= 0) == (len(owners[key]) > 1)
            if number >= 0:
                assert number_of.setdefault(key, number) == number
    assert len(set(number_of.values())) == len(number_of)
