"""LSTM variational autoencoder: the window's summary is a distribution over a few latent variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Recording, Traits, Tune, detector, extra

with extra("lstm-vae", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.gaussian import clamped, drawn, surprise
    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size


@detector
class LSTMVAE(NetworkDetector):
    """Scores how improbable a window's last row is under an LSTM variational autoencoder.

    The encoder gives mean and variance of the latent variables z, the decoder mean and variance of every row given z.
    The score is the sum of the sensors' contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once.
    size
        "default", or "paper": the published widths where they are None.
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
        the window. Loss: ``-log p(x|z) + beta KL(q(z|x) || N(0, I))``, both summed, z drawn once, beta rising to 1 in
        ``warm_up`` equal steps. Score: ``-log p(x|z)`` of the last row at ``z = mu``.
    Differences
        The paper adds noise to its input and lets its prior move with the task's progress; here the prior is standard
        normal. The SKAB benchmark's network draws z with the logarithm of the variance as its deviation, has more
        latent variables than inputs, and a tanh output, which no z-score above 1 can reach; this one has none of these
        faults, and scoring draws nothing.
    Defaults
        hidden_size = 32 is the SKAB benchmark's. latent_size = 4 for 8 sensors (not 100, more than the 40 values of its
        windows): a bottleneck must be narrower than its input. The window of 30 rows, Adam (there RMSprop), 30 epochs
        (there 20) and the weight of the divergence are this project's. Batches of 128 (not 1) for cost.

    References
    ----------
    D. Park, Y. Hoshi and C. Kemp, A multimodal anomaly detector for robot-assisted feeding using an LSTM-based
    variational autoencoder, IEEE Robotics and Automation Letters 3(3), 2018. The widths of size "paper", 32 and 100,
    are those of the network that the SKAB benchmark had, in windows of 5 rows; ``window`` does not depend on ``size``.
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction", stochastic=True, extra="deep", paper="Park et al., RA-L 2018"
    )
    paper: ClassVar[Mapping[str, int]] = {"hidden_size": 32, "latent_size": 100}

    window: Annotated[int, Tune(10, 60, log=True, alters_loss=True), Cheap(8)] = 30
    size: Size = "default"
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 16, 64)), Cheap(8)] = None
    latent_size: Annotated[int | None, Ge(1), Choice((None, 2, 8, 16))] = None
    warm_up: Annotated[int, Ge(1), Tune(1, 10)] = 5
    epochs: Annotated[int, Cheap(2)] = 30
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 128
    patience: int = 5

    network_: Network = field(init=False)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        hidden_size = self._given_or("hidden_size", max(32, 2 * n_sensors))
        return Network(n_sensors, hidden_size, self._given_or("latent_size", max(4, n_sensors / 2)))

    def _loss(self, windows: Tensor) -> Tensor:
        mean, log_variance = self.network_.encode(windows)
        if self.network_.training:
            latent = drawn(mean, log_variance, torch.randn_like(mean))
            beta = min(1.0, self._epoch / self.warm_up)
        else:
            # Held-out losses are the bound itself, at z's mean, so that those of all epochs can be compared.
            latent, beta = mean, 1.0
        return (self._surprise(windows, latent).sum((1, 2)) + beta * divergence(mean, log_variance)).mean()

    def _surprise(self, windows: Tensor, latent: Tensor) -> Tensor:
        """Return ``-log p(x|z)`` of every value, [batch, window, n_sensors]."""
        return surprise(windows, *self.network_.decode(latent, windows.shape[1]))

    def _row_terms(self, windows: Tensor) -> Tensor:
        mean, _ = self.network_.encode(windows)
        return self._surprise(windows, mean)[:, -1]


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of normal distributions [batch, size] from the standard one, [batch]."""
    return 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(dim=1)


class Network(nn.Module):
    """Encoder and decoder, each one LSTM layer with a linear head."""

    def __init__(self, n_sensors: int, hidden_size: int, latent_size: int) -> None:
        super().__init__()
        self.encoder = nn.LSTM(n_sensors, hidden_size, batch_first=True)
        self.to_latent = nn.Linear(hidden_size, 2 * latent_size)
        self.decoder = nn.LSTM(latent_size, hidden_size, batch_first=True)
        self.to_rows = nn.Linear(hidden_size, 2 * n_sensors)

    def encode(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and logarithm of the variance of z, [batch, latent_size] each."""
        mean, log_variance = self.to_latent(self.encoder(windows)[0][:, -1]).chunk(2, dim=-1)
        return mean, clamped(log_variance)

    def decode(self, latent: Tensor, window: int) -> tuple[Tensor, Tensor]:
        """Return mean and logarithm of the variance of the rows, [batch, window, n_sensors] each."""
        states, _ = self.decoder(latent[:, None].expand(-1, window, -1))
        mean, log_variance = self.to_rows(states).chunk(2, dim=-1)
        return mean, clamped(log_variance)
