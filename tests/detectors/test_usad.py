"""USAD: its two losses, score and widths by hand, and the gradient from the second decoder to the first."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.planted import in_range, noise, windows
from tsadbench_detectors.usad import USAD

TRAINING = noise(120, 3)
TEST = noise(50, 3, seed=1)


def fitted(**parameters: object) -> USAD:
    return USAD(**{**USAD.test_params(), **parameters}).fit(TRAINING)  # type: ignore[arg-type]


def cut(detector: USAD) -> Tensor:
    """Return the test rows' full windows, each as one vector."""
    return windows(in_range(TEST, TRAINING), detector.window).flatten(1)


@torch.no_grad()
def reconstructions(detector: USAD, given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    encoder, first, second = (detector.network_.get_submodule(part) for part in ("encoder", "first", "second"))
    made = first(encoder(given))
    return made, second(encoder(given)), second(encoder(made))


def unflattened(detector: USAD, given: Tensor) -> Tensor:
    return given.reshape(len(given), detector.window, -1)


@pytest.mark.parametrize(
    ("epoch", "least_weight", "weight"),
    [(1, 0.6, 1.0), (5, 0.0, 0.2), (50, 0.1, 0.1)],
)
def test_both_losses_are_the_papers(epoch: int, least_weight: float, weight: float) -> None:
    detector = fitted(least_weight=least_weight)
    detector.losses_ = (epoch - 1) * [(0.0, 0.0)]
    given = cut(detector)
    first, second, again = (float(((made - given) ** 2).mean()) for made in reconstructions(detector, given))
    losses = [loss.item() for loss in detector._losses(unflattened(detector, given))]
    expected = [weight * first + (1 - weight) * again, weight * second - (1 - weight) * again]
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_contributions_are_both_errors_of_the_windows_last_row() -> None:
    detector = fitted(alpha=0.3)
    given = cut(detector)
    first, _, again = ((made - given)[:, -3:] ** 2 for made in reconstructions(detector, given))
    found = detector.contributions(TEST)[detector.window - 1 :]
    np.testing.assert_allclose(found, 0.3 * first + 0.7 * again, rtol=1e-3, atol=1e-7)


def test_the_held_out_loss_is_the_mean_of_the_scores_two_errors() -> None:
    detector = fitted()
    given = cut(detector)
    first, _, again = reconstructions(detector, given)
    expected = ((first - given) ** 2 + (again - given) ** 2).mean().item() / 2
    np.testing.assert_allclose(detector.held_out_loss(TEST), expected, rtol=1e-4)


def test_the_published_widths() -> None:
    network = USAD(window=12, size="paper", max_steps=1).fit(noise(60, 51)).network_
    kinds = [type(layer) for layer in network.get_submodule("first")]
    assert kinds == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear, nn.Sigmoid]
    widths = [layer.out_features for layer in network.modules() if isinstance(layer, nn.Linear)]
    assert widths == [306, 153, 40, 153, 306, 612, 153, 306, 612]


def test_the_second_decoders_error_on_the_firsts_output_trains_the_first() -> None:
    detector = fitted()
    again = detector.network_(unflattened(detector, cut(detector)))[2]
    (gradient,) = torch.autograd.grad(again.square().mean(), detector.network_.get_parameter("first.4.weight"))
    assert gradient.abs().max() > 0
