"""Tail probabilities of statistics, against the distributions that samples come from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tsadbench.base import FloatArray
from tsadbench_detectors.multiview.tails import Tails


def _column(values: FloatArray | list[float]) -> FloatArray:
    return np.asarray(values, dtype=np.float64)[:, None]


def _sample(shape: float, n: int = 10_000, scale: float = 1.0) -> FloatArray:
    """Return the quantiles of a generalised Pareto distribution, as evenly spaced in probability as n values are."""
    return np.asarray(stats.genpareto.ppf((np.arange(n) + 0.5) / n, shape, scale=scale))


@pytest.mark.parametrize("scale", [1.0, 1e-6, 250.0])
@pytest.mark.parametrize("shape", [0.0, 0.2, 0.5])
def test_evidence_is_minus_the_logarithm_of_the_tail_probability(shape: float, scale: float) -> None:
    tails = Tails.of(_column(_sample(shape, scale=scale)))
    # From the middle of the sample to a hundred times beyond it.
    probabilities = np.logspace(np.log10(0.9), -6, 40)
    at = stats.genpareto.isf(probabilities, shape, scale=scale)
    expected = -stats.genpareto.logsf(at, shape, scale=scale)
    found = tails.evidence_of(_column(at))[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.01)
    np.testing.assert_allclose(found[probabilities > 0.03], expected[probabilities > 0.03], rtol=0.005, atol=2e-3)
    assert tails.shape[0] == pytest.approx(shape, abs=0.05)


def test_of_random_samples_the_tail_is_right_on_average() -> None:
    rng = np.random.default_rng(0)
    sample = stats.genpareto.rvs(0.3, size=(10_000, 40), random_state=rng)
    tails = Tails.of(sample)
    assert tails.shape.mean() == pytest.approx(0.3, abs=0.05)
    at = np.full((1, 40), stats.genpareto.isf(1e-3, 0.3))
    assert tails.evidence_of(at).mean() == pytest.approx(-np.log(1e-3), rel=0.02)


def test_the_share_is_that_of_the_values_above_the_initial_threshold() -> None:
    n = 10_000
    assert Tails.of(_column(_sample(0.2, n))).share[0] == 200 / (n + 1)
    # 2 % of 400 values are 8: the threshold falls until it has 30 of them above it.
    assert Tails.of(_column(_sample(0.2, 400))).share[0] == 32 / 401
    # And no further than to the .90 quantile.
    assert Tails.of(_column(_sample(0.2, 100))).share[0] == 10 / 101


def test_each_statistic_has_a_tail_of_its_own() -> None:
    samples = np.column_stack([_sample(0.0), 100 * _sample(0.4), np.zeros(10_000)])
    values = np.array([[1.0, 30.0, 0.0], [9.0, 8_000.0, 5.0]])
    together = Tails.of(samples).evidence_of(values)
    for column in range(3):
        alone = Tails.of(samples[:, column : column + 1]).evidence_of(values[:, column : column + 1])
        np.testing.assert_array_equal(together[:, column], alone[:, 0])


def test_order_of_the_rows_does_not_matter() -> None:
    sample = _sample(0.2, 2_000)
    values = _column(np.linspace(0, 100, 300))
    shuffled = np.random.default_rng(0).permutation(sample)
    np.testing.assert_array_equal(
        Tails.of(_column(shuffled)).evidence_of(values), Tails.of(_column(sample)).evidence_of(values)
    )


@pytest.mark.parametrize("least", [0.1, 0.25, 0.9])
def test_a_lighter_tail_gets_the_least_shape_and_keeps_its_mean_excess(least: float) -> None:
    sample = _sample(0.0)
    tails = Tails.of(_column(sample), least)
    assert tails.shape[0] == least
    excesses = sample[sample > np.quantile(sample, 0.98)] - np.quantile(sample, 0.98)
    assert stats.genpareto.mean(least, scale=tails.scale[0]) == pytest.approx(excesses.mean(), rel=1e-9)
    beyond = tails.evidence_of(_column([tails.quantiles[0, -1] + 40.0]))[0, 0] - tails.evidence[0, -1]
    assert beyond == pytest.approx(-stats.genpareto.logsf(40.0, least, scale=tails.scale[0]), rel=1e-9)


def test_the_least_shape_changes_nothing_of_a_heavier_tail() -> None:
    sample, values = _column(_sample(0.5)), _column(np.linspace(0, 1_000, 200))
    np.testing.assert_array_equal(Tails.of(sample, 0.25).evidence_of(values), Tails.of(sample).evidence_of(values))


@pytest.mark.parametrize("shape", [1.5, 3.0])
def test_a_tail_without_a_mean_counts_as_one_that_hardly_has_one(shape: float) -> None:
    tails = Tails.of(_column(_sample(shape)))
    assert 0.8 < tails.shape[0] <= 1.0


def test_a_statistic_that_never_moved_counts_its_first_move_from_the_number_of_rows() -> None:
    n = 5_000
    tails = Tails.of(np.zeros((n, 1)), 0.25)
    # With scale 1 and shape 1/2 the tail is 1 / (1 + x / 2)^2.
    expected = np.log(n + 1) + 2 * np.log1p(np.array([1.0, 10.0]) / 2)
    np.testing.assert_allclose(tails.evidence_of(_column([1.0, 10.0]))[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("n_excesses", [1, 2, 3, 4])
def test_fewer_than_five_excesses_fit_no_tail(n_excesses: int) -> None:
    excesses = 3.0 * np.arange(1, n_excesses + 1)
    tails = Tails.of(_column(np.concatenate([np.zeros(1_000), excesses])), 0.25)
    assert tails.share[0] == n_excesses / (1_001 + n_excesses)
    assert (tails.shape[0], tails.scale[0]) == (0.5, excesses.mean())
    heavier = Tails.of(_column(np.concatenate([np.zeros(1_000), excesses])), 0.8)
    assert heavier.shape[0] == 0.8


def test_tied_values_are_no_rarer_than_the_values_above_them_are() -> None:
    rng = np.random.default_rng(1)
    sample = rng.choice([0.0, 1.0, 2.0, 3.0, 7.0], size=20_000, p=[0.5, 0.3, 0.1, 0.07, 0.03])
    tails = Tails.of(_column(sample))
    for value in (0.0, 1.0, 2.0, 3.0):
        reach, exceed = np.mean(sample >= value), np.mean(sample > value)
        evidence = tails.evidence_of(_column([value]))[0, 0]
        # One of 501 knots is as near as it gets.
        assert -np.log(reach) - 1e-9 <= evidence <= -np.log(exceed) + 1e-3


finite = st.floats(0.0, 1e9, allow_subnormal=False).map(lambda value: value if value > 1e-9 else 0.0)


@given(
    sample=arrays(np.float64, st.integers(1, 100), elements=finite),
    values=arrays(np.float64, st.integers(2, 50), elements=finite),
    least=st.sampled_from([0.0, 0.1, 0.25, 0.9]),
)
@settings(max_examples=80)
def test_evidence_is_finite_not_negative_and_never_falls_with_the_value(
    sample: FloatArray, values: FloatArray, least: float
) -> None:
    tails = Tails.of(_column(sample), least)
    assert least <= tails.shape[0] <= 1.0
    values = np.sort(np.concatenate([values, sample, [sample.max() * 2, 1e100]]))
    evidence = tails.evidence_of(_column(values))[:, 0]
    assert np.isfinite(evidence).all()
    assert evidence.min() >= 0
    assert (np.diff(evidence) >= 0).all()
    # No value is rarer than one that none of the rows reached, up to what the tail adds.
    assert evidence[values <= tails.quantiles[0, -1]].max(initial=0.0) <= -np.log(tails.share[0]) + 1e-9


@given(
    sample=arrays(np.float64, st.integers(1, 100), elements=finite), factor=st.sampled_from([2.0**-20, 0.5, 2.0**20])
)
@settings(max_examples=40)
def test_evidence_does_not_depend_on_the_unit_once_a_tail_is_fitted(sample: FloatArray, factor: float) -> None:
    tails = Tails.of(_column(sample))
    scaled = Tails.of(_column(sample * factor))
    body = sample <= tails.quantiles[0, -1]
    np.testing.assert_allclose(
        scaled.evidence_of(_column(sample[body] * factor)), tails.evidence_of(_column(sample[body])), atol=1e-6
    )
    assert scaled.share == tails.share
