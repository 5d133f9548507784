"""Deep SVDD: centre, objectives, radius, score and contributions against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.planted import in_deviations, padded, waves, windows
from tsadbench.base import FloatArray
from tsadbench_detectors.deep_svdd import DeepSVDD, Network

WINDOW = 4


def small(cls: type[DeepSVDD] = DeepSVDD, **parameters: object) -> DeepSVDD:
    given = {"window": WINDOW, "hidden_size": 6, "representation_size": 5, "epochs": 2, "pretraining_epochs": 2}
    return cls(**{**given, "min_steps": 1, "batch_size": 16, **parameters})  # type: ignore[arg-type]


def represented(network: Network, given: Tensor) -> FloatArray:
    """Return the representations by numpy: three products, leaky ReLUs between them."""
    outputs = np.asarray(given.flatten(1).double())
    weights = [np.asarray(weight.detach().double()) for weight in network.encoder.parameters()]
    for number, weight in enumerate(weights):
        outputs = outputs @ weight.T
        if number < len(weights) - 1:
            outputs = np.where(outputs < 0.0, 0.1 * outputs, outputs)
    return outputs


class Frozen(DeepSVDD):
    """A variant whose second phase changes nothing."""

    def _loss(self, windows: Tensor) -> Tensor:
        return 0.0 * super()._loss(windows)


@pytest.mark.parametrize("pretraining_epochs", [0, 3])
def test_the_centre_is_the_mean_of_the_first_phases_representations_of_the_training_windows(
    pretraining_epochs: int,
) -> None:
    detector = small(Frozen, pretraining_epochs=pretraining_epochs, held_out=0.0).fit(waves())
    mean = represented(detector.network_, windows(in_deviations(waves(), waves()), WINDOW)).mean(axis=0)
    pushed = np.where(np.abs(mean) < 0.1, np.where(mean < 0.0, -0.1, 0.1), mean)
    np.testing.assert_allclose(detector.network_.centre.numpy(), pushed, atol=1e-5)
    torch.manual_seed(0)
    initial = Network(WINDOW * 3, 6, 5)
    same = torch.equal(next(initial.encoder.parameters()), next(detector.network_.encoder.parameters()))
    assert same == (pretraining_epochs == 0)


@pytest.mark.parametrize("objective", ["one-class", "soft-boundary"])
def test_the_loss_is_the_objective_and_in_training_the_weight_decay(objective: str) -> None:
    detector = small(objective=objective, weight_decay=0.3, nu=0.25).fit(waves())
    network, drawn = detector.network_, torch.randn(30, 4, 3)
    distances = ((represented(network, drawn) - network.centre.double().numpy()) ** 2).sum(axis=1)
    expected = distances.mean()
    if objective == "soft-boundary":
        squared = detector.radius_**2
        assert squared > 0.0
        expected = squared + np.maximum(distances - squared, 0.0).mean() / 0.25
    weights = sum(float(weight.detach().double().square().sum()) for weight in network.encoder.parameters())
    assert detector._loss(drawn).item() == pytest.approx(expected, rel=1e-5)
    network.train()
    assert detector._loss(drawn).item() == pytest.approx(expected + 0.15 * weights, rel=1e-5)


@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_the_radius_leaves_its_share_of_all_training_windows_outside(nu: float) -> None:
    detector = small(objective="soft-boundary", nu=nu, held_out=0.0).fit(waves())
    scores = detector.score(waves())[WINDOW - 1 :]
    assert np.mean(scores > detector.radius_**2) == pytest.approx(nu, abs=1.0 / len(scores))
    assert detector.radius_**2 == pytest.approx(np.quantile(scores, 1.0 - nu), rel=1e-4)


def test_a_score_is_the_squared_distance_of_the_window_that_ends_with_its_row() -> None:
    detector = small().fit(waves())
    fresh, network = waves(40, seed=1), detector.network_
    given = windows(padded(in_deviations(fresh, waves()), WINDOW - 1), WINDOW)
    found = represented(network, given) - network.centre.double().numpy()
    np.testing.assert_allclose(detector.score(fresh), (found**2).sum(axis=1), rtol=1e-4)


def test_contributions_are_input_times_gradient_and_sum_to_the_score() -> None:
    detector = small().fit(waves())
    fresh, network = waves(40, seed=1), detector.network_
    given = windows(in_deviations(fresh, waves()), WINDOW).requires_grad_()
    apart = network.encoder(given.flatten(1)) - network.centre
    (gradient,) = torch.autograd.grad(0.5 * apart.square().sum(), given)
    constant = (apart * network.centre).sum(dim=1, keepdim=True) / 3
    expected = ((gradient * given).sum(dim=1) - constant).detach().numpy()
    found = detector.contributions(fresh)
    np.testing.assert_allclose(found[WINDOW - 1 :], expected, rtol=1e-3, atol=1e-4)
