"""Deep SVDD: an encoder without biases draws the training windows together around a fixed centre."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Literal, TypeAlias, cast, get_args

import numpy as np

from tsadbench.base import (
    LEVELLED,
    Choice,
    FloatArray,
    Recording,
    Space,
    Traits,
    Tune,
    extra,
)

with extra("deep-svdd", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.sizes import SizedNetwork, Width
    from tsadbench_detectors.deep.windows import WINDOWS_AT_ONCE, Windows

Objective: TypeAlias = Literal["one-class", "soft-boundary"]

# A coordinate of the centre is at least so far from 0, which an encoder could reach with all weights at 0.
_LEAST_OF_CENTRE = 0.1
# Of a leaky ReLU, the reference code's.
_SLOPE = 0.1


class DeepSVDD(SizedNetwork):
    """Scores the squared distance of a window's representation from the centre that training drew all windows to.

    An autoencoder is trained to reconstruct windows. Its encoder then maps the training windows to representations
    whose mean is the centre, and is trained on to bring them closer to it. Neither has biases: an encoder with one
    could map any window to the centre. A window belongs to its last row.

    Without biases the representation is a sum over the inputs, ``phi(x) = J(x) x``, and so is the score: a sensor's
    contribution is its part of the sum over the window, plus an equal share of the part that depends on no input. A
    contribution may be negative; they sum to the score.

    Parameters of training, and ``device``: see `NetworkDetector`. ``min_steps`` and ``max_steps`` count the steps of
    both phases; of a bound, half goes to the first one.

    Parameters
    ----------
    window
        Rows that it sees at once.
    hidden_size
        Width of the encoder's first layer; the second has half of it. None: 64, or 8 times as many as there are sensors
        if that is more.
    representation_size
        Width of the representation. None: 16, or twice as many as there are sensors if that is more.
    objective
        "one-class": the mean squared distance. "soft-boundary": a sphere around the centre, as small as it can be
        while few windows lie outside.
    nu
        Of the soft boundary: the share of the training windows that lie outside the sphere, above 0 and below 1.
    warm_up
        Of the soft boundary: epochs until the sphere has a radius; before them it is 0.
    weight_decay
        Half of it times the encoder's squared weights is added to the second phase's loss.
    pretraining_epochs
        Passes of the autoencoder over the training windows; 0: the encoder starts from its initial weights.

    Notes
    -----
    Equations
        ``c = mean phi(x; W)`` over the training windows x after the first phase, each coordinate at least 0.1 from 0.
        One-class: ``mean |phi(x; W) - c|^2 + decay/2 |W|^2``. Soft boundary: ``R^2 + mean max(0, |phi(x; W) - c|^2 -
        R^2) / nu + decay/2 |W|^2``. Score: ``|phi(x; W) - c|^2``. phi: layers of 64, 32 and 16 units without biases,
        leaky ReLUs between them.
    Differences
        The paper's encoders are convolutional networks for images, here they are dense layers on windows of
        standardised rows, without the paper's batch normalisation: its running means would be biases. The reference
        code takes R from the last batch of an epoch; here R^2 is the (1 - nu) quantile of the squared distances of all
        training windows (with ``max_steps``, of some), taken anew before each epoch. It leaves a coordinate of the
        centre that is exactly 0 where it is; here it becomes 0.1. Its score with a soft boundary subtracts R^2, which
        changes no ranking. There is no fall of the learning rate in late epochs. Whether the representation collapses,
        all windows to one point, can be seen from the training facts: ``spread`` is its standard deviation over
        held-out windows, the mean over its coordinates, and ``spread_before`` the same before the second phase.
    Defaults
        Batches of 200, nu 0.1, weight decay 1e-6 and the warm-up's share of the epochs (10 of 150, rounded up) are
        those of the paper's code. A window of 30 rows is this project's. Widths follow the number of values. 10 epochs
        in each phase, instead of 150 or more, are this project's 500 to 800 steps on SKAB, hence the rate of 1e-3
        instead of 1e-4. The loss on held-out rows chose nothing: it is smallest if everything collapses.

    References
    ----------
    L. Ruff, R. Vandermeulen, N. Goernitz, L. Deecke, S. A. Siddiqui, A. Binder, E. Mueller and M. Kloft, Deep one-class
    classification, ICML 2018 (PMLR 80).
    """

    widths: ClassVar[Mapping[str, Width]] = {
        "hidden_size": Width(64, per_sensor=8),
        "representation_size": Width(16, per_sensor=2),
    }
    traits: ClassVar[Traits] = Traits(family="one-class", stochastic=True, extra="deep", paper="Ruff et al., ICML 2018")

    def __init__(
        self,
        *,
        window: int = 30,
        stride: int = 1,
        hidden_size: int | None = None,
        representation_size: int | None = None,
        objective: Objective = "one-class",
        nu: float = 0.1,
        warm_up: int = 1,
        weight_decay: float = 1e-6,
        pretraining_epochs: int = 10,
        epochs: int = 10,
        min_steps: int = 500,
        max_steps: int | None = None,
        batch_size: int = 200,
        learning_rate: float = 1e-3,
        held_out: float = 0.1,
        patience: int = 5,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.window = window
        self.stride = stride
        self.hidden_size = hidden_size
        self.representation_size = representation_size
        self.objective = objective
        self.nu = nu
        self.warm_up = warm_up
        self.weight_decay = weight_decay
        self.pretraining_epochs = pretraining_epochs
        self.epochs = epochs
        self.min_steps = min_steps
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.held_out = held_out
        self.patience = patience
        self.seed = seed
        self.device = device

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:  # noqa: D102
        # The distance from the centre says nothing of the quality: it is smallest if everything collapses.
        return {
            "window": Tune(5, 60, log=True, alters_loss=True),
            "hidden_size": Choice((None, 32, 128), alters_loss=True),
            "representation_size": Choice((None, 4, 8, 32), alters_loss=True),
            "objective": Choice(get_args(Objective), alters_loss=True),
            "pretraining_epochs": Choice((0, 5, 10, 20), alters_loss=True),
            "learning_rate": Tune(1e-4, 1e-2, log=True, alters_loss=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"window": 8, "hidden_size": 16, "representation_size": 8, "epochs": 2, "pretraining_epochs": 2,
                "min_steps": 1}  # fmt: skip

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        self._require(self.objective in get_args(Objective), "objective", f"one of {list(get_args(Objective))}")
        self._require(0 < self.nu < 1, "nu", "a number above 0 and below 1")
        self._require_integer("warm_up", at_least=0)
        self._require(0 <= self.weight_decay < math.inf, "weight_decay", "a number of at least 0")
        self._require_integer("pretraining_epochs", at_least=0)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(self.window * n_sensors, *(self._width(parameter, n_sensors) for parameter in self.widths))

    @property
    def _network(self) -> Network:
        return cast("Network", self.network_)

    def _train(self, windows: Windows) -> None:
        plan = self._plan
        trained_on, held_out = windows.hold_out(self.held_out)
        steps_an_epoch = plan.steps_an_epoch(len(trained_on))
        trained_on, held_out = (part[:: plan.gap(len(part))] for part in (trained_on, held_out))
        watched = held_out if len(held_out) else trained_on
        self._pretrain(windows)
        first = self.facts_
        done = int(first.get("steps") or 0)
        self._network.centre.copy_(centre_of(self._represented(windows, trained_on)))
        spread_before = self._spread(windows, watched)
        self.radius_ = 0.0

        def before_step(step: int) -> None:
            epoch, within = divmod(step, steps_an_epoch)
            if self.objective == "soft-boundary" and within == 0 and epoch >= self.warm_up:
                self.radius_ = self._radius(windows, trained_on)

        bounded = None if plan.max_steps is None else plan.max_steps - done
        rest = replace(plan, min_steps=max(1, plan.min_steps - done), max_steps=bounded)
        encoder = [self._adam(self._network.encoder.parameters())]
        self._train_part(windows, rest, optimisers=encoder, before_step=before_step)
        if self.objective == "soft-boundary":
            self.radius_ = self._radius(windows, trained_on)
        self.facts_ = {
            **self.facts_,
            LEVELLED: bool(first.get(LEVELLED, True)) and bool(self.facts_[LEVELLED]),
            "pretraining_steps": done,
            "pretraining_loss": first.get("loss"),
            "spread_before": spread_before,
            "spread": self._spread(windows, watched),
        }

    def _pretrain(self, windows: Windows) -> None:
        """Train the autoencoder, for half of the steps at most."""
        plan = self._plan
        most = None if plan.max_steps is None else plan.max_steps // 2
        if self.pretraining_epochs == 0 or most == 0:
            return
        fewest = math.ceil(plan.min_steps / 2)
        plan = replace(plan, epochs=self.pretraining_epochs, min_steps=fewest, max_steps=most)
        self._train_part(windows, plan, loss=self._network.reconstruction_loss)

    def _loss(self, windows: Tensor) -> Tensor:
        distances = self._network.squared_distances(windows)
        if self.objective == "one-class":
            loss = distances.mean()
        else:
            loss = soft_boundary_loss(distances, self.radius_, self.nu)
        if not self._network.encoder.training:
            return loss
        return loss + self.weight_decay / 2 * sum(
            weight.square().sum() for weight in self._network.encoder.parameters()
        )

    def _represented(self, windows: Windows, numbers: Tensor) -> Tensor:
        """Return the representations of the windows of these numbers, [n_numbers, representation_size]."""
        with torch.no_grad():
            batches = torch.split(numbers, WINDOWS_AT_ONCE)
            return torch.cat([self._network.encoder(windows[batch].flatten(1)) for batch in batches])

    def _radius(self, windows: Windows, numbers: Tensor) -> float:
        """Return the radius outside of which the share ``nu`` of the windows of these numbers lies."""
        distances = (self._represented(windows, numbers) - self._network.centre).square().sum(dim=1)
        return math.sqrt(np.quantile(distances.cpu().numpy(), 1.0 - self.nu))

    def _spread(self, windows: Windows, numbers: Tensor) -> float:
        """Return the standard deviation of the representation, the mean over its coordinates."""
        return float(self._represented(windows, numbers).std(dim=0, correction=0).mean())

    def _row_terms(self, windows: Tensor) -> Tensor:
        return self._network.parts_by_sensor(windows)

    def _score(self, recording: Recording) -> FloatArray:
        return self._by_row(recording, self._network.squared_distances)


def centre_of(representations: Tensor) -> Tensor:
    """Return their mean, [size], whose coordinates nearer than 0.1 to 0 become 0.1, or -0.1 if they are negative.

    Parameters
    ----------
    representations
        [n_windows, size].

    Examples
    --------
    >>> centre_of(torch.tensor([[0.5, -0.02, 0.0], [0.7, -0.04, 0.0]]))
    tensor([ 0.6000, -0.1000,  0.1000])
    """
    mean = representations.mean(dim=0)
    least = torch.where(mean < 0.0, -_LEAST_OF_CENTRE, _LEAST_OF_CENTRE).to(mean.dtype)
    return torch.where(mean.abs() < _LEAST_OF_CENTRE, least, mean)


def soft_boundary_loss(distances: Tensor, radius: float, nu: float) -> Tensor:
    """Return the squared radius plus how far outside of it windows lie, mean over the windows, divided by nu.

    Parameters
    ----------
    distances
        From the centre, squared, [n_windows].
    """
    return radius**2 + (distances - radius**2).clamp(min=0.0).mean() / nu


class Network(nn.Module):
    """Encoder and decoder of flattened windows, without biases, and the centre of the representations.

    Parameters
    ----------
    n_values
        Values of a window.
    hidden_size, representation_size
        As for `DeepSVDD`.
    """

    def __init__(self, n_values: int, hidden_size: int, representation_size: int) -> None:
        super().__init__()
        widths = [n_values, hidden_size, max(1, hidden_size // 2), representation_size]
        self.encoder = _layers(widths)
        self.decoder = _layers(widths[::-1])
        self.centre: Tensor
        self.register_buffer("centre", torch.zeros(representation_size))

    def reconstruction_loss(self, windows: Tensor) -> Tensor:
        """Return the autoencoder's mean squared error."""
        values = windows.flatten(1)
        return nn.functional.mse_loss(self.decoder(self.encoder(values)), values)

    def squared_distances(self, windows: Tensor) -> Tensor:
        """Return each window's squared distance from the centre, [batch]."""
        distances: Tensor = (self.encoder(windows.flatten(1)) - self.centre).square().sum(dim=1)
        return distances

    def parts_by_sensor(self, windows: Tensor) -> Tensor:
        """Return the squared distances split by sensor, [batch, n_sensors].

        For weights W of a window, ``phi(x) = W3 S2 W2 S1 W1 x`` with the slopes S of the leaky ReLUs, so
        ``|phi - c|^2 = (phi - c)' W3 S2 W2 S1 W1 x - (phi - c)' c``.
        """
        outputs, slopes = windows.flatten(1), []
        for layer in self.encoder:
            if isinstance(layer, nn.LeakyReLU):
                slopes.append(torch.where(outputs < 0.0, _SLOPE, 1.0).to(outputs.dtype))
            outputs = layer(outputs)
        apart = outputs - self.centre
        gradient = apart
        for layer in reversed(self.encoder):
            gradient = gradient @ layer.weight if isinstance(layer, nn.Linear) else gradient * slopes.pop()
        by_value = gradient.view(windows.shape) * windows
        constant = (apart * self.centre).sum(dim=1, keepdim=True) / windows.shape[2]
        return by_value.sum(dim=1) - constant


def _layers(widths: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out, bias=False), nn.LeakyReLU(_SLOPE)]
    return nn.Sequential(*layers[:-1])
