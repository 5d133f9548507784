"""Friedman's test with Iman and Davenport's F."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tsadbench.analysis.significance.inference import friedman, infer

# Ranks (1 is the best): 1 2 3, 1 2 3, 1 3 2, 2 1 3.
BY_HAND = [[0.9, 0.8, 0.7], [0.5, 0.4, 0.3], [0.9, 0.1, 0.2], [0.5, 0.6, 0.1]]


def matrix(values) -> pd.DataFrame:
    values = np.array(values, dtype=float)
    n, k = values.shape
    return pd.DataFrame(values, [f"r{i}" for i in range(n)], list("abcdefgh"[:k]))


def test_by_hand():
    # Rank sums 5, 8, 11: chi-squared = 12 / (4 * 3 * 4) * (25 + 64 + 121) - 3 * 4 * 4 = 4.5, F = 3 * 4.5 / (8 - 4.5).
    found = friedman(matrix(BY_HAND))
    assert found["chi_squared"] == pytest.approx(4.5)
    assert found["f"] == pytest.approx(13.5 / 3.5)
    assert (found["df1"], found["df2"]) == (2, 6)
    assert found["p"] == pytest.approx((1 + 2 * found["f"] / 6) ** -3)  # F(2, 6) has this closed form
    assert infer(matrix(BY_HAND)).mean_ranks.to_dict() == pytest.approx({"a": 1.25, "b": 2.0, "c": 2.75})


def test_chi_squared_is_scipys_with_ties():
    values = np.random.default_rng(0).integers(0, 4, size=(9, 4)) / 4
    found = friedman(matrix(values))
    expected = stats.friedmanchisquare(*values.T)
    assert found["chi_squared"] == pytest.approx(expected.statistic)
    assert found["p"] < expected.pvalue or found["p"] > 0.5  # chi-squared is the more cautious where it matters


def test_full_agreement_has_no_finite_f():
    found = friedman(matrix([[0.3, 0.2, 0.1]] * 5))
    assert found["f"] == np.inf
    assert found["chi_squared"] == pytest.approx(10.0)
    assert found["p"] == pytest.approx(np.exp(-5.0))  # chi-squared with two degrees of freedom
