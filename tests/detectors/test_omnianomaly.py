"""OmniAnomaly: flow, prior, recursion, bound and score against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor
from torch.distributions import Normal

from tests.helpers.planted import in_deviations, padded, series, windows
from tsadbench_detectors.deep.planar_flow import PlanarFlow
from tsadbench_detectors.deep.random_walk import prior_surprise
from tsadbench_detectors.omnianomaly import Network, OmniAnomaly


def small(**parameters: object) -> OmniAnomaly:
    return OmniAnomaly(**{**OmniAnomaly.test_params(), **parameters})  # type: ignore[arg-type]


@pytest.mark.parametrize(("latent_size", "flows"), [(1, 1), (3, 4)])
def test_the_flows_log_determinant_matches_autograds_jacobian(latent_size: int, flows: int) -> None:
    torch.manual_seed(latent_size)
    flow = PlanarFlow(latent_size, flows).double()
    # Directions against the weights: without the constraint, these maps would not be invertible.
    flow.direction.data = -flow.weight.data + 0.5 * torch.randn(flows, latent_size)
    assert (flow.direction * flow.weight).sum(dim=1).min() < -1 or flows == 1
    latents = 2.0 * torch.randn(4, 3, latent_size, dtype=torch.double)
    _, found = flow(latents)
    for step in range(4):
        for window in range(3):

            def mapped(one: Tensor) -> Tensor:
                image: Tensor = flow(one)[0]
                return image

            jacobian = torch.func.jacrev(mapped)(latents[step, window])
            sign, expected = torch.linalg.slogdet(jacobian)
            assert sign == 1.0
            torch.testing.assert_close(found[step, window], expected)


@pytest.mark.parametrize("n_steps", [1, 30])
def test_the_prior_is_the_joint_normal_density_of_a_random_walk_seen_in_noise(n_steps: int) -> None:
    rng = np.random.default_rng(n_steps)
    courses = 3.0 * rng.normal(size=(n_steps, 2, 4))
    # l_t is a sum of t independent steps: cov(l_s, l_t) = min(s, t); the noise adds 1 on the diagonal.
    steps = np.arange(1, n_steps + 1)
    joint = multivariate_normal(np.zeros(n_steps), np.minimum.outer(steps, steps) + np.eye(n_steps))
    expected = [[-joint.logpdf(courses[:, latent, window]) for window in range(4)] for latent in range(2)]
    np.testing.assert_allclose(prior_surprise(torch.from_numpy(courses)), expected, rtol=1e-10)


def log_density(mean: Tensor, log_variance: Tensor, values: Tensor) -> Tensor:
    found: Tensor = Normal(mean, torch.exp(log_variance / 2)).log_prob(values)  # type: ignore[no-untyped-call]
    return found


def test_each_latent_variable_is_drawn_given_the_one_before() -> None:
    torch.manual_seed(0)
    network = Network(3, 6, 2, 3)
    network.to_latent.weight.data *= 20  # clamps some log-variances
    rows, noise = torch.randn(5, 4, 3), torch.randn(5, 4, 2)
    with torch.no_grad():
        latents, log_variances = network.encode(rows, noise)
        states, before = network.encoder(rows)[0], torch.zeros(4, 2)
        for step in range(5):
            seen = torch.cat([network.encoded(states[step]).relu(), before], dim=1)
            mean, log_variance = network.to_latent(network.linked(seen).relu()).chunk(2, dim=1)
            torch.testing.assert_close(log_variances[step], log_variance.clamp(-6, 6))
            before = mean + torch.exp(log_variances[step] / 2) * noise[step]
            torch.testing.assert_close(latents[step], before)
    assert (log_variances.abs() == 6).any()


def test_the_loss_is_the_negative_evidence_lower_bound() -> None:
    torch.manual_seed(1)
    network = Network(3, 6, 2, 3)
    rows, noise = torch.randn(5, 4, 3), torch.randn(5, 4, 2)
    # log q of the drawn values; the mean at a step is the draw without its noise.
    before, log_variance = network.encode(rows, noise)
    mean = before - torch.exp(log_variance / 2) * noise
    latents, log_determinant = network.flow(before)
    log_q = log_density(mean, log_variance, before).sum() - log_determinant.sum()
    row_mean, row_log_variance = network.decode(latents)
    log_p = log_density(row_mean, row_log_variance, rows).sum() - prior_surprise(latents).sum()
    torch.testing.assert_close(network.minus_bound(rows, noise), (log_q - log_p) / 4)


@pytest.mark.parametrize("samples", [0, 3])
def test_the_score_is_the_last_rows_negative_log_density(samples: int) -> None:
    training, fresh = series(120), series(20, seed=1)
    detector = small(samples=samples, seed=5).fit(training)
    network, window = detector.network_, detector.window
    given = windows(padded(in_deviations(fresh, training), window - 1), window)
    noises = [torch.zeros(window, 1, 4)]
    if samples:
        noises = list(torch.randn(samples, window, 1, 4, generator=torch.Generator().manual_seed(5)))
    expected = np.zeros((20, 8))
    with torch.inference_mode():
        for row, one in enumerate(given):
            for noise in noises:
                latents, _ = network.flow(network.encode(one[:, None], noise)[0])
                mean, log_variance = (values[-1, 0] for values in network.decode(latents))
                expected[row] -= log_density(mean, log_variance, one[-1]).numpy() / len(noises)
    np.testing.assert_allclose(detector.contributions(fresh), expected, rtol=1e-3, atol=1e-3)
