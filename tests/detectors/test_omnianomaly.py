"""OmniAnomaly: flow, prior, recursion and bound against independent computations; its score, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor
from torch.distributions import Normal

from tests.helpers.planted import series
from tsadbench.base import FloatArray
from tsadbench_detectors.deep.linked_latents import linked_latents
from tsadbench_detectors.deep.planar_flow import PlanarFlow
from tsadbench_detectors.deep.random_walk import prior_surprise
from tsadbench_detectors.omnianomaly import Network, OmniAnomaly


def small(**parameters: object) -> OmniAnomaly:
    return OmniAnomaly(**{**OmniAnomaly.test_params(), **parameters})  # type: ignore[arg-type]


@pytest.mark.parametrize(("latent_size", "flows"), [(1, 1), (3, 4)])
def test_the_flows_log_determinant_is_that_of_autograds_jacobian(latent_size: int, flows: int) -> None:
    torch.manual_seed(latent_size)
    flow = PlanarFlow(latent_size, flows).double()
    # Directions against the weights: without the constraint, these maps would not be invertible.
    flow.direction.data = -flow.weight.data + 0.5 * torch.randn(flows, latent_size)
    assert (flow.direction * flow.weight).sum(dim=1).min() < -1 or flows == 1
    latents = 2.0 * torch.randn(4, latent_size, 3, dtype=torch.double)
    _, found = flow(latents)
    for step in range(4):
        for window in range(3):

            def mapped(one: Tensor) -> Tensor:
                image: Tensor = flow(one[None, :, None])[0][0, :, 0]
                return image

            jacobian = torch.func.jacrev(mapped)(latents[step, :, window])
            sign, expected = torch.linalg.slogdet(jacobian)
            assert sign == 1.0
            torch.testing.assert_close(found[step, 0, window], expected)


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


def by_steps(inputs: Tensor, by_latent: Tensor, to_latent: Tensor, bias: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
    """Return what `linked_latents` does, as autograd records it."""
    latent, latents, log_variances = torch.zeros_like(noise[0]), [], []
    for of_step, drawn in zip(inputs, noise, strict=True):
        mean, log_variance = (to_latent @ torch.relu(of_step + by_latent @ latent) + bias).chunk(2)
        log_variances.append(log_variance.clamp(-6, 6))
        latent = mean + torch.exp(log_variances[-1] / 2) * drawn
        latents.append(latent)
    return torch.stack(latents), torch.stack(log_variances)


@pytest.mark.parametrize("scale", [0.3, 4.0])  # the larger one clamps some log-variances
def test_the_recursion_and_its_gradient_are_autograds(scale: float) -> None:
    torch.manual_seed(0)
    shapes = ((6, 5, 4), (5, 2), (4, 5), (4, 1))
    arguments = [(scale * torch.randn(shape, dtype=torch.double)).requires_grad_() for shape in shapes]
    noise = torch.randn(6, 2, 4, dtype=torch.double)
    towards = torch.randn(6, 2, 4, dtype=torch.double), torch.randn(6, 2, 4, dtype=torch.double)
    inputs, by_latent, to_latent, bias = arguments
    found = linked_latents(inputs, by_latent, to_latent, bias, noise)
    expected = by_steps(inputs, by_latent, to_latent, bias, noise)
    for ours, autograds in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, autograds)
    assert (expected[1].abs() == 6).any() == (scale > 1)
    gradients = [torch.autograd.grad(results, arguments, towards) for results in (found, expected)]
    for ours, autograds in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, autograds)
    with torch.inference_mode():
        for ours, autograds in zip(linked_latents(inputs, by_latent, to_latent, bias, noise), expected, strict=True):
            torch.testing.assert_close(ours, autograds.detach())


def test_the_loss_is_the_negative_evidence_lower_bound() -> None:
    torch.manual_seed(1)
    network = Network(3, 6, 2, 3)
    rows, noise = torch.randn(5, 3, 4), torch.randn(5, 2, 4)
    # log q of what was drawn, under the normal distributions with the means that a draw without noise at its step has.
    before, log_variance = network.encode(rows, noise)
    mean = before - torch.exp(log_variance / 2) * noise
    latents, log_determinant = network.flow(before)
    log_q = log_density(mean, log_variance, before).sum() - log_determinant.sum()
    row_mean, row_log_variance = network.decode(latents)
    log_p = log_density(row_mean, row_log_variance, rows).sum() - prior_surprise(latents).sum()
    torch.testing.assert_close(network.minus_bound(rows, noise), (log_q - log_p) / 4)


def scaled(rows: FloatArray, training: FloatArray, window: int) -> Tensor:
    z = torch.from_numpy((rows - training.mean(axis=0)) / training.std(axis=0)).float()
    return torch.cat([z[:1].expand(window - 1, -1), z])


@pytest.mark.parametrize("samples", [0, 3])
def test_the_score_is_the_last_rows_negative_log_density(samples: int) -> None:
    training, fresh = series(120), series(20, seed=1)
    detector = small(samples=samples, seed=5).fit(training)
    network, window = detector.network_, detector.window
    assert isinstance(network, Network)
    z = scaled(fresh, training, window)
    noises = [torch.zeros(window, 4, 1)]
    if samples:
        noises = list(torch.randn(samples, window, 4, 1, generator=torch.Generator().manual_seed(5)))
    expected = np.zeros((20, 8))
    with torch.inference_mode():
        for row in range(20):
            for noise in noises:
                latents, _ = network.flow(network.encode(z[row : row + window, :, None], noise)[0])
                mean, log_variance = (values[-1, :, 0] for values in network.decode(latents))
                expected[row] -= log_density(mean, log_variance, z[row + window - 1]).numpy() / len(noises)
    np.testing.assert_allclose(detector.contributions(fresh), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(detector.score(fresh), expected.sum(axis=1), rtol=1e-3, atol=1e-3)
