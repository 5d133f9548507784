"""DVGCRN: graph, priors, divergence, recursion and score against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence
from torch.nn import functional

from tests.helpers.planted import in_deviations, padded, series, windows
from tsadbench_detectors.dvgcrn import DVGCRN, Course, Layer, Network, adjacency, narrowing


def small(**parameters: object) -> DVGCRN:
    return DVGCRN(**{**DVGCRN.test_params(), **parameters})  # type: ignore[arg-type]


def network(layers: int = 3) -> Network:
    torch.manual_seed(0)
    return Network(4, *narrowing(layers, 6, 8), 5)


def test_the_graph_by_hand() -> None:
    """Two sensors at right angles, a latent variable between them, and one opposite to the first sensor."""
    found = adjacency(torch.tensor([[2.0, 0.0], [0.0, 3.0]]), torch.tensor([[1.0, 1.0], [-5.0, 0.0]]))
    half = 0.5**0.5
    similarity = np.array([[1, 0, half, 0], [0, 1, half, 0], [half, half, 1, 0], [0, 0, 0, 1]])
    expected = np.exp(similarity) / np.exp(similarity).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@torch.no_grad()
def test_what_each_level_generates_by_hand() -> None:
    net = network()
    for level, (n_before, n_above) in enumerate([(8, 6), (8, 4), (6, 2), (4, None)]):
        before = torch.randn(7, n_before)
        above = None if n_above is None else torch.randn(7, n_above)
        expected = (net.nodes[level] @ net.units[level].T).softmax(dim=1) @ before.T
        if above is not None:
            expected = expected + (net.nodes[level] @ net.nodes[level + 1].T).softmax(dim=1) @ above.T
        if level:  # rows themselves may be negative
            assert (expected < 0).any()
            expected = functional.leaky_relu(expected, 0.2)
        torch.testing.assert_close(net.generated(level, before, above).T, expected)


def layer_by_layer(net: Network, rows: Tensor, noise: Tensor) -> list[Course]:
    """Compute `Network.read` with PyTorch's own linear layers, all of it inside the loop."""
    below, lower_state, found, first = rows, None, [], 0
    for number, layer in enumerate(net.layers):
        assert isinstance(layer, Layer)
        of_layer, first = noise[:, :, first : first + layer.latent], first + layer.latent
        graph = adjacency(net.nodes[number], net.nodes[number + 1])
        state = cell = torch.zeros(rows.shape[1], layer.hidden)
        kept: list[list[Tensor]] = [[], [], [], []]
        for step in range(len(rows)):
            hidden = functional.leaky_relu(layer.posterior(torch.cat([rows[step], state], dim=1)), 0.2)
            mean, log_variance = layer.to_latent(hidden).chunk(2, dim=1)
            latent = mean + torch.exp(log_variance / 2) * of_layer[step]
            gathered = torch.cat([below[step], latent], dim=1) @ graph.t()
            inputs = functional.softplus(functional.leaky_relu(layer.gathered(gathered), 0.2))
            seen = [inputs, state] if lower_state is None else [inputs, state, lower_state[step]]
            write, forget, read, candidate = layer.gates(torch.cat(seen, dim=1)).chunk(4, dim=1)
            cell = forget.sigmoid() * cell + write.sigmoid() * candidate.tanh()
            state = read.sigmoid() * cell.tanh()
            for of, value in zip(kept, (latent, mean, log_variance, state), strict=True):
                of.append(value)
        below, lower_state = torch.stack(kept[0]), torch.stack(kept[3])
        found.append(Course(*(torch.stack(of) for of in kept)))
    return found


@pytest.mark.parametrize("n_layers", [1, 3])
def test_what_the_layers_infer_by_their_formulas(n_layers: int) -> None:
    net, rows = network(n_layers), torch.randn(5, 3, 4)
    noise = torch.randn(5, 3, net.n_latent)
    found = net.read(rows, noise)
    for ours, theirs in zip(found, layer_by_layer(net, rows, noise), strict=True):
        for name in ("latent", "mean", "log_variance", "state"):
            torch.testing.assert_close(getattr(ours, name), getattr(theirs, name))
    torch.testing.assert_close(net.read(rows, noise[..., :6], n_layers=1)[0].state, found[0].state)


def test_the_losses_are_surprise_divergence_and_forecast_of_all_layers() -> None:
    net, rows = network(), torch.randn(5, 3, 4)
    noise = torch.randn(5, 3, 12)
    found = layer_by_layer(net, rows, noise)
    total, apart = torch.zeros(()), torch.zeros(())
    for step in range(5):
        befores = [course.state[step - 1] if step else torch.zeros_like(course.state[0]) for course in found]
        latents = [course.latent[step] for course in found]
        log_variance = net.row_log_variance(torch.cat([befores[0], latents[0]], dim=1))
        rows_density = Normal(net.generated(0, befores[0], latents[0]), torch.exp(log_variance / 2))
        total = total - rows_density.log_prob(rows[step]).sum()  # type: ignore[no-untyped-call]
        for number, course in enumerate(found):
            above = latents[number + 1] if number < 2 else None
            context = torch.cat([befores[number]] if above is None else [befores[number], above], dim=1)
            spread = net.prior_log_variances[number](context)
            prior = Normal(net.generated(number + 1, befores[number], above), torch.exp(spread / 2))
            posterior = Normal(course.mean[step], torch.exp(course.log_variance[step] / 2))
            apart = apart + kl_divergence(posterior, prior).sum()
    forecast = net.forecast(torch.cat([course.state[3] for course in found], dim=1))
    expected = total / 3, apart / 3, (forecast - rows[4]).square().sum() / 3
    for ours, theirs in zip(net.losses(rows, noise), expected, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("warm_up", "weights"), [(1, [1, 1, 1]), (4, [0.25, 0.5, 0.75])])
def test_the_weight_of_the_divergence_rises_from_epoch_to_epoch(warm_up: int, weights: list[float]) -> None:
    class Constant(torch.nn.Module):
        n_latent = 3

        def losses(self, rows: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            assert noise.shape == (*rows.shape[:2], 3)
            return torch.tensor(100.0), torch.tensor(1.0), torch.tensor(10.0)

    detector = small(warm_up=warm_up, forecast_weight=2.0)
    detector.network_ = Constant()
    for epoch, weight in enumerate(weights):
        detector.losses_ = [(0.0, 0.0)] * epoch
        assert detector._loss(torch.zeros(5, 6, 2)).item() == 120.0 + weight
    detector.losses_ = []
    detector.network_.eval()
    assert detector._loss(torch.zeros(5, 6, 2)).item() == 121.0


def test_the_score_is_the_last_rows_negative_log_density_at_the_means() -> None:
    training, fresh = series(120), series(20, seed=1)
    detector = small(layers=3).fit(training)
    net, window = detector.network_, detector.window
    expected = np.empty((20, 8))
    with torch.inference_mode():
        for row, one in enumerate(windows(padded(in_deviations(fresh, training), window - 1), window)):
            seen = one[:, None]
            lowest = net.read(seen, torch.zeros(window, 1, net.n_latent))[0]
            before, latent = lowest.state[-2], lowest.latent[-1]
            log_variance = net.row_log_variance(torch.cat([before, latent], dim=1)).clamp(-6, 6)
            mean = net.generated(0, before, latent)
            density = Normal(mean, torch.exp(log_variance / 2)).log_prob(seen[-1])  # type: ignore[no-untyped-call]
            expected[row] = -density[0].numpy()
    np.testing.assert_allclose(detector.contributions(fresh), expected, rtol=1e-3, atol=1e-3)
