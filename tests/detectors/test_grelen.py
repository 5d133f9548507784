"""GReLeN: graph learner, diffusion, loss and scores against slow implementations of their formulas."""

from __future__ import annotations

import copy
from typing import get_args

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from torch import Tensor, nn

from tests.helpers.planted import in_range, padded, waves
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.grelen import Decoder, GReLeN, Statistic, divergence, random_walks

STATISTICS = get_args(Statistic)
WINDOW = 6


def small(**parameters: object) -> GReLeN:
    defaults = {"window": WINDOW, "stride": 1, "hidden_size": 4, "epochs": 2, "min_steps": 1, "batch_size": 32}
    return GReLeN(**{**defaults, **parameters})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def fitted() -> GReLeN:
    return small().fit([waves(), waves(80, seed=1)])


def windows_of(n_windows: int = 4, n_sensors: int = 5) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(n_windows, WINDOW, n_sensors, dtype=torch.float64, generator=generator)


def types_of(n_windows: int = 4, n_sensors: int = 5) -> Tensor:
    """Return probabilities [batch, type, from, to], with diagonals that no formula may read."""
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(n_windows, 4, n_sensors, n_sensors, dtype=torch.float64, generator=generator)
    return logits.softmax(dim=1)


def test_random_walks_are_powers_of_both_directions_transitions() -> None:
    adjacency = torch.rand(4, 4, dtype=torch.float64)
    forward, backward = (one / one.sum(dim=1, keepdim=True) for one in (adjacency, adjacency.T))
    expected = [torch.linalg.matrix_power(forward, k) for k in (0, 1, 2, 3)]
    expected += [torch.linalg.matrix_power(backward, k) for k in (1, 2, 3)]
    torch.testing.assert_close(random_walks(adjacency, 3), torch.stack(expected, dim=1))


def forecast_by_loops(decoder: Decoder, window: Tensor, relations: Tensor) -> Tensor:
    """Return one window's forecast [n_rows, n_sensors], sensor by sensor."""
    n_rows, n_sensors = window.shape
    states = torch.zeros(3, n_sensors, decoder.head.in_features, dtype=torch.float64)
    forecast = torch.empty_like(window)
    for row in range(n_rows):
        for kind in range(3):
            adjacency = relations[kind + 1].clone().fill_diagonal_(1.0)
            walks = random_walks(adjacency, decoder.diffusion_steps)

            def convolved(inputs: Tensor, sensor: int, weight: Tensor, bias: Tensor, walks: Tensor = walks) -> Tensor:
                arriving = [sum(walk[j] * inputs[j] for j in range(n_sensors)) for walk in walks[sensor]]
                return torch.cat(arriving) @ weight + bias[0]

            value, before = window[row][:, None], states[kind]
            inputs = torch.cat([value, before], dim=1)
            maps = [(each.weight[kind], each.bias[kind]) for each in (decoder.gates, decoder.candidate)]
            gates = torch.stack([torch.sigmoid(convolved(inputs, i, *maps[0])) for i in range(n_sensors)])
            update, reset = gates.chunk(2, dim=1)
            inputs = torch.cat([value, reset * before], dim=1)
            candidate = torch.stack([torch.tanh(convolved(inputs, i, *maps[1])) for i in range(n_sensors)])
            states[kind] = update * before + (1 - update) * candidate
        forecast[row] = decoder.head(states.mean(dim=0))[:, 0]
    return forecast


@pytest.mark.parametrize("drawn", [True, False])
def test_the_decoder_by_loops(drawn: bool) -> None:
    torch.manual_seed(0)
    decoder, windows, relations = Decoder(hidden_size=3, diffusion_steps=2).double(), windows_of(2, 4), types_of(2, 4)
    if drawn:
        relations = nn.functional.one_hot(relations.argmax(dim=1), 4).movedim(-1, 1).double()
    with torch.inference_mode():
        expected = [forecast_by_loops(decoder, *each) for each in zip(windows, relations, strict=True)]
        torch.testing.assert_close(decoder(windows, relations), torch.stack(expected))


def test_the_divergence_is_scipys_of_the_mean_over_all_pairs() -> None:
    probabilities = types_of(2, 3)
    means = probabilities[..., ~torch.eye(3, dtype=torch.bool)].mean(dim=2)
    expected = entropy(means.numpy(), [(0.91, 0.03, 0.03, 0.03)] * 2, axis=1)
    np.testing.assert_allclose(divergence(probabilities), expected, rtol=1e-12)


class Persistence(nn.Module):
    """Forecasts that the next row equals this one; records the relations."""

    def forward(self, given: Tensor, relations: Tensor) -> Tensor:
        self.relations = relations.detach()
        return given


def test_the_loss_by_hand() -> None:
    detector = small().fit(waves(n_sensors=5))
    network = detector.network_
    network.decoder = Persistence()
    windows = windows_of()
    steps = windows[:, 1:] - windows[:, :-1]
    probabilities = network.learner(windows).softmax(dim=1)
    squares = 0.5 * (steps**2).sum(dim=1).mean() + divergence(probabilities).mean()
    torch.testing.assert_close(detector._loss(windows), squares)
    torch.testing.assert_close(network.decoder.relations, probabilities)  # not in training mode, so none are drawn


def by_hand(detector: GReLeN, training: list[FloatArray], test: FloatArray) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return each statistic's contributions [n_rows, n_sensors] and scores [n_rows], window by window."""
    network = copy.deepcopy(detector.network_).double()
    pooled = np.concatenate(training)

    def by_row(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        scaled = torch.from_numpy(in_range(padded(values, WINDOW - 1), pooled)).float().double()
        shares, errors = np.empty(values.shape), np.empty(values.shape)
        for last in range(len(values)):
            window = scaled[last : last + WINDOW]
            probabilities = network.learner(window[None]).softmax(dim=1)
            shares[last] = (probabilities[0, 0].sum(dim=1) - probabilities[0, 0].diagonal()).numpy() / 2
            forecast = network.decoder(window[None, :-1], probabilities)[0, -1]
            errors[last] = (forecast - window[-1]).square().numpy()
        return shares, errors

    with torch.inference_mode():
        learned = np.concatenate([by_row(values)[0][WINDOW - 1 :] for values in training])
        shares, errors = by_row(test)
    difference = np.zeros(test.shape)
    for row in range(1, len(test)):
        # m(t) minus the mean of m(t) and m(t - 1)
        difference[row] = shares[row] - (shares[row] + shares[row - 1]) / 2
    deviation = np.abs(shares - learned.mean(axis=0)) / np.maximum(learned.std(axis=0), 1e-6)
    changes = np.abs(difference) / 3
    found = {
        name: (terms / 3, terms.mean(axis=1)) for name, terms in (("deviation", deviation), ("reconstruction", errors))
    }
    # In the reference, signs cancel in the mean over sensors; its two-sided thresholds are one on the absolute mean.
    return {
        **found,
        "difference": (changes, changes.sum(axis=1)),
        "reference": (changes, np.abs(difference.mean(axis=1))),
    }


def test_the_scores_by_hand(fitted: GReLeN) -> None:
    test = waves(40, seed=2)
    expected = by_hand(fitted, [waves(), waves(80, seed=1)], test)
    assert expected.keys() == set(STATISTICS)
    for statistic, (contributions, scores) in expected.items():
        detector = small(statistic=statistic).fit([waves(), waves(80, seed=1)])
        np.testing.assert_allclose(detector.contributions(test), contributions, rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(detector.score(test), scores, rtol=1e-4, atol=1e-9)
