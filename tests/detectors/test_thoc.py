"""THOC: its dilated layers, hierarchy, losses and score against loops; how warm-up places the centres."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.planted import series
from tsadbench_detectors.thoc import THOC, Network


def network(temperature: float = 0.5) -> Network:
    torch.manual_seed(0)
    net = Network(n_sensors=2, hidden_size=6, layers=3, temperature=temperature).double()
    with torch.no_grad():
        for offset in net.offsets:
            offset.normal_()
        for centres in net.centres:
            centres.mul_(1.5)  # cosines must not depend on a centre's length
    return net


def dilated(net: Network, window: Tensor) -> list[Tensor]:
    """Return every layer's states [n_rows, hidden], each computed from the state 2^layer rows earlier."""
    found, below = [], window
    for layer, gru in enumerate(net.recurrent):
        assert isinstance(gru, nn.GRU)
        states: list[Tensor] = []
        for t, row in enumerate(below):
            past = states[t - 2**layer] if t >= 2**layer else row.new_zeros(gru.hidden_size)
            states.append(torch.gru_cell(row[None], past[None], *gru._flat_weights)[0])
        found.append(torch.stack(states))
        below = found[-1]
    return found


def description(net: Network, features: list[Tensor], temperature: float) -> tuple[Tensor, Tensor]:
    """Return a row's MVDD term and the relevances, centre by centre."""
    merged, relevance, shares = [features[0] + net.offsets[0]], torch.ones(1).to(features[0]), list[Tensor]()
    for level, feature in enumerate(features):
        centres = net.centres[level]
        if level:
            merged = [net.merging[level - 1](torch.cat([share, feature])) + net.offsets[level] for share in shares]
        cosines = [nn.functional.cosine_similarity(g[None], centres) for g in merged]
        assigned = torch.stack([(one / temperature).softmax(dim=0) for one in cosines])
        mixed = torch.stack([net.mixing[level](g).relu() for g in merged])
        shares = [(assigned[:, [j]] * mixed).sum(dim=0) for j in range(len(centres))]
        relevance = relevance @ assigned
    apart = 1 - nn.functional.cosine_similarity(torch.stack(shares), centres)
    return relevance @ apart, relevance


@pytest.mark.parametrize("n_rows", [8, 11])
@torch.no_grad()
def test_chains_are_the_states_of_dilated_layers_at_the_last_row_and_skips_before_it(n_rows: int) -> None:
    net, windows = network(), torch.randn(3, n_rows, 2, dtype=torch.float64)
    chains = net.chains(windows.permute(1, 2, 0))
    for number, window in enumerate(windows):
        for layer, states in enumerate(dilated(net, window)):
            skip = 2**layer
            torch.testing.assert_close(chains[layer][:, :, number], states[(n_rows - 1) % skip :: skip])


@torch.no_grad()
def test_the_hierarchy_by_loops() -> None:
    net, features = network(temperature=0.2), torch.randn(3, 4, 6, dtype=torch.float64)
    distance, relevance = net.distance(list(features))
    for row in range(4):
        torch.testing.assert_close((distance[row], relevance[row]), description(net, list(features[:, row]), 0.2))
    torch.testing.assert_close(relevance.sum(dim=1), torch.ones(4, dtype=torch.float64))


def small(**parameters: object) -> THOC:
    return THOC(**{"window": 8, "layers": 3, "hidden_size": 8, "warm_up": 1, "epochs": 2, "min_steps": 1, **parameters})  # type: ignore[arg-type]


def test_the_loss_is_the_weighted_sum_of_its_terms() -> None:
    rows = series(60)
    detector = small(orthogonality=0.7, self_supervision=0.3, weight_decay=0.01).fit(rows)
    windows = torch.from_numpy(detector.scaler_.scaled(rows))[:16].view(2, 8, 8)
    net = detector.network_.double().requires_grad_(False)
    distances, errors = [], [[], [], []]  # type: ignore[var-annotated]
    for window in windows:
        states = dilated(net, window)
        distances.append(description(net, [of_layer[-1] for of_layer in states], 0.1)[0])
        for layer, of_layer in enumerate(states):
            for t in range(7 - 2**layer, -1, -(2**layer)):
                errors[layer].append((net.predictors[layer](of_layer[t]) - window[t + 2**layer]).square().mean())
    overlap = np.mean([np.linalg.norm(c @ c.T - np.eye(len(c))) for c in (one.numpy() for one in net.centres)])
    decay = sum(float(weight.square().sum()) for weight in net.parameters())
    expected = np.mean(distances) + 0.7 * overlap + 0.3 * np.mean([np.mean(e) for e in errors]) + 0.01 * decay
    np.testing.assert_allclose(detector._loss(windows), expected, rtol=1e-8)


def test_a_score_is_the_description_of_the_window_that_ends_with_the_row() -> None:
    rows = series(60)
    detector = small().fit(rows)
    scores, scaled = detector.score(rows), torch.from_numpy(detector.scaler_.scaled(rows)).float()
    net = detector.network_.requires_grad_(False)
    for row in (7, 30, 59):
        features = [states[-1] for states in dilated(net, scaled[row - 7 : row + 1])]
        np.testing.assert_allclose(scores[row], description(net, features, 0.1)[0], rtol=1e-3)


def test_warming_up_trains_forecasts_alone_and_then_places_the_centres() -> None:
    warm = small(warm_up=2, epochs=3, learning_rate=1e-30).fit(series(60))
    # With a learning rate near 0, centres stay where warm-up places them: on inputs with mean 0.
    windows = torch.from_numpy(warm.scaler_.scaled(series(60))).float().unfold(0, 8, 2).transpose(1, 2)
    trained = windows[: len(windows) - round(0.1 * len(windows)) - 3]
    net, mixed = warm.network_, None
    with torch.inference_mode():
        for level, chain in enumerate(net.chains(trained.permute(1, 2, 0).contiguous())):  # type: ignore[operator]
            inputs = net.inputs(chain[-1].t(), mixed, level)  # type: ignore[operator]
            np.testing.assert_allclose(inputs.mean(dim=(0, 1)).numpy(), 0.0, atol=1e-6)
            directions = nn.functional.normalize(inputs, dim=2).flatten(0, 1)
            nearest = (directions @ net.centres[level].t()).amax(dim=0)  # type: ignore[index]
            assert (nearest > 0.99).all()
            _, mixed = net.shared_out(inputs, level)  # type: ignore[operator]
    assert [np.isinf(held_out) for _, held_out in warm.losses_] == [True, True, False]
