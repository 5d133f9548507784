"""OmniAnomaly: a stochastic recurrent network whose latent variables follow each other in time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Recording, Traits, Tune, detector, extra

with extra("omnianomaly", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.gaussian import clamped, drawn, fixed_noise, surprise
    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size
    from tsadbench_detectors.deep.planar_flow import PlanarFlow
    from tsadbench_detectors.deep.random_walk import prior_surprise


@detector
class OmniAnomaly(NetworkDetector):
    """Scores how improbable a window's last row is under a recurrent network with latent variables linked in time.

    At each step, the distribution of the latent variables z_t depends on the encoder's state and on z_{t-1}. Planar
    maps bend that distribution, so that it need not be normal. The decoder turns z_1, ..., z_t into mean and variance
    of the row x_t. The score is the sum of the sensors' contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once.
    size
        "default", or "paper": the published widths where they are None.
    hidden_size
        Width of the recurrent and the dense layers. None: 32, or twice as many as there are sensors if that is more;
        at size "paper" 500.
    latent_size
        Latent variables at each step. None: 4; at size "paper" 3.
    flows
        Planar maps. None: 5; at size "paper" 20.
    samples
        0: the score is taken at z's mean. Otherwise it is the mean of ``-log p(x_t|z)`` over this many draws of z, with
        noise that depends on the seed and is the same for every window.

    Notes
    -----
    Equations
        Encoder: ``h_t = GRU(x_t, h_{t-1})``, ``d_t = relu(W [relu(V h_t + a), z_{t-1}] + b)``,
        ``z_t ~ N(M d_t + m, exp(S d_t + s))``. Flow: K maps ``f(z) = z + u tanh(w'z + c)``, whose Jacobian's
        determinant is ``1 + u'w (1 - tanh(w'z + c)^2)``, u such that ``u'w > -1``. Prior, for each latent variable:
        ``z_t = l_t + N(0, 1)``, ``l_t = l_{t-1} + N(0, 1)``, ``l_1 ~ N(0, 1)``; its density is computed by a Kalman
        filter. Decoder: ``g_t = GRU(z_t, g_{t-1})``, two dense layers, mean and log-variance of x_t. Loss, the negative
        evidence lower bound: ``log q(z|x) - log p(z) - log p(x|z)``, summed over the window, z drawn once. Score:
        ``-log p(x_t|z)`` of the window's last row, at the mean of each z_t given z_{t-1}.
    Differences
        In the reference code no gradient reaches the encoder, log q joins z and h in another order than sampling does
        and conditions on z_t instead of z_{t-1}, and all windows of a batch share their noise. Here the whole bound is
        trained, and each window has its own noise. As there, the next step sees z_{t-1} before the flow, which is
        invertible. Log-variances clamped to [-6, 6] replace the softplus, and sensors are standardised (there scaled to
        [0, 1], by test rows' own range). The learning rate is constant, gradients are not clipped, and the loss is not
        weighted. The held-out loss uses one fixed draw of z.
    Defaults
        Batch and learning rate are the paper's. For cost on one core, the others differ from its windows of 100 rows,
        width 500, 3 latent variables, 20 maps, 20 epochs: 5 epochs are about 800 steps on SKAB. The window is that of
        this project's other networks. 0 samples, because a draw doubles the cost of scoring.

    References
    ----------
    Y. Su, Y. Zhao, C. Niu, R. Liu, W. Sun and D. Pei, Robust anomaly detection for multivariate time series through
    stochastic recurrent neural network, KDD 2019. Planar maps: D. J. Rezende and S. Mohamed, Variational inference with
    normalizing flows, ICML 2015.
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction",
        stochastic=True,
        scoring_parameters=("samples",),
        extra="deep",
        paper="Su et al., KDD 2019",
        differs=("schedule differs",),
    )
    paper: ClassVar[Mapping[str, int]] = {"hidden_size": 500, "latent_size": 3, "flows": 20}

    window: Annotated[int, Tune(10, 100, log=True, alters_loss=True), Cheap(8)] = 30
    size: Size = "default"
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 16, 64, 128)), Cheap(8)] = None
    latent_size: Annotated[int | None, Ge(1), Choice((None, 2, 3, 8))] = None
    flows: Annotated[int | None, Ge(1), Choice((None, 2, 10, 20)), Cheap(2)] = None
    samples: Annotated[int, Ge(0)] = 0
    epochs: Annotated[int, Cheap(2)] = 5
    batch_size: Annotated[int, Choice((32, 50, 128, 256))] = 50

    network_: Network = field(init=False)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        hidden_size = self._given_or("hidden_size", max(32, 2 * n_sensors))
        return Network(n_sensors, hidden_size, self._given_or("latent_size", 4), self._given_or("flows", 5))

    def _loss(self, windows: Tensor) -> Tensor:
        n_windows, window, _ = windows.shape
        latent_size = self.network_.latent_size
        if self.network_.training:
            noise = torch.randn(window, latent_size, n_windows, device=windows.device).mT
        else:
            # One draw for all epochs, so that their held-out losses can be compared.
            noise = self._noise(1)[0].to(windows.device).expand(-1, n_windows, -1)
        return self.network_.minus_bound(windows.transpose(0, 1), noise)

    def _row_terms(self, windows: Tensor) -> Tensor:
        rows = windows.transpose(0, 1)
        noises = self._noise(self.samples) if self.samples else torch.zeros_like(self._noise(1))
        terms = []
        for noise in noises.to(rows.device):
            latents, _ = self.network_.flow(self.network_.encode(rows, noise.expand(-1, rows.shape[1], -1))[0])
            mean, log_variance = self.network_.decode(latents)
            terms.append(surprise(rows[-1], mean[-1], log_variance[-1]))
        return torch.stack(terms).mean(dim=0)

    def _noise(self, samples: int) -> Tensor:
        """Return noise that is the same for every window, [samples, window, 1, latent_size]."""
        return fixed_noise(self.seed, samples, self.window, 1, self.network_.latent_size)


class Network(nn.Module):
    """Encoder, flow, prior and decoder. Time comes first: [window, n_windows, size]."""

    def __init__(self, n_sensors: int, hidden_size: int, latent_size: int, flows: int) -> None:
        super().__init__()
        self.latent_size = latent_size
        self.encoder = nn.GRU(n_sensors, hidden_size)
        self.encoded = nn.Linear(hidden_size, hidden_size)
        self.linked = nn.Linear(hidden_size + latent_size, hidden_size)
        self.to_latent = nn.Linear(hidden_size, 2 * latent_size)
        self.flow = PlanarFlow(latent_size, flows)
        self.decoder = nn.GRU(latent_size, hidden_size)
        self.decoded = nn.ModuleList([nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size)])
        self.to_rows = nn.Linear(hidden_size, 2 * n_sensors)

    def encode(self, rows: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return z before the flow, and its log-variance, of the noise's shape each; noise 0 gives z's mean."""
        states, _ = self.encoder(rows)
        features = self.encoded(states).relu()
        # W [features, z] = W_h features + W_z z; the first term is computed for all steps at once.
        of_features, of_latent = self.linked.weight.tensor_split([features.shape[2]], dim=1)
        inputs = nn.functional.linear(features, of_features, self.linked.bias)
        z, latents, log_variances = torch.zeros_like(noise[0]), [], []
        for of_step, of_noise in zip(inputs, noise, strict=True):
            d = torch.addmm(of_step, z, of_latent.t()).relu()
            mean, log_variance = self.to_latent(d).chunk(2, dim=1)
            log_variances.append(clamped(log_variance))
            z = drawn(mean, log_variances[-1], of_noise)
            latents.append(z)
        return torch.stack(latents), torch.stack(log_variances)

    def decode(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance of the rows, [window, n_windows, n_sensors] each, for z after the flow."""
        features, _ = self.decoder(latents)
        for layer in self.decoded:
            features = layer(features).relu()
        mean, log_variance = self.to_rows(features).chunk(2, dim=2)
        return mean, clamped(log_variance)

    def minus_bound(self, rows: Tensor, noise: Tensor) -> Tensor:
        """Return the negative evidence lower bound, summed over the window, averaged over the windows."""
        before, log_variance = self.encode(rows, noise)
        latents, log_determinant = self.flow(before)
        # z's distance from its mean, in deviations, is the noise.
        log_q = -0.5 * (noise.square() + math.log(2 * math.pi) + log_variance).sum() - log_determinant.sum()
        log_p = -surprise(rows, *self.decode(latents)).sum() - prior_surprise(latents).sum()
        bound: Tensor = (log_q - log_p) / rows.shape[1]
        return bound
