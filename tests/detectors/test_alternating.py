"""Training with several losses: which weights each gradient reaches, and in which order steps are taken."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tests.helpers.planted import noise
from tsadbench import Recording
from tsadbench_detectors.deep.training import Training, TrainingPlan
from tsadbench_detectors.deep.windows import Windows
from tsadbench_detectors.tranad import TranAD
from tsadbench_detectors.usad import USAD

N_SENSORS = 3


class Pair(nn.Module):
    """A shared layer and two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.first, self.second = (nn.Linear(N_SENSORS, N_SENSORS) for _ in range(3))

    def losses(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Return two adversarial losses: the second head raises an error that the first head lowers."""
        hidden = torch.tanh(self.shared(windows))
        one, two = self.first(hidden), self.second(torch.tanh(self.first(hidden)))
        reconstruction, adversary = (one - windows).square().mean(), (two - windows).square().mean()
        return reconstruction + 0.5 * adversary, 0.1 * (self.second(hidden) - windows).square().mean() - adversary

    def optimisers(self, second_rate: float) -> list[torch.optim.Optimizer]:
        shared, first, second = (list(part.parameters()) for part in self.children())
        return [torch.optim.Adam([*shared, *first], 1e-2), torch.optim.Adam([*shared, *second], second_rate)]


def some_windows() -> Windows:
    return Windows([torch.from_numpy(noise(60, N_SENSORS)).float()], 5)


def by_hand(network: Pair, second_rate: float) -> list[list[float]]:
    """Train three epochs, each loss differentiated in its own copy of the network; return the losses by epoch."""
    windows, order = some_windows(), torch.Generator().manual_seed(4)
    adams = network.optimisers(second_rate)
    losses = []
    for _ in range(3):
        of_epoch = []
        for batch in torch.split(torch.randperm(len(windows), generator=order), 16):
            gradients = []
            for number in range(2):
                alone = copy.deepcopy(network)
                loss = alone.losses(windows[batch])[number]
                loss.backward()  # type: ignore[no-untyped-call]
                if number == 0:
                    of_epoch += len(batch) * [loss.item()]
                trained = alone.optimisers(second_rate)[number].param_groups[0]["params"]
                gradients.append([parameter.grad for parameter in trained])
            for adam, of_loss in zip(adams, gradients, strict=True):
                for weight, gradient in zip(adam.param_groups[0]["params"], of_loss, strict=True):
                    weight.grad = gradient
                adam.step()
        losses.append(of_epoch)
    return losses


@pytest.mark.parametrize("second_rate", [1e-2, 3e-3])
def test_the_weights_match_a_plain_loop_with_separate_networks(second_rate: float) -> None:
    torch.manual_seed(0)
    network = Pair()
    expected = copy.deepcopy(network)
    losses = by_hand(expected, second_rate)
    plan = TrainingPlan(
        epochs=3, min_steps=1, max_steps=None, batch_size=16, learning_rate=1e-2, held_out=0.0, patience=1, seed=4
    )
    optimisers = network.optimisers(second_rate)
    training = Training(
        "pair", network, lambda windows: network.losses(windows)[0], network.losses, optimisers, some_windows(), plan
    )
    facts = training.run()
    for found, by_loop in zip(network.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(found, by_loop, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose([loss for loss, _ in training.losses], [np.mean(one) for one in losses], rtol=1e-5)
    assert facts["steps"] == 3 * math.ceil(56 / 16)
    assert facts["loss"] == training.losses[-1][0]


@pytest.mark.parametrize(
    ("cls", "parts"),
    [
        (USAD, [{"encoder", "first"}, {"encoder", "second"}]),
        (TranAD, [{"first"}, {"second"}, {"query", "context", "to_window", "to_context"}]),
    ],
)
def test_each_loss_trains_its_own_part(cls: type[USAD | TranAD], parts: list[set[str]]) -> None:
    class Kept(cls):  # type: ignore[valid-type,misc]
        """Keeps its network from the start."""

        def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
            self.built_ = super()._build_network(recordings)
            return self.built_

    detector, reached = Kept(**{**cls.test_params(), "least_weight": 0.0, "epochs": 3}), list[set[str]]()

    def look(*_: object) -> None:
        weights = detector.built_.named_parameters()
        reached.append({name.split(".")[0] for name, weight in weights if weight.grad is not None})

    hook = register_optimizer_step_pre_hook(look)
    detector.fit(noise(120, 3))
    hook.remove()
    assert reached == 3 * parts
