"""TranAD: its network, losses and score by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.planted import in_range, noise, windows
from tsadbench.base import FloatArray
from tsadbench_detectors.tranad import Network, TokenAttention, TranAD

N_SENSORS = 3
TRAINING = noise(120, N_SENSORS)
TEST = noise(40, N_SENSORS, seed=1)


def fitted(**parameters: object) -> TranAD:
    return TranAD(**{**TranAD.test_params(), **parameters}).fit(TRAINING)  # type: ignore[arg-type]


def reconstructions(network: Network, window: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return O1, O2 and O2' of one window [window, n_sensors], from the equations with PyTorch's own attention."""
    row, nothing, width = window[-1], torch.zeros(N_SENSORS), network.padding + 2 * N_SENSORS

    def token(values: Tensor, focus: Tensor, position: int) -> Tensor:
        rates = [10_000 ** (-2 * (element // 2) / width) for element in range(width)]
        code = [(np.cos if element % 2 else np.sin)(position * rate) for element, rate in enumerate(rates)]
        values = torch.cat([values, focus, torch.zeros(network.padding)])
        return N_SENSORS**0.5 * values + torch.tensor(code, dtype=torch.float32)

    def attended(part: TokenAttention, state: Tensor, others: Tensor) -> Tensor:
        inputs = (part.query(state[None]), *part.keys_and_values(others).chunk(2, dim=1))
        heads = (one.unflatten(1, (part.heads, -1)).transpose(0, 1) for one in inputs)
        mixed = nn.functional.scaled_dot_product_attention(*heads).transpose(0, 1).flatten()
        return torch.as_tensor(part.norm(state + part.output(mixed)))

    past = torch.stack([token(earlier, nothing, position) for position, earlier in enumerate(window[:-1])])
    attention, dense = network.context
    context = attention.norm(past + attention.attention(past, past, past)[0])
    context = dense.norm(context + dense.layers(context))

    def encoded(focus: Tensor) -> Tensor:
        last = token(network.query, focus, len(window) - 1)
        return attended(network.to_context, attended(network.to_window, last, torch.vstack([past, last])), context)

    first, second = (decoder(encoded(nothing)) for decoder in (network.first, network.second))
    return first, second, network.second(encoded((first - row).square()))


@torch.no_grad()
def errors(detector: TranAD) -> tuple[FloatArray, ...]:
    """Return the squared errors of O1, O2 and O2' for the test rows that end a full window, [n, n_sensors] each."""
    given = windows(in_range(TEST, TRAINING), detector.window)
    by_window = [[(made - one[-1]).square() for made in reconstructions(detector.network_, one)] for one in given]
    return tuple(torch.stack(one).double().numpy() for one in zip(*by_window, strict=True))


@pytest.mark.parametrize("parameters", [{}, {"size": "paper"}, {"heads": 4, "window": 2}])
def test_contributions_are_the_mean_of_two_squared_errors(parameters: dict[str, object]) -> None:
    detector = fitted(**parameters)
    first, _, again = errors(detector)
    found = detector.contributions(TEST)[detector.window - 1 :]
    np.testing.assert_allclose(found, (first + again) / 2, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(detector.score(TEST)[detector.window - 1 :], found.sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize(
    ("epoch", "epsilon", "least_weight", "weight"), [(1, 1.25, 0.0, 0.8), (3, 1.25, 0.0, 0.512), (9, 1.25, 0.3, 0.3)]
)
def test_the_losses_are_the_papers(epoch: int, epsilon: float, least_weight: float, weight: float) -> None:
    detector = fitted(epsilon=epsilon, least_weight=least_weight)
    detector.losses_ = (epoch - 1) * [(0.0, 0.0)]
    first, second, again = (float(error.mean()) for error in errors(detector))
    found = [loss.item() for loss in detector._losses(windows(in_range(TEST, TRAINING), 6))]
    one, other = weight * first + (1 - weight) * again, weight * second - (1 - weight) * again
    np.testing.assert_allclose(found, [one, other, one + other], rtol=1e-3)
    np.testing.assert_allclose(detector.held_out_loss(TEST), (first + again) / 2, rtol=1e-3)
