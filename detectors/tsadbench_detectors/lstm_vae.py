"""LSTM variational autoencoder: the window's summary is a distribution over a few latent variables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tsadbench.base import Choice, FloatArray, Recording, Space, Traits, Tune, extra

with extra("lstm-vae", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.sizes import Size, SizedNetwork, Width

# exp(-6) of a standardised sensor's variance. A decoder that is more certain than that of a sensor that hardly moves
# would make the loss diverge.
_SMALLEST_LOG_VARIANCE, _LARGEST_LOG_VARIANCE = -6.0, 6.0


class LSTMVAE(SizedNetwork):
    """Scores how improbable a window's last row is under an LSTM variational autoencoder.

    The encoder gives mean and variance of the latent variables z, the decoder mean and variance of every row given z.
    The loss is the negative evidence lower bound: ``-log p(x|z)`` summed over the window, z drawn once, plus the
    Kullback-Leibler divergence of ``q(z|x)`` from the standard normal distribution, whose weight rises from 0 to 1
    over the first ``warm_up`` epochs. The score is ``-log p(x|z)`` of the last row at z's mean: nothing is drawn.
    It is the sum of the sensors' terms, which are its contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that it sees at once.
    size
        "default", or "paper": the published widths of what is None. What is given counts at either size.
    hidden_size
        Width of both layers. None: 32, or twice as many as there are sensors if that is more; at size "paper" 32.
    latent_size
        Latent variables. None: 4, or half as many as there are sensors if that is more; at size "paper" 100.
    warm_up
        Epochs over which the divergence's weight rises to 1.

    Notes
    -----
    Equations
        ``z ~ q(z|x) = N(mu, exp(v))`` from the encoder's last state; ``p(x|z) = N(m(z), exp(w(z)))`` for every value of
        the window. Loss: ``-log p(x|z) + beta KL(q(z|x) || N(0, I))``, both summed, beta rising from 0 to 1. Score:
        ``-log p(x|z)`` of the last row at ``z = mu``.
    Differences
        The paper adds noise to its input and lets its prior move with the task's progress; here the prior is standard
        normal. The network that the SKAB benchmark had draws z with the logarithm of the variance as its deviation, has
        more latent variables than inputs, and a tanh output, which no z-score above 1 can reach; this one has none of
        these faults, and scores nothing that is drawn.
    Defaults
        hidden_size = 32 is the SKAB benchmark's. latent_size = 4 for 8 sensors (not 100, more than the 40 values of its
        windows): a bottleneck must be narrower than what passes it. The window of 30 rows is this project's. Batches of
        128 (not 1) by cost.

    References
    ----------
    D. Park, Y. Hoshi and C. Kemp, A multimodal anomaly detector for robot-assisted feeding using an LSTM-based
    variational autoencoder, IEEE Robotics and Automation Letters 3(3), 2018. The widths of size "paper", 32 and 100,
    are those of the network that the SKAB benchmark had, in windows of 5 rows; ``window`` does not depend on ``size``.
    """

    widths: ClassVar[Mapping[str, Width]] = {
        "hidden_size": Width(32, per_sensor=2, paper=32),
        "latent_size": Width(4, per_sensor=1 / 2, paper=100),
    }
    traits: ClassVar[Traits] = Traits(
        family="reconstruction", stochastic=True, extra="deep", paper="Park et al., RA-L 2018"
    )

    def __init__(
        self,
        *,
        window: int = 30,
        stride: int = 1,
        size: Size = "default",
        hidden_size: int | None = None,
        latent_size: int | None = None,
        warm_up: int = 5,
        epochs: int = 30,
        min_steps: int = 500,
        max_steps: int | None = None,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        held_out: float = 0.1,
        patience: int = 5,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.window = window
        self.stride = stride
        self.size = size
        self.hidden_size = hidden_size
        self.latent_size = latent_size
        self.warm_up = warm_up
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
        return {
            "window": Tune(10, 60, log=True, alters_loss=True),
            "hidden_size": Choice((None, 16, 64)),
            "latent_size": Choice((None, 2, 8, 16)),
            "warm_up": Tune(1, 10),
            "batch_size": Choice((32, 64, 128, 256)),
            "learning_rate": Tune(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"window": 8, "hidden_size": 8, "epochs": 2, "min_steps": 1}

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        self._require_integer("warm_up", at_least=1)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(n_sensors, *(self._width(parameter, n_sensors) for parameter in self.widths))

    def _loss(self, windows: Tensor) -> Tensor:
        mean, log_variance = self.network_.encode(windows)  # type: ignore[operator]
        if not self.network_.training:
            # The held-out loss is the bound itself, at z's mean, whatever the weight of the divergence in this epoch.
            return (self._surprise(windows, mean).sum((1, 2)) + divergence(mean, log_variance)).mean()
        latent = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        weight = min(1.0, (len(self.losses_) + 1) / self.warm_up)
        return (self._surprise(windows, latent).sum((1, 2)) + weight * divergence(mean, log_variance)).mean()

    def _surprise(self, windows: Tensor, latent: Tensor) -> Tensor:
        """Return ``-log p(x|z)`` of every value, [batch, window, n_sensors]."""
        mean, log_variance = self.network_.decode(latent, windows.shape[1])  # type: ignore[operator]
        surprise = torch.addcmul(log_variance, (windows - mean).square(), (-log_variance).exp())
        return torch.as_tensor(0.5 * (surprise + math.log(2 * math.pi)))

    def _contributions(self, recording: Recording) -> FloatArray:
        surprise = np.empty(recording.values.shape)
        for first, windows in self._scored_windows(recording, self.window, before=self.window - 1):
            latent, _ = self.network_.encode(windows)  # type: ignore[operator]
            surprise[self.window - 1 + first] = self._surprise(windows, latent)[:, -1].cpu().numpy()
        return surprise


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of these normal distributions from the standard one, [batch].

    Parameters
    ----------
    mean, log_variance
        [batch, latent_size].
    """
    return 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(dim=1)


class Network(nn.Module):
    """Encoder and decoder, each one LSTM layer with linear heads.

    Parameters
    ----------
    n_sensors
        Sensors of a row.
    hidden_size, latent_size
        As for `LSTMVAE`.
    """

    def __init__(self, n_sensors: int, hidden_size: int, latent_size: int) -> None:
        super().__init__()
        self.encoder = nn.LSTM(n_sensors, hidden_size, batch_first=True)
        self.to_latent = nn.Linear(hidden_size, 2 * latent_size)
        self.decoder = nn.LSTM(latent_size, hidden_size, batch_first=True)
        self.to_rows = nn.Linear(hidden_size, 2 * n_sensors)

    def encode(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and logarithm of the variance of z, [batch, latent_size] each."""
        return _mean_and_log_variance(self.to_latent(self.encoder(windows)[0][:, -1]))

    def decode(self, latent: Tensor, window: int) -> tuple[Tensor, Tensor]:
        """Return mean and logarithm of the variance of the rows, [batch, window, n_sensors] each."""
        states, _ = self.decoder(latent[:, None].expand(-1, window, -1))
        return _mean_and_log_variance(self.to_rows(states))


def _mean_and_log_variance(both: Tensor) -> tuple[Tensor, Tensor]:
    mean, log_variance = both.chunk(2, dim=-1)
    return mean, log_variance.clamp(_SMALLEST_LOG_VARIANCE, _LARGEST_LOG_VARIANCE)
