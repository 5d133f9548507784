"""Deep SVDD: an encoder without biases draws the training windows together around a fixed centre."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np

from tsadbench.base import LEVELLED, Cheap, Choice, FloatArray, Ge, Gt, Lt, Recording, Traits, Tune, detector, extra

with extra("deep-svdd", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import mse_loss

    from tsadbench_detectors.deep.network_detector import NetworkDetector
    from tsadbench_detectors.deep.windows import WINDOWS_AT_ONCE, Windows

Objective: TypeAlias = Literal["one-class", "soft-boundary"]

_LEAST_OF_CENTRE = 0.1  # least distance of the centre's coordinates from 0, where zero weights map every window
_SLOPE = 0.1  # of a leaky ReLU, as in the reference code


@detector
class DeepSVDD(NetworkDetector):
    """Scores the squared distance of a window's representation from the centre that training drew all windows to.

    An autoencoder is trained to reconstruct windows. The mean of its encoder's representations of the training windows
    is the centre, and the encoder is trained on to bring them closer to it. The networks have no biases: with them, an
    encoder could map every window to the centre. A window scores its last row.

    Without biases the representation is a sum over the inputs, ``phi(x) = J(x) x``, and so is the score: a sensor's
    contribution is its part of that sum plus an equal share of the constant. Contributions may be negative; they sum
    to the score.

    Parameters of training, and ``device``: see `NetworkDetector`. ``min_steps`` and ``max_steps`` count the steps of
    both phases; half of ``max_steps`` goes to the first one.

    Parameters
    ----------
    window
        Rows that the network sees at once.
    hidden_size
        Width of the encoder's first layer; the second has half of it. None: 64, or 8 times as many as there are sensors
        if that is more.
    representation_size
        Width of the representation. None: 16, or twice as many as there are sensors if that is more.
    objective
        "one-class": the mean squared distance. "soft-boundary": the smallest sphere around the centre with few windows
        outside.
    nu
        Share of the training windows outside the sphere, with a soft boundary.
    warm_up
        Epochs with radius 0 at the beginning, with a soft boundary.
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
        The paper's encoders are convolutional networks for images; here they are dense layers on windows of
        standardised rows, without batch normalisation, whose running means would be biases. After its warm-up
        the reference code takes R from each batch, and it does not stop early; here R^2 is the (1 - nu) quantile of the
        squared distances of all training windows (with ``max_steps``, of some), computed before each epoch. A
        coordinate of the centre that is exactly 0 stays there in the reference; here it becomes 0.1. With a soft
        boundary, the reference subtracts R^2 from scores, which changes no ranking. The learning rate is constant. The
        training facts show whether the representation collapses to one point: ``spread`` is its standard deviation over
        held-out windows, averaged over its coordinates, and ``spread_before`` the same before the second phase.
    Defaults
        Batches of 200, nu 0.1, weight decay 1e-6 and the warm-up's share of the epochs (10 of 150, rounded up) are
        those of the paper's code. A window of 30 rows is this project's; widths follow the number of values. 10 epochs
        a phase (there 150 or more) are 500 to 900 steps on SKAB, hence the rate of 1e-3 (1e-4). No default was chosen
        by the loss on held-out rows, which is smallest if everything collapses.

    References
    ----------
    L. Ruff, R. Vandermeulen, N. Goernitz, L. Deecke, S. A. Siddiqui, A. Binder, E. Mueller and M. Kloft, Deep one-class
    classification, ICML 2018 (PMLR 80).
    """

    traits: ClassVar[Traits] = Traits(
        family="one-class", stochastic=True, extra="deep", paper="Ruff et al., ICML 2018", differs=("schedule differs",)
    )
    network_: Network = field(init=False)

    # The loss, a distance from the centre, says nothing about quality: it is smallest if everything collapses.
    window: Annotated[int, Tune(5, 60, log=True, alters_loss=True), Cheap(8)] = 30
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 32, 128), alters_loss=True), Cheap(16)] = None
    representation_size: Annotated[int | None, Ge(1), Choice((None, 4, 8, 32), alters_loss=True), Cheap(8)] = None
    objective: Annotated[Objective, Choice(("one-class", "soft-boundary"), alters_loss=True)] = "one-class"
    nu: Annotated[float, Gt(0), Lt(1)] = 0.1
    warm_up: Annotated[int, Ge(0)] = 1
    weight_decay: Annotated[float, Ge(0), Lt(math.inf)] = 1e-6
    pretraining_epochs: Annotated[int, Ge(0), Choice((0, 5, 10, 20), alters_loss=True), Cheap(2)] = 10
    epochs: Annotated[int, Cheap(2)] = 10
    batch_size: int = 200
    learning_rate: Annotated[float, Tune(1e-4, 1e-2, log=True, alters_loss=True)] = 1e-3
    patience: int = 5

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n = recordings[0].n_sensors
        hidden_size = self._given_or("hidden_size", max(64, 8 * n))
        return Network(self.window * n, hidden_size, self._given_or("representation_size", max(16, 2 * n)))

    def _train(self, windows: Windows) -> None:
        """Train the autoencoder, place the centre, then draw the representations to it."""
        plan = self._plan
        trained, held_out = windows.hold_out(self.held_out)
        some, watched = (part[:: plan.gap(len(part))] for part in (trained, held_out if len(held_out) else trained))
        self._pretrain(windows)
        first, n_taken = self.facts_, int(self.facts_.get("steps") or 0)
        self.network_.centre.copy_(centre_of(self._represented(windows, some)))
        spread_before = self._spread(windows, watched)
        soft, steps_an_epoch = self.objective == "soft-boundary", plan.steps_an_epoch(len(trained))
        self.radius_ = 0.0

        def set_radius(step: int) -> None:
            if soft and step % steps_an_epoch == 0 and step >= self.warm_up * steps_an_epoch:
                self.radius_ = self._radius(windows, some)

        encoder = self._adam(self.network_.encoder.parameters())
        self._train_part(windows, plan.rest(n_taken), optimisers=[encoder], before_step=set_radius)
        if soft:
            self.radius_ = self._radius(windows, some)
        self.facts_ = {
            **self.facts_,
            LEVELLED: bool(first.get(LEVELLED, True)) and bool(self.facts_[LEVELLED]),
            "pretraining_steps": n_taken,
            "pretraining_loss": first.get("loss"),
            "spread_before": spread_before,
            "spread": self._spread(windows, watched),
        }

    def _pretrain(self, windows: Windows) -> None:
        """Train the autoencoder for at most half of the steps."""
        plan = self._plan
        most = None if plan.max_steps is None else plan.max_steps // 2
        if self.pretraining_epochs > 0 and most != 0:
            fewest = math.ceil(plan.min_steps / 2)
            plan = replace(plan, epochs=self.pretraining_epochs, min_steps=fewest, max_steps=most)
            self._train_part(windows, plan, loss=self.network_.reconstruction_loss)

    def _loss(self, windows: Tensor) -> Tensor:
        distances = self.network_.squared_distances(windows)
        soft = self.objective == "soft-boundary"
        loss = soft_boundary_loss(distances, self.radius_, self.nu) if soft else distances.mean()
        if self.network_.training:
            loss = loss + self.weight_decay / 2 * sum(one.square().sum() for one in self.network_.encoder.parameters())
        return loss

    def _represented(self, windows: Windows, numbers: Tensor) -> Tensor:
        """Return the representations of the windows with these numbers, [n_numbers, representation_size]."""
        with torch.no_grad():
            batches = torch.split(numbers, WINDOWS_AT_ONCE)
            return torch.cat([self.network_.encoder(windows[batch].flatten(1)) for batch in batches])

    def _radius(self, windows: Windows, numbers: Tensor) -> float:
        """Return the radius that leaves the share ``nu`` of the windows with these numbers outside."""
        distances = (self._represented(windows, numbers) - self.network_.centre).square().sum(dim=1)
        return math.sqrt(np.quantile(distances.cpu().numpy(), 1.0 - self.nu))

    def _spread(self, windows: Windows, numbers: Tensor) -> float:
        """Return the standard deviation of the representation, averaged over its coordinates."""
        return float(self._represented(windows, numbers).std(dim=0, correction=0).mean())

    def _score(self, recording: Recording) -> FloatArray:
        return self._by_row(recording, self.network_.squared_distances)

    def _row_terms(self, windows: Tensor) -> Tensor:
        return self.network_.parts_by_sensor(windows)


def centre_of(representations: Tensor) -> Tensor:
    """Return the mean representation, [size]; coordinates within 0.1 of 0 become 0.1, or -0.1 if they are negative.

    Examples
    --------
    >>> centre_of(torch.tensor([[0.5, -0.02, 0.0], [0.7, -0.04, 0.0]]))
    tensor([ 0.6000, -0.1000,  0.1000])
    """
    mean = representations.mean(dim=0)
    least = torch.where(mean < 0.0, -_LEAST_OF_CENTRE, _LEAST_OF_CENTRE).to(mean.dtype)
    return torch.where(mean.abs() < _LEAST_OF_CENTRE, least, mean)


def soft_boundary_loss(distances: Tensor, radius: float, nu: float) -> Tensor:
    """Return the squared radius plus, over ``nu``, the mean excess of squared distances [n_windows] over it."""
    return radius**2 + (distances - radius**2).clamp(min=0.0).mean() / nu


class Network(nn.Module):
    """Encoder and decoder of flattened windows, without biases, and the centre of the representations."""

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
        return mse_loss(self.decoder(self.encoder(values)), values)

    def squared_distances(self, windows: Tensor) -> Tensor:
        """Return each window's squared distance from the centre, [batch]."""
        return torch.as_tensor(self.encoder(windows.flatten(1)) - self.centre).square().sum(dim=1)

    def parts_by_sensor(self, windows: Tensor) -> Tensor:
        """Return the squared distances split by sensor, [batch, n_sensors].

        ``|phi - c|^2 = (phi - c)' J x - (phi - c)' c``, and ``(phi - c)' J`` is the gradient of half the distance.
        """
        with torch.enable_grad():
            values = windows.clone().requires_grad_()
            apart = self.encoder(values.flatten(1)) - self.centre
            (gradient,) = torch.autograd.grad(apart.square().sum() / 2, values)
        constant = (apart * self.centre).sum(dim=1, keepdim=True) / windows.shape[2]
        return torch.as_tensor((gradient * windows).sum(dim=1) - constant).detach()


def _layers(widths: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out, bias=False), nn.LeakyReLU(_SLOPE)]
    return nn.Sequential(*layers[:-1])
