from __future__ import annotations

import math
import tomllib

from hypothesis import given
from hypothesis import strategies as st

from tsadbench.tuning.tuned_file import _toml_lines

SCALARS = st.text() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans()


@given(st.dictionaries(st.text(min_size=1), SCALARS | st.lists(SCALARS, max_size=30)))
def test_what_is_written_is_read_back(table):
    found = tomllib.loads("\n".join(_toml_lines(table)))
    assert found == table
    assert {key: type(value) for key, value in found.items()} == {key: type(value) for key, value in table.items()}


def test_nan_and_none():
    (line,) = _toml_lines({"a": None, "b": math.nan})
    assert math.isnan(tomllib.loads(line)["b"])
