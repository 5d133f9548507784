"""THOC: its dilated layers, hierarchy and losses against loops in NumPy; that it does not collapse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.helpers.planted import series
from tsadbench.base import FloatArray
from tsadbench_detectors.thoc import THOC, Network


def network(layers: int = 3, hidden: int = 6, temperature: float = 0.5) -> Network:
    torch.manual_seed(0)
    net = Network(n_sensors=2, hidden_size=hidden, layers=layers, temperature=temperature).double()
    with torch.no_grad():
        for offset in net.offsets:
            offset.normal_()
        for centres in net.centres:
            centres.mul_(1.5)  # cosines must not depend on a centre's length
    return net


def weights(net: Network) -> dict[str, NDArray[np.float64]]:
    return {name: weight.detach().numpy() for name, weight in net.state_dict().items()}


def sigmoid(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-x))


def dilated(window: FloatArray, w: dict[str, FloatArray], layers: int) -> list[FloatArray]:
    """Return every layer's states at all rows [n_rows, hidden], each from that 2^layer rows before it."""
    found, below = [], window
    for layer in range(layers):
        name, skip = f"recurrent.{layer}", 2**layer
        states = np.zeros((len(window), w[f"{name}.weight_hh_l0"].shape[1]))
        for t, row in enumerate(below):
            past = states[t - skip] if t >= skip else np.zeros(states.shape[1])
            by_input = np.split(w[f"{name}.weight_ih_l0"] @ row + w[f"{name}.bias_ih_l0"], 3)
            by_state = np.split(w[f"{name}.weight_hh_l0"] @ past + w[f"{name}.bias_hh_l0"], 3)
            reset, update = sigmoid(by_input[0] + by_state[0]), sigmoid(by_input[1] + by_state[1])
            states[t] = (1 - update) * np.tanh(by_input[2] + reset * by_state[2]) + update * past
        found.append(states)
        below = states
    return found


def cosine(a: FloatArray, b: FloatArray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def description(features: list[FloatArray], w: dict[str, FloatArray], temperature: float) -> tuple[float, FloatArray]:
    """Return a row's MVDD term and the relevances, by sums over all paths through the levels."""
    merged, relevance, shares = [features[0] + w["offsets.0"]], np.ones(1), list[FloatArray]()
    for level in range(len(features)):
        centres = w[f"centres.{level}"]
        if level:
            both = [np.concatenate([share, features[level]]) for share in shares]
            inner = [
                np.maximum(w[f"merging.{level - 1}.0.weight"] @ x + w[f"merging.{level - 1}.0.bias"], 0) for x in both
            ]
            merged = [w[f"merging.{level - 1}.2.weight"] @ x + w[f"offsets.{level}"] for x in inner]
        assigned = np.empty((len(merged), len(centres)))
        for i, g in enumerate(merged):
            exponentials = np.array([np.exp(cosine(g, c) / temperature) for c in centres])
            assigned[i] = exponentials / exponentials.sum()
        mixed = [np.maximum(w[f"mixing.{level}.weight"] @ g + w[f"mixing.{level}.bias"], 0) for g in merged]
        shares = [sum(assigned[i, j] * mixed[i] for i in range(len(merged))) for j in range(len(centres))]
        relevance = np.array(
            [sum(relevance[i] * assigned[i, j] for i in range(len(merged))) for j in range(len(centres))]
        )
    distance = sum(r * (1 - cosine(share, c)) for r, share, c in zip(relevance, shares, centres, strict=True))
    return float(distance), relevance


@pytest.mark.parametrize("n_rows", [8, 11])
def test_chains_are_the_states_of_dilated_layers_at_the_last_row_and_skips_before_it(n_rows: int) -> None:
    net, windows = network(), np.random.default_rng(0).normal(size=(3, n_rows, 2))
    chains = net.chains(torch.from_numpy(windows).permute(1, 2, 0))
    for number, window in enumerate(windows):
        for layer, states in enumerate(dilated(window, weights(net), 3)):
            skip = 2**layer
            expected = states[(n_rows - 1) % skip :: skip]
            np.testing.assert_allclose(chains[layer][:, :, number].detach().numpy(), expected, atol=1e-12)


def test_the_hierarchy_by_loops() -> None:
    net = network(temperature=0.2)
    features = np.random.default_rng(1).normal(size=(3, 4, 6))
    distance, relevance = net.distance(list(torch.from_numpy(features)))
    for row in range(4):
        expected, paths = description(list(features[:, row]), weights(net), 0.2)
        np.testing.assert_allclose(distance[row].item(), expected, rtol=1e-10)
        np.testing.assert_allclose(relevance[row].detach().numpy(), paths, rtol=1e-10)
    np.testing.assert_allclose(relevance.sum(dim=1).detach().numpy(), 1.0, rtol=1e-12)


def small(**parameters: object) -> THOC:
    return THOC(**{"window": 8, "layers": 3, "hidden_size": 8, "warm_up": 1, "epochs": 2, "min_steps": 1, **parameters})  # type: ignore[arg-type]


def test_the_loss_is_the_weighted_sum_of_its_terms() -> None:
    rows = series(60)
    detector = small(orthogonality=0.7, self_supervision=0.3, weight_decay=0.01).fit(rows)
    windows = torch.from_numpy(detector.scaler_.scaled(rows))[:16].view(2, 8, 8)
    w = weights(detector.network_.double())  # type: ignore[arg-type]
    distances, errors = [], [[], [], []]  # type: ignore[var-annotated]
    for window in windows.numpy():
        states = dilated(window, w, 3)
        distances.append(description([of_layer[-1] for of_layer in states], w, 0.1)[0])
        for layer, of_layer in enumerate(states):
            for t in range(7 - 2**layer, -1, -(2**layer)):
                forecast = w[f"predictors.{layer}.weight"] @ of_layer[t] + w[f"predictors.{layer}.bias"]
                errors[layer].append((forecast - window[t + 2**layer]) ** 2)
    centres = [w[f"centres.{level}"] for level in range(3)]
    overlap = np.mean([np.linalg.norm(c @ c.T - np.eye(len(c))) for c in centres])
    decay = sum((weight**2).sum() for weight in w.values())
    expected = np.mean(distances) + 0.7 * overlap + 0.3 * np.mean([np.mean(e) for e in errors]) + 0.01 * decay
    np.testing.assert_allclose(detector._loss(windows).item(), expected, rtol=1e-8)


def test_a_score_is_the_description_of_the_window_that_ends_with_the_row() -> None:
    rows = series(60)
    detector = small().fit(rows)
    scaled, w = detector.scaler_.scaled(rows), weights(detector.network_)  # type: ignore[arg-type]
    scores = detector.score(rows)
    for row in (7, 30, 59):
        features = [states[-1] for states in dilated(scaled[row - 7 : row + 1], w, 3)]
        np.testing.assert_allclose(scores[row], description(features, w, 0.1)[0], rtol=1e-3)


def test_warming_up_trains_forecasts_alone_and_then_places_the_centres() -> None:
    warm = small(warm_up=2, epochs=3, learning_rate=1e-30).fit(series(60))
    # At a learning rate of nearly 0, centres stay where they are placed: on inputs whose mean is 0.
    windows = torch.from_numpy(warm.scaler_.scaled(series(60))).float().unfold(0, 8, 2).transpose(1, 2)
    trained = windows[: len(windows) - round(0.1 * len(windows)) - 3]
    net, mixed = warm.network_, None
    with torch.inference_mode():
        for level, chain in enumerate(net.chains(trained.permute(1, 2, 0).contiguous())):  # type: ignore[operator]
            inputs = net.inputs(chain[-1].t(), mixed, level)  # type: ignore[operator]
            np.testing.assert_allclose(inputs.mean(dim=(0, 1)).numpy(), 0.0, atol=1e-6)
            directions = torch.nn.functional.normalize(inputs, dim=2).flatten(0, 1)
            nearest = (directions @ net.centres[level].t()).amax(dim=0)  # type: ignore[index]
            assert (nearest > 0.99).all()
            _, mixed = net.shared_out(inputs, level)  # type: ignore[operator]
    assert [np.isinf(held_out) for _, held_out in warm.losses_] == [True, True, False]
