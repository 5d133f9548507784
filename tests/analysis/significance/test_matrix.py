"""Units x detectors."""

from __future__ import annotations

import numpy as np
import pytest

from tsadbench import UsageError
from tsadbench.analysis.significance.matrix import Matrix


def test_undefined_values_are_known():
    matrix = Matrix(("a", "b"), ("x", "y"), np.array([[0.1, np.nan], [0.3, 0.4]]))
    assert matrix.defined.tolist() == [False, True]
    assert matrix.to_json() == {"a": {"x": 0.1, "y": None}, "b": {"x": 0.3, "y": 0.4}}


def test_what_is_no_matrix():
    with pytest.raises(UsageError, match="different names"):
        Matrix(("a", "a"), ("x",), np.zeros((2, 1)))
    with pytest.raises(UsageError, match=r"expected shape \[2, 1\], found \[1, 2\]"):
        Matrix(("a", "b"), ("x",), np.zeros((1, 2)))
