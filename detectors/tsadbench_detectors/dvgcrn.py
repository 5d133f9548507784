"""DVGCRN: layers of latent variables whose links to the sensors, and to each other, form a learned graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import ClassVar, cast

import numpy as np

from tsadbench import UsageError
from tsadbench.base import Choice, FloatArray, Recording, Space, Traits, Tune, extra

with extra("dvgcrn", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    from tsadbench_detectors.deep.column_layer import to_columns
    from tsadbench_detectors.deep.gaussian import clamped, fixed_noise, surprise
    from tsadbench_detectors.deep.sizes import Size, SizedNetwork, Width
    from tsadbench_detectors.deep.stochastic_layers import (
        SLOPE,
        Course,
        StochasticLayer,
        adjacency,
        courses,
        divergence,
    )


class DVGCRN(SizedNetwork):
    """Scores how improbable a row is given latent variables that a learned graph links to the sensors.

    Layers of latent variables lie above the sensors, the fewest on top. Sensors and latent variables have embeddings;
    the cosines between those of neighbouring layers are the weights of a graph, along which each layer's recurrent
    network gathers its input. Upwards, each layer's latent variables z_t are inferred from the row x_t and the layer's
    state; downwards, each layer is the prior of the one below, and the lowest gives mean and variance of the row. The
    loss is ``-log p(x|z)`` summed over the window, z drawn once, plus the Kullback-Leibler divergence of z from its
    prior, whose weight is 1/``warm_up`` in the first epoch and rises to 1 in as many, plus the squared error of a
    forecast of the last row. The score is ``-log p(x_t|z)`` of the window's last row at z's mean: nothing is drawn. It
    is the sum of the sensors' terms, which are its contributions. It needs at least two sensors.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that it sees at once, at least 2.
    size
        "default", or "paper": the published widths of what is None. What is given counts at either size.
    layers
        Layers of latent variables.
    latent_size
        Latent variables of the lowest layer; the number falls evenly, to a third of that in the third of 3. None: 6, or
        15 for every 38 sensors if that is more; at size "paper" 15.
    hidden_size
        Hidden units of the lowest layer; the number falls evenly, to a half of that in the third of 3. None: 16, or 20
        for every 38 sensors if that is more; at size "paper" 20.
    embedding_size
        Width of an embedding. None: 32; at size "paper" 256.
    forecast_weight
        Weight of the forecast's squared error, summed over the sensors.
    warm_up
        Epochs over which the divergence's weight rises to 1.

    Notes
    -----
    Equations
        Graph of layer l: ``A = softmax(relu(cos([e_{l-1}; e_l])))`` by rows, with 1 on the diagonal before the softmax;
        e_0 are the sensors' embeddings. Inference: ``z_t ~ N(MLP[x_t, h_{t-1}])``,
        ``u_t = softplus(leaky(G A [below_t; z_t]))``, below_t the row or the lower layer's z_t,
        ``h_t = LSTM([u_t, lower layer's h_t], h_{t-1})``. Prior of layer l:
        ``leaky(softmax(e_l b_l') h_{t-1} + softmax(e_l e_{l+1}') z_t of layer l + 1)``; b are embeddings of hidden
        units. Mean of the row: the same without the rectifier, for e_0. The paper's sizes are for 38 sensors: 20 rows,
        15, 10 and 5 latent variables, 20, 15 and 10 hidden units, embeddings of 256, batches of 512, Adam at 2e-4, 60
        epochs.
    Differences
        In the reference code the forecast's error is cast to an integer, so that no gradient comes of it; here it has
        one, and a weight. Sensors are standardised on training rows, not brought to (-1, 1) (there, test rows are
        scaled by their own range), so that the row's mean has no tanh, and its log-variance, as all others, is clamped
        to [-6, 6]. The heads of z are linear, the variances of the priors a linear layer's. The divergence's weight
        rises linearly, over 2 of 5 epochs instead of about 11 of 60. As there, the score is that of the lowest layer,
        whose state and latent variables do not depend on those above: these act on it through training alone. The
        reference code may add the density of z to the score; ours leaves it out.
    Defaults
        The window is the paper's. Widths follow the number of sensors as the paper's do, but are no smaller than a few
        sensors need. Batch and number of epochs are for cost on one core: 660 steps on SKAB; the learning rate is five
        times the paper's as there are far fewer steps.

    References
    ----------
    W. Chen, L. Tian, B. Chen, L. Dai, Z. Duan and M. Zhou, Deep variational graph convolutional recurrent network for
    multivariate time series anomaly detection, ICML 2022.
    """

    widths: ClassVar[Mapping[str, Width]] = {
        "latent_size": Width(6, per_sensor=15 / 38, paper=15),
        "hidden_size": Width(16, per_sensor=20 / 38, paper=20),
        "embedding_size": Width(32, paper=256),
    }
    traits: ClassVar[Traits] = Traits(family="graph", stochastic=True, extra="deep", paper="Chen et al., ICML 2022")

    def __init__(
        self,
        *,
        window: int = 20,
        stride: int = 1,
        size: Size = "default",
        layers: int = 3,
        latent_size: int | None = None,
        hidden_size: int | None = None,
        embedding_size: int | None = None,
        forecast_weight: float = 1.0,
        warm_up: int = 2,
        epochs: int = 5,
        min_steps: int = 500,
        max_steps: int | None = None,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        held_out: float = 0.1,
        patience: int = 3,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.window = window
        self.stride = stride
        self.size = size
        self.layers = layers
        self.latent_size = latent_size
        self.hidden_size = hidden_size
        self.embedding_size = embedding_size
        self.forecast_weight = forecast_weight
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

    def expected_check_failures(self) -> Mapping[str, str]:  # noqa: D102
        return {"single-sensor": "it learns a graph over at least 2 sensors"}

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:  # noqa: D102
        return {
            "window": Tune(5, 60, log=True, alters_loss=True),
            "layers": Tune(1, 4),
            "latent_size": Choice((None, 4, 12, 20)),
            "hidden_size": Choice((None, 8, 32, 64)),
            "forecast_weight": Tune(0.1, 10.0, log=True, alters_loss=True),
            "warm_up": Tune(1, 10),
            "batch_size": Choice((32, 64, 128, 256)),
            "learning_rate": Tune(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"window": 6, "layers": 2, "hidden_size": 8, "embedding_size": 8, "epochs": 2, "min_steps": 1}

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        self._require_integer("window", at_least=2)
        for parameter in ("layers", "warm_up"):
            self._require_integer(parameter, at_least=1)
        weight = self.forecast_weight
        self._require(isinstance(weight, Real) and 0.0 <= weight < np.inf, "forecast_weight", "a number of at least 0")
        if len(sensors) < 2:
            raise UsageError(
                f"DVGCRN: expected at least 2 sensors, whose graph it learns, found {len(sensors)}; "
                f"for one sensor choose a detector without a graph"
            )

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        latent, hidden, embedding = (self._width(parameter, n_sensors) for parameter in self.widths)
        return Network(n_sensors, *narrowing(self.layers, latent, hidden), embedding)

    @property
    def _network(self) -> Network:
        return cast("Network", self.network_)

    def _loss(self, windows: Tensor) -> Tensor:
        rows = windows.permute(1, 2, 0)
        shape = (len(rows), self._network.n_latent, len(windows))
        if self.network_.training:
            noise, weight = torch.randn(shape, device=rows.device), min(1.0, (len(self.losses_) + 1) / self.warm_up)
        else:
            # Held-out windows see the same draw after every epoch, and all of the divergence.
            noise, weight = fixed_noise(self.seed, *shape[:2], 1).to(rows.device).expand(shape), 1.0
        total, apart, error = self._network.losses(rows, noise)
        return total + weight * apart + self.forecast_weight * error

    def _contributions(self, recording: Recording) -> FloatArray:
        terms = np.empty(recording.values.shape)
        for first, windows in self._scored_windows(recording, self.window, before=self.window - 1):
            terms[self.window - 1 + first] = self._network.last_surprise(windows.permute(1, 2, 0)).t().cpu().numpy()
        return terms


def narrowing(layers: int, latent: int, hidden: int) -> tuple[list[int], list[int]]:
    """Return the layers' numbers of latent variables and of hidden units, as fast falling as the paper's.

    Examples
    --------
    >>> narrowing(3, 15, 20)
    ([15, 10, 5], [20, 15, 10])
    """
    of_latent = [max(1, round(latent * (layers - layer) / layers)) for layer in range(layers)]
    return of_latent, [max(1, round(hidden * (layers + 1 - layer) / (layers + 1))) for layer in range(layers)]


class Network(nn.Module):
    """Inference, generation and forecast. Time comes first and windows last: [window, size, n_windows].

    Parameters
    ----------
    n_sensors
        Sensors of a row.
    latents, hiddens
        Each layer's latent variables and hidden units, the lowest first.
    embedding_size
        As for `DVGCRN`.
    """

    def __init__(self, n_sensors: int, latents: Sequence[int], hiddens: Sequence[int], embedding_size: int) -> None:
        super().__init__()
        below = [(n_sensors, 0), *zip(latents, hiddens, strict=True)]
        self.n_latent = sum(latents)
        self.layers = nn.ModuleList(
            StochasticLayer(n_sensors, lower, latent, hidden)
            for lower, latent, hidden in zip(below[:-1], latents, hiddens, strict=True)
        )
        # Of the sensors, then of each layer's latent variables; those of the hidden units that speak to either.
        sizes = [n_sensors, *latents]
        self.nodes = nn.ParameterList(_embeddings(size, embedding_size) for size in sizes)
        self.units = nn.ParameterList(_embeddings(size, embedding_size) for size in [hiddens[0], *hiddens])
        self.prior_log_variances = nn.ModuleList(
            nn.Linear(hidden + above, latent)
            for hidden, above, latent in zip(hiddens, [*latents[1:], 0], latents, strict=True)
        )
        self.row_log_variance = nn.Sequential(
            nn.Linear(hiddens[0] + latents[0], hiddens[0]), nn.Tanh(), nn.Linear(hiddens[0], n_sensors)
        )
        self.forecast = nn.Linear(sum(hiddens), n_sensors)

    def read(self, rows: Tensor, noise: Tensor, n_layers: int | None = None) -> list[Course]:
        """Return what the layers, or the lowest of them, do while they read windows: see `courses`."""
        layers = cast("list[StochasticLayer]", list(self.layers[:n_layers]))
        graphs = [adjacency(self.nodes[number], self.nodes[number + 1]) for number in range(len(layers))]
        return courses(layers, graphs, rows, noise)

    def generated(self, level: int, before: Tensor, above: Tensor | None) -> Tensor:
        """Return the mean of what a level holds, the rows (0) or a layer's latent variables, [size, n_columns].

        Parameters
        ----------
        level
            0 for the rows, 1 for the lowest layer, ...
        before
            State of that layer, of the lowest for the rows, after the step before, [hidden, n_columns].
        above
            Latent variables of the level above, [latent, n_columns]; None for the highest.
        """
        mean = torch.mm(_topics(self.nodes[level], self.units[level]), before)
        if above is not None:
            mean = torch.addmm(mean, _topics(self.nodes[level], self.nodes[level + 1]), above)
        return functional.leaky_relu(mean, SLOPE) if level else mean

    def row_surprise(self, rows: Tensor, before: Tensor, latent: Tensor) -> Tensor:
        """Return ``-log p(x_t | z_t, h_{t-1})``, [n_sensors, n_columns], of columns of rows, states and latents."""
        log_variance = self.row_log_variance(torch.cat([before, latent]).t()).t()
        return surprise(rows, self.generated(0, before, latent), clamped(log_variance))

    def losses(self, rows: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return surprise, divergence from the prior, both summed over the window, and the forecast's squared error.

        Each is averaged over the windows; the error is that of the last row, summed over the sensors.
        """
        found = self.read(rows, noise)
        n_windows = rows.shape[2]
        latents = [to_columns(course.latent) for course in found]
        befores = [to_columns(functional.pad(course.state[:-1], (0, 0, 0, 0, 1, 0))) for course in found]
        total = self.row_surprise(to_columns(rows), befores[0], latents[0]).sum()
        apart = rows.new_zeros(())
        for number, (course, before) in enumerate(zip(found, befores, strict=True)):
            above = latents[number + 1] if number + 1 < len(found) else None
            context = before if above is None else torch.cat([before, above])
            prior_log_variance = clamped(self.prior_log_variances[number](context.t()).t())
            prior = self.generated(number + 1, before, above), prior_log_variance
            apart = apart + divergence(to_columns(course.mean), to_columns(course.log_variance), *prior).sum()
        ahead = self.forecast(torch.cat([course.state[-2] for course in found]).t()).t()
        return total / n_windows, apart / n_windows, (ahead - rows[-1]).square().sum() / n_windows

    def last_surprise(self, rows: Tensor) -> Tensor:
        """Return ``-log p`` of each window's last row at the latent variables' means, [n_sensors, n_windows]."""
        # The layers above the lowest have a part in the prior alone.
        n_latent = len(self.nodes[1])
        noise = rows.new_zeros(len(rows), n_latent, rows.shape[2])
        lowest = self.read(rows, noise, n_layers=1)[0]
        return self.row_surprise(rows[-1], lowest.state[-2], lowest.latent[-1])


def _embeddings(n_nodes: int, size: int) -> nn.Parameter:
    # Their products have a variance of 1.
    return nn.Parameter(torch.randn(n_nodes, size) / size**0.25)


def _topics(of: Tensor, to: Tensor) -> Tensor:
    """Return how much each of some nodes takes from each of others, by their embeddings; every row sums to 1."""
    return torch.mm(of, to.t()).softmax(dim=1)
