"""What a matrix tells, and when it tells nothing."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from tsadbench.analysis.significance.inference import infer


def matrix(n: int, *gaps: float, seed: int = 0) -> pd.DataFrame:
    """A base detector, and one for each gap that is better than it by about so much."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.3, 0.5, size=n)
    columns = [base, *(base + gap + rng.uniform(0.0, 0.02, size=n) for gap in gaps)]
    return pd.DataFrame(np.stack(columns, axis=1), [f"r{i}" for i in range(n)], list("abcdefgh"[: len(columns)]))


@pytest.mark.parametrize(("n", "conclusive"), [(1, False), (5, False), (6, True)])
def test_six_units_are_the_fewest_that_two_detectors_can_differ_on(n, conclusive):
    few = matrix(n, 0.3)
    found = infer(few)
    assert (found.tested, found.conclusive) == (conclusive, conclusive)
    assert found.conclusions[0].startswith("Described, not tested") is not conclusive
    assert any("significant" in sentence for sentence in found.conclusions) is False
    assert any("is better than" in sentence for sentence in found.conclusions) is conclusive


@pytest.mark.slow
def test_holm_asks_for_more_units():
    # Three pairs: 3 * 2 / 2^6 = .094, 3 * 2 / 2^7 = .047.
    six, seven = (matrix(n, 0.2, 0.4) for n in (6, 7))
    assert infer(six).smallest_p == pytest.approx(3 / 32)
    assert not infer(six).conclusive
    found = infer(seven)
    assert found.conclusive
    beaten = {line[:2]: re.findall(r"(\w) \(p = (\.\d+)\)", line) for line in found.conclusions if "better" in line}
    assert (beaten["b "], beaten["c "]) == ([("a", ".047")], [("a", ".047"), ("b", ".047")])


def test_where_lower_is_better_the_lower_one_is():
    seven = matrix(7, 0.3)
    found = infer(seven, better="lower")
    assert any(re.match(r"a .*better.* b \(p = \.016\)", line) for line in found.conclusions)
    assert found.pairs[["wins", "losses"]].to_numpy().tolist() == [[7, 0]]
    assert found.mean_ranks.to_dict() == {"a": 1.0, "b": 2.0}
