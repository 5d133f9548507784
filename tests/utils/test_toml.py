from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from tsadbench.utils.toml import toml_value

SCALARS = st.text() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans()


@given(SCALARS | st.lists(SCALARS, max_size=30))
def test_what_is_written_is_read_back(value):
    found = tomllib.loads(f"key = {toml_value(value)}")["key"]
    assert (found, type(found)) == (value, type(value))
