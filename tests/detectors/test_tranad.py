"""TranAD: its network, losses and score by hand, what each part learns from, and a fault that it finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from tests.helpers.planted import in_range, noise
from tsadbench.base import FloatArray
from tsadbench_detectors.tranad import TranAD

N_SENSORS = 3
TRAINING = noise(120, N_SENSORS)
TEST = noise(40, N_SENSORS, seed=1)


def fitted(**parameters: object) -> TranAD:
    return TranAD(**{**TranAD.test_params(), **parameters}).fit(TRAINING)  # type: ignore[arg-type]


class ByHand:
    """The network in numpy, for one window at a time, from the equations."""

    def __init__(self, detector: TranAD, width: int, heads: int) -> None:
        weights = detector.network_.state_dict().items()
        self.weights = {name: tensor.double().numpy() for name, tensor in weights}
        self.width, self.heads = width, heads

    def dense(self, name: str, inputs: FloatArray) -> FloatArray:
        return np.asarray(inputs @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"])

    def feed_forward(self, name: str, inputs: FloatArray) -> FloatArray:
        return self.dense(f"{name}.2", np.maximum(self.dense(f"{name}.0", inputs), 0))

    def norm(self, name: str, tokens: FloatArray) -> FloatArray:
        centred = tokens - tokens.mean(axis=-1, keepdims=True)
        normed = centred / np.sqrt(tokens.var(axis=-1, keepdims=True) + 1e-5)
        return np.asarray(normed * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"])

    def attention(self, queries: FloatArray, keys: FloatArray, values: FloatArray) -> FloatArray:
        """Attend with projected queries [n, width] to projected keys and values [m, width], head by head."""
        size, attended = self.width // self.heads, []
        for head in range(self.heads):
            part = slice(head * size, (head + 1) * size)
            shares = softmax(queries[:, part] @ keys[:, part].T / np.sqrt(size), axis=1)
            attended.append(shares @ values[:, part])
        return np.concatenate(attended, axis=1)

    def attend_to(self, name: str, token: FloatArray, others: FloatArray) -> FloatArray:
        keys, values = np.split(self.dense(f"{name}.keys_and_values", others), 2, axis=1)
        attended = self.attention(self.dense(f"{name}.query", token[None]), keys, values)
        return self.norm(f"{name}.norm", token + self.dense(f"{name}.output", attended)[0])

    def token(self, row: FloatArray, focus: FloatArray, position: int) -> FloatArray:
        rates = [10_000 ** (-2 * (element // 2) / self.width) for element in range(self.width)]
        code = [(np.cos if element % 2 else np.sin)(position * rate) for element, rate in enumerate(rates)]
        padding = np.zeros(self.width - 2 * N_SENSORS)
        return np.asarray(np.sqrt(N_SENSORS) * np.concatenate([row, focus, padding]) + code)

    def reconstructions(self, window: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        row, nothing = window[-1], np.zeros(N_SENSORS)
        past = np.stack([self.token(earlier, nothing, position) for position, earlier in enumerate(window[:-1])])
        weight, bias = (self.weights[f"context.0.attention.in_proj_{kind}"] for kind in ("weight", "bias"))
        attended = self.attention(*np.split(past @ weight.T + bias, 3, axis=1))
        context = self.norm("context.0.norm", past + self.dense("context.0.attention.out_proj", attended))
        context = self.norm("context.1.norm", context + self.feed_forward("context.1.layers", context))

        def encoded(focus: FloatArray) -> FloatArray:
            token = self.token(self.weights["query"], focus, len(window) - 1)
            state = self.attend_to("to_window", token, np.vstack([past, token]))
            return self.attend_to("to_context", state, context)

        first, second = (expit(self.feed_forward(decoder, encoded(nothing))) for decoder in ("first", "second"))
        return first, second, expit(self.feed_forward("second", encoded((first - row) ** 2)))


def errors(detector: TranAD, width: int, heads: int) -> tuple[FloatArray, ...]:
    """Return the squared errors of O1, O2 and O2' for the test rows that end a full window, [n, n_sensors] each."""
    network, rows = ByHand(detector, width, heads), in_range(TEST, TRAINING)
    windows = [rows[end - detector.window : end] for end in range(detector.window, len(rows) + 1)]
    by_window = [[(made - window[-1]) ** 2 for made in network.reconstructions(window)] for window in windows]
    return tuple(np.array(one) for one in zip(*by_window, strict=True))


@pytest.mark.parametrize(
    ("parameters", "width", "heads"), [({}, 16, 2), ({"size": "paper"}, 6, 3), ({"heads": 4, "window": 2}, 16, 4)]
)
def test_contributions_are_the_mean_of_two_squared_errors(
    parameters: dict[str, object], width: int, heads: int
) -> None:
    detector = fitted(**parameters)
    first, _, again = errors(detector, width, heads)
    found = detector.contributions(TEST)[detector.window - 1 :]
    np.testing.assert_allclose(found, (first + again) / 2, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(detector.score(TEST)[detector.window - 1 :], found.sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize(
    ("epoch", "epsilon", "least_weight", "weight"), [(1, 1.25, 0.0, 0.8), (3, 1.25, 0.0, 0.512), (9, 1.25, 0.3, 0.3)]
)
def test_the_losses_are_the_papers(epoch: int, epsilon: float, least_weight: float, weight: float) -> None:
    detector = fitted(epsilon=epsilon, least_weight=least_weight)
    detector.losses_ = (epoch - 1) * [(0.0, 0.0)]
    first, second, again = (float(error.mean()) for error in errors(detector, 16, 2))
    rows = torch.from_numpy(in_range(TEST, TRAINING)).float()
    found = [loss.item() for loss in detector._losses(rows.unfold(0, 6, 1).transpose(1, 2))]
    one, other = weight * first + (1 - weight) * again, weight * second - (1 - weight) * again
    np.testing.assert_allclose(found, [one, other, one + other], rtol=1e-3)
    np.testing.assert_allclose(detector.held_out_loss(TEST), (first + again) / 2, rtol=1e-3)
