"""GANF: its density against torch.distributions, its training, and what makes its graph acyclic."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.linalg import expm
from torch import Tensor
from torch.distributions import AffineTransform, Normal, TransformedDistribution

from tests.helpers.planted import in_deviations, noise, padded, windows
from tsadbench.base import FloatArray
from tsadbench_detectors.deep.acyclic_graph import AugmentedLagrangian, acyclicity, strongest_acyclic
from tsadbench_detectors.deep.graph_flow import Network
from tsadbench_detectors.ganf import GANF

GRAPHS = st.integers(1, 7).flatmap(
    lambda n: arrays.arrays(np.float64, (n, n), elements=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]))
)


def is_acyclic(adjacency: FloatArray) -> bool:
    """Whether no walk has as many steps as there are nodes; with a cycle, walks have any length."""
    walks = np.linalg.matrix_power((adjacency > 0).astype(float), len(adjacency))
    return not walks.any()


@given(GRAPHS)
def test_h_and_its_gradient_match_scipy(adjacency: FloatArray) -> None:
    given = torch.tensor(adjacency, requires_grad=True)
    h = acyclicity(given)
    np.testing.assert_allclose(h.item(), np.trace(expm(adjacency**2)) - len(adjacency), rtol=1e-9, atol=1e-9)
    (gradient,) = torch.autograd.grad(h, given)
    np.testing.assert_allclose(gradient, 2 * adjacency * expm(adjacency**2).T, rtol=1e-9, atol=1e-9)


def test_the_weights_of_the_constraint_by_hand() -> None:
    constraint = AugmentedLagrangian()
    found = []
    for h in (0.8, 0.5, 0.2, 0.15):
        constraint.update(h)
        found.append((constraint.rho, constraint.alpha))
    # h falls by more than half only from .5 to .2; the first update has no earlier value to compare with.
    expected = [(1.0, 0.8), (10.0, 1.3), (10.0, 3.3), (100.0, 4.8)]
    np.testing.assert_allclose(found, expected)
    assert constraint.penalty(torch.tensor(0.1)).item() == pytest.approx(50 * 0.01 + 0.48)


@given(GRAPHS)
def test_what_is_kept_has_no_cycle_and_every_edge_left_out_would_close_one(adjacency: FloatArray) -> None:
    kept = strongest_acyclic(adjacency)
    assert is_acyclic(kept * 1.0)
    assert not kept[adjacency == 0].any()
    for source, target in np.argwhere((adjacency > 0) & ~kept):
        stronger = kept & (adjacency >= adjacency[source, target])
        stronger[source, target] = True
        assert not is_acyclic(stronger * 1.0)


def network() -> Network:
    torch.manual_seed(0)
    made = Network(3, hidden_size=5, blocks=3).double().eval()
    with torch.no_grad():
        # Doubled, so that conditions matter more than with the initial weights.
        for name, weight in made.named_parameters():
            if name != "edges":
                weight.mul_(2.0)
    made.cut()
    return made.requires_grad_(False)


def small(**parameters: object) -> GANF:
    cheap = {"window": 6, "hidden_size": 8, "epochs": 4, "min_steps": 1}
    return GANF(**{**cheap, **parameters})  # type: ignore[arg-type]


def conditions_by_loops(made: Network, window: Tensor) -> Tensor:
    """Return d [steps, n_sensors, hidden_size] of one window, sensor by sensor and step by step."""
    steps, n_sensors = window.shape
    states = torch.stack([made.encoder(window[:, k, None])[0] for k in range(n_sensors)])
    found = torch.empty(steps, n_sensors, 5, dtype=torch.float64)
    for step in range(steps):
        for target in range(n_sensors):
            parents = sum(made.edges[k, target] * states[k, step] for k in range(n_sensors) if made.allowed[k, target])
            before = states[target, step - 1] if step else torch.zeros(5, dtype=torch.float64)
            mixed = made.of_parents.weight @ (parents + torch.zeros(5, dtype=torch.float64)) + made.of_parents.bias
            found[step, target] = made.condition((mixed + made.of_past.weight @ before).relu())
    return found


def test_the_density_matches_affine_maps_of_a_normal_distribution() -> None:
    made, given = network(), torch.randn(2, 4, 3, dtype=torch.float64)
    found = made(given)
    for number, window in enumerate(given):
        conditions = conditions_by_loops(made, window)
        maps = []
        for block in made.flow:
            shift, log_scale = block.maps(conditions).unbind(-1)
            maps.append(AffineTransform(shift, log_scale.exp()))
        # The flow maps a value to noise; the distribution maps noise to a value, by the last block first.
        base = Normal(torch.zeros_like(window), torch.ones_like(window))
        expected = TransformedDistribution(base, maps[::-1]).log_prob(window)
        torch.testing.assert_close(found[:, number], expected)


def test_the_score_is_the_negative_logarithm_of_the_last_rows_density() -> None:
    detector, fresh = small().fit(noise(200, 3)), noise(20, 3, seed=1)
    given = windows(padded(in_deviations(fresh, noise(200, 3)), 5), 6)
    with torch.inference_mode():
        expected = -detector.network_(given)[-1].numpy()
    np.testing.assert_allclose(detector.contributions(fresh), expected, rtol=1e-4, atol=1e-5)


def pairs() -> FloatArray:
    """Return rows of white noise: the third sensor follows the first in the same row, the fourth the second."""
    leading, own = np.random.default_rng(0).normal(size=(2, 1_000, 2))
    return np.concatenate([leading, 0.8 * leading + 0.1 * own], axis=1)


@pytest.mark.long  # 10 s of training
def test_the_graph_links_each_sensor_with_its_follower() -> None:
    cheap = {"window": 4, "hidden_size": 8, "min_steps": 600, "learning_rate": 1e-2}
    found = small(**cheap).fit(pairs()).adjacency_
    graph = found + found.T
    assert {(int(i), int(j)) for i, j in np.argwhere(np.triu(graph) > 0.2)} == {(0, 2), (1, 3)}


def test_bounded_training_learns_the_graph_first_and_then_the_density() -> None:
    facts = small(max_steps=20).fit(noise(2_000, 3)).training_facts()
    assert facts["steps"] == 20
    assert facts["held_out_loss"] is not None  # undefined while the graph is learned
