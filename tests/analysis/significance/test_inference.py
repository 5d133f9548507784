"""What a matrix tells, and when it tells nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsadbench import UsageError
from tsadbench.analysis.significance import infer
from tsadbench.analysis.significance.inference import p_value


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
    assert "b is better than a (p = .047)." in found.conclusions
    assert "c is better than a (p = .047), b (p = .047)." in found.conclusions


def test_where_lower_is_better_the_lower_one_is():
    seven = matrix(7, 0.3)
    found = infer(seven, better="lower")
    assert "a is better than b (p = .016)." in found.conclusions
    assert (found.pairs[0].wins, found.pairs[0].losses) == (7, 0)
    assert found.mean_ranks == {"a": 1.0, "b": 2.0}


def test_no_difference_is_no_equality():
    noise = np.random.default_rng(5).uniform(size=(12, 2))
    given = pd.DataFrame(noise, columns=["a", "b"])
    found = infer(given)
    assert found.conclusive
    assert found.conclusions[-1].startswith("Not significant at .05: 1 of 1 differences. That shows no equality")
    same = pd.DataFrame({"a": noise[:, 0], "b": noise[:, 0]})
    assert "12 sessions, 0 of which differ, can give no p-value below 1.00" in infer(same).conclusions[0]


@settings(deadline=None, max_examples=8)
@given(st.permutations(range(9)))
@pytest.mark.slow
def test_the_order_of_the_recordings_changes_nothing(order):
    given = matrix(9, 0.1, 0.0)
    turned = given.iloc[order]
    one, other = infer(given), infer(turned)
    assert one.conclusions == other.conclusions
    assert [pair.p_holm for pair in one.pairs] == [pair.p_holm for pair in other.pairs]
    assert [pair.interval for pair in one.pairs] == [pair.interval for pair in other.pairs]


def test_what_cannot_be_compared():
    two = matrix(3, 0.1)
    with pytest.raises(UsageError, match="found 1 detectors on 3 sessions"):
        infer(two[["a"]])
    with pytest.raises(UsageError, match="1 of them with an undefined value"):
        infer(two.where(two != two.iloc[0, 0]))
    with pytest.raises(UsageError, match="on 0 sessions"):
        infer(two.iloc[:0])


@pytest.mark.parametrize(
    ("p", "text"), [(1.0, "1.00"), (0.5, ".50"), (0.046875, ".047"), (0.00012, ".00012"), (1.862e-9, "1.9e-09")]
)
def test_p_values_have_two_digits(p, text):
    assert p_value(p) == text


def test_below_six_units_several_are_not_tested_either():
    few = infer(matrix(5, 0.2, 0.4))
    assert few.friedman is None
    assert few.smallest_p == 1.0
    assert [pair.p_holm for pair in few.pairs] == [None] * 3
    assert infer(matrix(6, 0.2, 0.4)).friedman is not None


def test_it_says_how_many_sessions_a_difference_would_take():
    four = infer(matrix(4, 0.3))
    count = four.pairs[0].sessions_needed
    assert four.conclusions[1].startswith(f"A difference of .05 would take about {count} sessions to show (two-sided")
    several = infer(matrix(4, 0.3, -0.2))
    needed = [one.sessions_needed for one in several.pairs]
    assert f"about {min(needed)} to {max(needed)} sessions" in several.conclusions[1] or len(set(needed)) == 1
    assert len(infer(matrix(1, 0.3)).conclusions) == 1
