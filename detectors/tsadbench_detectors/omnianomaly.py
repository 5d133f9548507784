"""OmniAnomaly: a stochastic recurrent network whose latent variables follow each other in time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

import numpy as np

from tsadbench.base import Choice, FloatArray, Recording, Space, Traits, Tune, extra

with extra("omnianomaly", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.column_layer import column_layer, to_columns, to_steps
    from tsadbench_detectors.deep.gaussian import clamped, fixed_noise, surprise
    from tsadbench_detectors.deep.linked_latents import linked_latents
    from tsadbench_detectors.deep.long_gru import LongGRU
    from tsadbench_detectors.deep.planar_flow import PlanarFlow
    from tsadbench_detectors.deep.random_walk import prior_surprise
    from tsadbench_detectors.deep.sizes import Size, SizedNetwork, Width


class OmniAnomaly(SizedNetwork):
    """Scores how improbable a window's last row is under a recurrent network with latent variables linked in time.

    The encoder, a recurrent layer, reads the window; at each step, the distribution of the latent variables z_t depends
    on its state and on z_{t-1}. A chain of planar maps bends that distribution, so that it need not be normal. The
    decoder, another recurrent layer, turns z_1, ..., z_t into mean and variance of the row x_t. The loss is the
    negative evidence lower bound, z drawn once; its prior is a random walk seen in noise. The score is
    ``-log p(x_t|z)`` of the window's last row, at the mean of each z_t given z_{t-1} unless ``samples`` says otherwise:
    nothing is drawn by chance. It is the sum of the sensors' terms, which are its contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that it sees at once.
    size
        "default", or "paper": the published widths of what is None. What is given counts at either size.
    hidden_size
        Width of the recurrent and the dense layers. None: 32, or twice as many as there are sensors if that is more;
        at size "paper" 500.
    latent_size
        Latent variables at each step. None: 4; at size "paper" 3.
    flows
        Planar maps. None: 5; at size "paper" 20.
    samples
        0: the score is taken at z's mean. Otherwise it is the mean of ``-log p(x_t|z)`` over this many draws of z,
        whose noise the seed decides: it is the same for every window.

    Notes
    -----
    Equations
        Encoder: ``h_t = GRU(x_t, h_{t-1})``, ``d_t = relu(W [relu(V h_t + a), z_{t-1}] + b)``,
        ``z_t ~ N(M d_t + m, exp(S d_t + s))``. Flow: K maps ``f(z) = z + u tanh(w'z + c)``, whose Jacobian's
        determinant is ``1 + u'w (1 - tanh(w'z + c)^2)``, u such that ``u'w > -1``. Prior, for each latent variable:
        ``z_t = l_t + N(0, 1)``, ``l_t = l_{t-1} + N(0, 1)``, ``l_1 ~ N(0, 1)``; its density is computed by a Kalman
        filter. Decoder: ``g_t = GRU(z_t, g_{t-1})``, two dense layers, mean and log-variance of x_t. Loss:
        ``log q(z|x) - log p(z) - log p(x|z)``, summed over the window. The paper: windows of 100 rows, width 500,
        3 latent variables, 20 maps, Adam at 1e-3, batches of 50, 20 epochs.
    Differences
        In the reference code no gradient reaches the encoder; log q joins z and h in another order than sampling does,
        and conditions on z_t instead of z_{t-1}; all windows of a batch share their noise. Here the whole bound is
        trained, with noise of each window's own. As in the reference code, what the next step sees is z_{t-1} before
        the flow; as the flow is invertible, that is the same information. Log-variances clamped to [-6, 6] replace the
        softplus, sensors are standardised instead of brought to [0, 1] (the reference code does so with test rows'
        own range), the learning rate does not fall, and gradients are not clipped. Held-out windows are watched with
        one fixed draw of z; the loss of training is not weighted.
    Defaults
        Batch and learning rate are the paper's. Width, number of maps and epochs are smaller, for cost on one core: 5
        epochs are about 800 steps on SKAB. The window is that of this project's other networks; of the 3 to 4 latent
        variables that suffice for a few sensors, 4. A draw costs as much as all of the score does without: 0 samples.

    References
    ----------
    Y. Su, Y. Zhao, C. Niu, R. Liu, W. Sun and D. Pei, Robust anomaly detection for multivariate time series through
    stochastic recurrent neural network, KDD 2019. Planar maps: D. J. Rezende and S. Mohamed, Variational inference with
    normalizing flows, ICML 2015.
    """

    widths: ClassVar[Mapping[str, Width]] = {
        "hidden_size": Width(32, per_sensor=2, paper=500),
        "latent_size": Width(4, paper=3),
        "flows": Width(5, paper=20),
    }
    traits: ClassVar[Traits] = Traits(
        family="reconstruction",
        stochastic=True,
        scoring_parameters=("samples",),
        extra="deep",
        paper="Su et al., KDD 2019",
    )

    def __init__(
        self,
        *,
        window: int = 30,
        stride: int = 1,
        size: Size = "default",
        hidden_size: int | None = None,
        latent_size: int | None = None,
        flows: int | None = None,
        samples: int = 0,
        epochs: int = 5,
        min_steps: int = 500,
        max_steps: int | None = None,
        batch_size: int = 50,
        learning_rate: float = 1e-3,
        held_out: float = 0.1,
        patience: int = 3,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.window = window
        self.stride = stride
        self.size = size
        self.hidden_size = hidden_size
        self.latent_size = latent_size
        self.flows = flows
        self.samples = samples
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
            "window": Tune(10, 100, log=True, alters_loss=True),
            "hidden_size": Choice((None, 16, 64, 128)),
            "latent_size": Choice((None, 2, 3, 8)),
            "flows": Choice((None, 2, 10, 20)),
            "batch_size": Choice((32, 50, 128, 256)),
            "learning_rate": Tune(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"window": 8, "hidden_size": 8, "flows": 2, "epochs": 2, "min_steps": 1}

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        self._require_integer("samples", at_least=0)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(n_sensors, *(self._width(parameter, n_sensors) for parameter in self.widths))

    @property
    def _network(self) -> Network:
        return cast("Network", self.network_)

    def _loss(self, windows: Tensor) -> Tensor:
        rows = windows.permute(1, 2, 0)
        shape = (len(rows), self._network.latent_size, len(windows))
        if self.network_.training:
            noise = torch.randn(shape, device=rows.device)
        else:
            # Held-out windows see the same draw after every epoch, so that their losses can be compared.
            noise = fixed_noise(self.seed, *shape[:2], 1).to(rows.device).expand(shape)
        return self._network.minus_bound(rows, noise)

    def _contributions(self, recording: Recording) -> FloatArray:
        terms = np.empty(recording.values.shape)
        latent_size = self._network.latent_size
        noises = [torch.zeros(self.window, latent_size, 1)]
        if self.samples:
            noises = list(fixed_noise(self.seed, self.samples, self.window, latent_size, 1))
        for first, windows in self._scored_windows(recording, self.window, before=self.window - 1):
            rows = windows.permute(1, 2, 0)
            surprises = [
                surprise(rows[-1], *self._network.of_last_row(rows, noise.to(rows.device).expand(-1, -1, len(windows))))
                for noise in noises
            ]
            terms[self.window - 1 + first] = torch.stack(surprises).mean(dim=0).t().cpu().numpy()
        return terms


class Network(nn.Module):
    """Encoder, flow, prior and decoder. Time comes first and windows last: [window, size, n_windows].

    Parameters
    ----------
    n_sensors
        Sensors of a row.
    hidden_size, latent_size, flows
        As for `OmniAnomaly`.
    """

    def __init__(self, n_sensors: int, hidden_size: int, latent_size: int, flows: int) -> None:
        super().__init__()
        self.latent_size = latent_size
        self.encoder = LongGRU(n_sensors, hidden_size)
        self.encoded = nn.Linear(hidden_size, hidden_size)
        self.linked = nn.Linear(hidden_size + latent_size, hidden_size)
        self.to_latent = nn.Linear(hidden_size, 2 * latent_size)
        self.flow = PlanarFlow(latent_size, flows)
        self.decoder = LongGRU(latent_size, hidden_size)
        self.decoded = nn.ModuleList([nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size)])
        self.to_rows = nn.Linear(hidden_size, 2 * n_sensors)

    def encode(self, rows: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return z before the flow and the log-variance with which each step of it was drawn, of noise's shape each.

        Parameters
        ----------
        rows, noise
            [window, n_sensors, n_windows] and [window, latent_size, n_windows]; noise 0 gives z's mean.
        """
        states = to_columns(self.encoder(rows, len(rows)))
        features = column_layer(states, self.encoded.weight, self.encoded.bias, rectified=True)
        of_features, of_latent = self.linked.weight.tensor_split([len(features)], dim=1)
        inputs = to_steps(column_layer(features, of_features, self.linked.bias), len(rows))
        return linked_latents(inputs, of_latent, self.to_latent.weight, self.to_latent.bias[:, None], noise)

    def decode(self, latents: Tensor, *, last_only: bool = False) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance of the rows, or of the last, for z after the flow.

        Either is [window or 1, n_sensors, n_windows].
        """
        states = self.decoder(latents, len(latents), last_only=last_only)
        features = to_columns(states)
        for layer in self.decoded:
            features = column_layer(
                features, layer.get_parameter("weight"), layer.get_parameter("bias"), rectified=True
            )
        both = to_steps(column_layer(features, self.to_rows.weight, self.to_rows.bias), len(states))
        mean, log_variance = both.chunk(2, dim=1)
        return mean, clamped(log_variance)

    def of_last_row(self, rows: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance of each window's last row, [n_sensors, n_windows] each."""
        latents, _ = self.flow(self.encode(rows, noise)[0])
        mean, log_variance = self.decode(latents, last_only=True)
        return mean[0], log_variance[0]

    def minus_bound(self, rows: Tensor, noise: Tensor) -> Tensor:
        """Return the negative evidence lower bound, summed over the window, averaged over the windows."""
        before, log_variance = self.encode(rows, noise)
        latents, log_determinant = self.flow(before)
        # z's distance from its mean, in deviations, is the noise.
        constant = (noise.square() + math.log(2 * math.pi)).sum()
        minus_log_q = 0.5 * (constant + log_variance.sum()) + log_determinant.sum()
        minus_log_p = surprise(rows, *self.decode(latents)).sum() + prior_surprise(latents).sum()
        bound: Tensor = (minus_log_p - minus_log_q) / rows.shape[2]
        return bound
