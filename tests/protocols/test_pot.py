"""Peaks-over-Threshold against scipy's generalised Pareto distribution; one test for each degenerate case."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import genpareto

from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench_protocols import pot


def pareto(gamma: float, n: int, seed: int = 0) -> FloatArray:
    return np.asarray(genpareto.rvs(gamma, size=n, random_state=seed), dtype=np.float64)


def scipy_fit(excesses: FloatArray) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its search leaves the distribution's support on the way
        gamma, _, sigma = genpareto.fit(excesses / excesses.mean(), floc=0)
    return float(gamma), float(sigma * excesses.mean())


def no_fit(threshold: object) -> bool:
    fields = ("gamma", "sigma", "log_likelihood", "endpoint")
    return all(getattr(threshold, field) is None for field in fields)


@pytest.mark.parametrize("gamma", [-0.3, 0.2, 0.4])
def test_threshold_is_scipys_tail_quantile(gamma: float) -> None:
    scores = pareto(gamma, 20_000, seed=1)
    found = pot.fit(scores, level=0.98, q=1e-4)
    t = float(np.quantile(scores, 0.98))
    excesses = scores[scores > t] - t
    expected_gamma, expected_sigma = scipy_fit(excesses)
    ratio = 1e-4 * len(scores) / len(excesses)
    assert found.value == pytest.approx(t + genpareto.isf(ratio, expected_gamma, scale=expected_sigma), rel=1e-3)
    assert (found.method, found.status, found.t, found.level, found.q) == ("pot", "ok", t, 0.98, 1e-4)
    assert (found.n, found.excesses) == (20_000, len(excesses)) == (20_000, 400)


def test_about_the_share_q_of_new_normal_scores_is_flagged() -> None:
    rng = np.random.default_rng(0)
    threshold = pot.fit(rng.gamma(2.0, size=50_000), q=1e-3)
    flagged = np.mean(rng.gamma(2.0, size=1_000_000) > threshold.value)
    assert 0.7e-3 < flagged < 1.4e-3


@pytest.mark.parametrize("scores", [np.full(1000, 0.3), np.concatenate([np.zeros(800), np.ones(200)]), np.array([2.5])])
def test_no_score_above_the_initial_threshold_gives_the_largest_score_and_no_fit(scores: FloatArray) -> None:
    found = pot.fit(scores)
    assert (found.value, found.status, found.t, found.excesses) == (scores.max(), "degenerate", scores.max(), 0)
    assert no_fit(found)


@pytest.mark.parametrize(
    ("scores", "gamma"), [(np.linspace(0, 1, 5000), -0.5), (pareto(2.0, 5000), 1.0)], ids=["uniform", "very heavy"]
)
def test_a_tail_beyond_the_bounds_is_clamped(scores: FloatArray, gamma: float) -> None:
    found = pot.fit(scores)
    assert (found.status, found.gamma) == ("clamped", gamma)
    assert found.t < found.value < (found.endpoint or math.inf)


@pytest.mark.parametrize(
    ("n", "level", "excesses"),
    [
        (1600, 0.98, 32),
        (1500, 0.98, 30),
        (1450, 0.97, 44),
        (1000, 0.97, 30),
        (500, 0.94, 30),
        (310, 0.9, 31),
        (200, 0.9, 20),
    ],
)
def test_level_falls_until_thirty_excesses_and_no_further_than_ninety_hundredths(
    n: int, level: float, excesses: int
) -> None:
    found = pot.fit(-np.log(np.arange(1, n + 1) / (n + 1)))
    assert (found.level, found.excesses, found.status) == (level, excesses, "ok")
    assert pot.fit(np.arange(50.0), level=0.8, q=0.01).level == 0.8  # a lower requested level is kept


def test_fewer_than_ten_excesses_give_the_empirical_quantile() -> None:
    scores = np.random.default_rng(0).exponential(size=60)
    found = pot.fit(scores, q=0.01)
    assert (found.value, found.status, found.excesses) == (np.quantile(scores, 0.99), "quantile", 6)
    assert no_fit(found)


@pytest.mark.parametrize(("distinct", "status"), [(9, "quantile"), (10, "ok")])
def test_ten_distinct_excesses_are_needed_however_many_there_are(distinct: int, status: str) -> None:
    above = 1.5 ** np.arange(distinct)  # 50 of each lie above t = 0
    scores = np.concatenate([np.zeros(98 * distinct * 50), np.repeat(above, 50)])
    found = pot.fit(scores, level=0.95, q=1e-3)
    assert (found.status, found.t, found.excesses) == (status, 0.0, 50 * distinct)
    if status == "quantile":
        assert found.value == np.quantile(scores, 0.999) == above[-1]


def test_a_bounded_tail_reports_its_end_point_and_some_training_scores_may_lie_above() -> None:
    scores = 1 - ((np.arange(20_000) + 0.5) / 20_000) ** (1 / 3)  # its tail has gamma = -1/3 and ends at 1
    found = pot.fit(scores, q=1e-3)
    assert found.gamma == pytest.approx(-1 / 3, abs=0.03)
    assert found.endpoint == pytest.approx(1.0, abs=0.02)
    assert found.endpoint == pytest.approx(found.t - found.sigma / found.gamma)
    assert found.t < found.value < scores.max() < found.endpoint


@pytest.mark.parametrize("data", [[0.3] * 49 + [0.31], [0.1] * 40 + [0.2] * 10])
def test_the_unbounded_likelihood_below_minus_one_is_not_entered(data: list[float]) -> None:
    assert pot.fit_excesses(np.array(data))[0] == -0.5


# 1 - .58 and 1 - .98 are not exact in binary.
@pytest.mark.parametrize(
    ("level", "q", "named"),
    [
        *((0.98, q, "q") for q in (0.02, 0.5, 0.0, math.nan)),
        *((level, (100 - round(100 * level)) / 100, "q") for level in (0.01, 0.58, 0.98)),
        *((level, 1e-3, "level") for level in (0.0, 1.0, math.nan)),
    ],
)
def test_options_out_of_range_are_named(level: float, q: float, named: str) -> None:
    with pytest.raises(UsageError, match=f"^{named} "):
        pot.fit(np.arange(1000.0), level=level, q=q)
    pot.check_options(0.58, 0.41999)


def test_ties_that_leave_no_more_than_the_risk_above_give_the_initial_threshold() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([np.zeros(99_950), rng.exponential(size=50)])  # 50 of 100,000 above: half of q
    found = pot.fit(scores, q=1e-3)
    assert (found.value, found.t, found.status, found.excesses) == (0.0, 0.0, "quantile", 50)
    assert found.value == np.quantile(scores, 0.999)
    assert no_fit(found)


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_scores_that_are_not_finite_are_an_error(bad: float) -> None:
    with pytest.raises(DataError, match="1 of 101"):
        pot.fit(np.append(np.arange(100.0), bad))


def test_a_spread_beyond_float64_is_an_error() -> None:
    with pytest.raises(DataError, match="spread"):
        pot.fit(np.array([-1.7e308, 0.0, 1.7e308]))


@pytest.mark.parametrize("factor", [1e-300, 1e290])
def test_tiny_and_huge_scores_give_the_same_shape(factor: float) -> None:
    scores = pareto(0.2, 3000, seed=5)
    found, scaled = pot.fit(scores), pot.fit(factor * scores)
    assert scaled.gamma == pytest.approx(found.gamma, abs=1e-6)
    assert scaled.value == pytest.approx(factor * found.value, rel=1e-6)


with_ties = arrays(np.float64, st.integers(1, 300), elements=st.integers(-60, 60).map(float))
spread = arrays(np.float64, st.integers(1, 300), elements=st.floats(-1e9, 1e9, allow_subnormal=False))
tails = st.builds(pareto, st.floats(-0.8, 1.5), st.integers(100, 3000), st.integers(0, 99))
risks = st.floats(1e-7, 0.0199)
unhurried = settings(deadline=None, max_examples=40)


@unhurried
@given(st.one_of(with_ties, spread, tails), risks, risks)
def test_a_smaller_risk_never_gives_a_lower_threshold(scores: FloatArray, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert pot.fit(scores, q=low).value >= pot.fit(scores, q=high).value


@unhurried
@given(st.one_of(with_ties, spread, tails), risks)
def test_the_threshold_is_never_below_the_initial_one(scores: FloatArray, q: float) -> None:
    found = pot.fit(scores, q=q)
    assert found.value >= found.t
    assert math.isfinite(found.value)
    if found.gamma is not None:
        assert -0.5 <= found.gamma <= 1
        assert found.sigma > 0
        assert found.endpoint is None or found.value <= found.endpoint


@unhurried
@given(st.one_of(with_ties, spread, tails), st.integers(0, 99))
def test_the_order_of_the_scores_does_not_matter(scores: FloatArray, seed: int) -> None:
    assert pot.fit(np.random.default_rng(seed).permutation(scores)) == pot.fit(scores)


@unhurried
@given(st.one_of(with_ties, tails), st.sampled_from([2.0**-20, 0.5, 3.0, 1e-6, 1e6]), st.integers(-1000, 1000))
def test_the_threshold_follows_scale_and_origin(scores: FloatArray, scale: float, origin: int) -> None:
    found, moved = pot.fit(scores), pot.fit(scale * (scores + origin))
    assert (moved.status, moved.level, moved.excesses) == (found.status, found.level, found.excesses)
    extent = scale * (np.ptp(scores) + abs(found.value) + abs(origin))
    assert moved.value == pytest.approx(scale * (found.value + origin), abs=1e-5 * extent)


@unhurried
@given(
    arrays(np.float64, st.integers(10, 80), elements=st.floats(-10, 10), unique=True).map(np.exp),
    st.floats(-0.5, 1).map(lambda gamma: round(gamma, 9)),  # scipy's own formula overflows at 1e-313
    st.floats(-3, 3).map(math.exp),
)
def test_no_distribution_within_the_bounds_is_likelier(excesses: FloatArray, gamma: float, factor: float) -> None:
    found, sigma, highest = pot.fit_excesses(excesses)
    own = genpareto.logpdf(excesses, found, scale=sigma).sum()
    other = genpareto.logpdf(excesses, gamma, scale=sigma * factor).sum()
    assert highest == pytest.approx(own, rel=1e-9, abs=1e-9)
    assert highest >= other - 1e-6 * abs(other)
