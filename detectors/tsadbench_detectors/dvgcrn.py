"""DVGCRN: layers of latent variables whose links to the sensors, and to each other, form a learned graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import accumulate
from typing import Annotated, ClassVar, NamedTuple

from tsadbench.base import Cheap, Choice, Ge, Lt, Recording, Traits, Tune, detector, extra

with extra("dvgcrn", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    from tsadbench_detectors.deep.gaussian import clamped, drawn, fixed_noise, surprise
    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size

_SLOPE = 0.2  # of the leaky rectifiers


@detector
class DVGCRN(NetworkDetector):
    """Scores how improbable a row is given latent variables that a learned graph links to the sensors.

    Layers of latent variables are stacked on the sensors, the smallest on top. Sensors and latent variables have
    embeddings, whose cosines give the weights of a graph between neighbouring layers. Each layer's recurrent network
    gathers its input along this graph. Upwards, latent variables are inferred from the row and the layer's state.
    Downwards, each layer is the prior of the one below, and the lowest layer gives mean and variance of the row.

    The score is the sum of the sensors' contributions. At least two sensors are needed.

    Parameters of training, ``size`` and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once, at least 2.
    layers
        Layers of latent variables.
    latent_size
        Latent variables of the lowest layer; the number falls evenly, so the third of 3 layers has a third. None: 6,
        or 15 for every 38 sensors if that is more; at size "paper" 15.
    hidden_size
        Hidden units of the lowest layer; the number falls evenly, so the third of 3 layers has half. None: 16, or 20
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
        units. Mean of the row: the same without the rectifier, for e_0. Loss: ``-log p(x|z)`` summed over the window, z
        drawn once, plus ``beta KL(z || prior)``, beta rising to 1, plus the last row's squared forecast error.
        Score: ``-log p(x_t|z)`` of the window's last row, z at its mean.
    Differences
        The reference code casts the forecast's error to an integer, which gives no gradient; here it has one, and a
        weight. Sensors are standardised on training rows, not scaled to (-1, 1) by the test rows' own range, so the
        row's mean has no tanh and log-variances are clamped to [-6, 6]. The heads of z are linear, and the variances of
        the priors come from a linear layer. The divergence's weight rises over 2 of 5 epochs (there 11 of 60). As
        there, the score is the lowest layer's, which the layers above affect only through training. The reference code
        may add the density of z to the score; ours leaves it out. At size "paper", too, some parts are smaller than in
        the reference: u is as wide as the hidden state (there twice), mean and log-variance of z share their first
        layer, and the forecast has one linear layer. It sees row T-2 (there the rows before that). Rows and z have
        separate embeddings of the sensors.
    Defaults
        The window is the paper's. Widths follow the number of sensors as the paper's do for 38, with a minimum for few
        sensors. For cost: 5 epochs in batches of 64 (620 steps on SKAB; there 60 epochs in batches of 512), at five
        times the paper's learning rate.

    References
    ----------
    W. Chen, L. Tian, B. Chen, L. Dai, Z. Duan and M. Zhou, Deep variational graph convolutional recurrent network for
    multivariate time series anomaly detection, ICML 2022.
    """

    traits: ClassVar[Traits] = Traits(
        family="graph", stochastic=True, extra="deep", paper="Chen et al., ICML 2022", differs=("schedule differs",)
    )
    paper: ClassVar[Mapping[str, int]] = {"latent_size": 15, "hidden_size": 20, "embedding_size": 256}
    _needs_two_sensors_for = "graph"

    window: Annotated[int, Ge(2), Tune(5, 60, log=True, alters_loss=True), Cheap(6)] = 20
    size: Size = "default"
    layers: Annotated[int, Ge(1), Tune(1, 4), Cheap(2)] = 3
    latent_size: Annotated[int | None, Ge(1), Choice((None, 4, 12, 20))] = None
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 8, 32, 64)), Cheap(8)] = None
    embedding_size: Annotated[int | None, Ge(1), Cheap(8)] = None
    forecast_weight: Annotated[float, Ge(0), Lt(math.inf), Tune(0.1, 10.0, log=True, alters_loss=True)] = 1.0
    warm_up: Annotated[int, Ge(1), Tune(1, 10)] = 2
    epochs: Annotated[int, Cheap(2)] = 5
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 64
    network_: Network = field(init=False)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n = recordings[0].n_sensors
        latent = self._given_or("latent_size", max(6, 15 / 38 * n))
        hidden = self._given_or("hidden_size", max(16, 20 / 38 * n))
        return Network(n, *narrowing(self.layers, latent, hidden), self._given_or("embedding_size", 32))

    def _loss(self, windows: Tensor) -> Tensor:
        rows = windows.transpose(0, 1)
        shape = (len(rows), self.network_.n_latent, len(windows))
        if self.network_.training:
            noise, weight = torch.randn(shape, device=rows.device), min(1.0, self._epoch / self.warm_up)
        else:
            # Held-out windows see the same draw after every epoch, and all of the divergence.
            noise, weight = fixed_noise(self.seed, *shape[:2], 1).to(rows.device).expand(shape), 1.0
        total, apart, error = self.network_.losses(rows, noise.mT)
        return total + weight * apart + self.forecast_weight * error

    def _row_terms(self, windows: Tensor) -> Tensor:
        """Return ``-log p`` of each window's last row at the latent variables' means."""
        rows = windows.transpose(0, 1)
        # The layers above the lowest only enter the prior.
        noise = rows.new_zeros(*rows.shape[:2], self.network_.layers[0].latent)
        (lowest,) = self.network_.read(rows, noise, n_layers=1)
        return self.network_.row_surprise(rows[-1], lowest.state[-2], lowest.latent[-1])


def narrowing(layers: int, latent: int, hidden: int) -> tuple[list[int], list[int]]:
    """Return each layer's number of latent variables, and of hidden units, which fall as in the paper.

    Examples
    --------
    >>> narrowing(3, 15, 20)
    ([15, 10, 5], [20, 15, 10])
    """
    of_latent = [max(1, round(latent * (layers - layer) / layers)) for layer in range(layers)]
    return of_latent, [max(1, round(hidden * (layers + 1 - layer) / (layers + 1))) for layer in range(layers)]


def adjacency(lower: Tensor, upper: Tensor) -> Tensor:
    """Return A [n_nodes, n_nodes] of the nodes of two layers with embeddings [n, embedding_size], the lower's first."""
    directions = functional.normalize(torch.cat([lower, upper]), dim=1)
    itself = torch.eye(len(directions), dtype=torch.bool, device=directions.device)
    return (directions @ directions.t()).relu().masked_fill(itself, 1.0).softmax(dim=1)


def divergence(mean: Tensor, log_variance: Tensor, prior_mean: Tensor, prior_log_variance: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of normal distributions from normal priors, element by element."""
    scaled = (log_variance.exp() + (mean - prior_mean).square()) * (-prior_log_variance).exp()
    return 0.5 * (scaled + prior_log_variance - log_variance - 1.0)


class Course(NamedTuple):
    """A layer's latent variables, their mean and log-variance, and its state after each step.

    Each is [n_steps, n_windows, size].
    """

    latent: Tensor
    mean: Tensor
    log_variance: Tensor
    state: Tensor

    @property
    def before(self) -> Tensor:
        """The state before each step."""
        return functional.pad(self.state[:-1], (0, 0, 0, 0, 1, 0))


class Factors(NamedTuple):
    """A layer's terms of d and u that depend on x, at every step, and its matrices of the other inputs."""

    d_of_x: Tensor
    u_of_x: Tensor
    d_by_h: Tensor
    u_by_lower: Tensor
    u_by_z: Tensor
    gates_by_u: Tensor
    gates_by_h: Tensor
    gates_by_lower: Tensor


class Layer(nn.Module):
    """The weights that infer one layer's latent variables.

    ``d = leaky(V [x_t, h_{t-1}] + v)``, mean and log-variance of z_t ``W d + w``,
    ``u = softplus(leaky(G A [below_t, z_t] + g))``, ``h_t = LSTM([u, h_t of the layer below], h_{t-1})``.
    ``below``: numbers of latent variables and hidden units below; None for the lowest layer, whose below_t is x_t.
    """

    def __init__(self, n_sensors: int, below: tuple[int, int] | None, latent: int, hidden: int) -> None:
        super().__init__()
        below_latent, self.below = below or (n_sensors, 0)
        self.latent, self.hidden, self.n_rows = latent, hidden, 0 if below else n_sensors
        self.posterior = nn.Linear(n_sensors + hidden, hidden)
        self.to_latent = nn.Linear(hidden, 2 * latent)
        self.gathered = nn.Linear(below_latent + latent, hidden)
        # Blocks of rows: input gate, forget gate, output gate, candidate.
        self.gates = nn.Linear(2 * hidden + self.below, 4 * hidden)

    def factors(self, rows: Tensor, lower: Tensor, upper: Tensor) -> Factors:
        """Return the layer's factors; ``lower`` and ``upper`` embed the level below and its own latent variables."""
        graph = adjacency(lower, upper)
        d_by_x, d_by_h = self.posterior.weight.tensor_split([-self.hidden], dim=1)
        u_by_x, u_by_lower, u_by_z = (self.gathered.weight @ graph).tensor_split([self.n_rows, -self.latent], dim=1)
        d_of_x = functional.linear(rows, d_by_x, self.posterior.bias)
        u_of_x = functional.linear(rows[..., : self.n_rows], u_by_x, self.gathered.bias)
        of_gates = self.gates.weight.tensor_split([self.hidden, 2 * self.hidden], dim=1)
        return Factors(d_of_x, u_of_x, d_by_h, u_by_lower, u_by_z, *of_gates)


class Network(nn.Module):
    """Inference, generation and forecast, for arrays [window, n_windows, size] and layers from the lowest up."""

    def __init__(self, n_sensors: int, latents: Sequence[int], hiddens: Sequence[int], embedding_size: int) -> None:
        super().__init__()
        below = [None, *zip(latents, hiddens, strict=True)]
        self.n_latent = sum(latents)
        self.layers: Sequence[Layer] = nn.ModuleList(  # type: ignore[assignment]
            Layer(n_sensors, lower, latent, hidden)
            for lower, latent, hidden in zip(below[:-1], latents, hiddens, strict=True)
        )
        # Embeddings of the sensors and of each layer's latent variables, then of the hidden units that generate them.
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
        """Infer the latent variables of the lowest ``n_layers`` layers (None: all) from rows and noise (0: the means).

        Each layer runs one step behind the layer below, whose state it needs, so one product with a block matrix serves
        all layers. Internally, windows are the last dimension, so that each gate is contiguous in memory.
        """
        layers = self.layers[:n_layers]
        latents, hiddens = [layer.latent for layer in layers], [layer.hidden for layer in layers]
        each = [layer.factors(rows, *self.nodes[n : n + 2]) for n, layer in enumerate(layers)]
        d_by_h, u_by_z = _joined([one.d_by_h for one in each], hiddens), _joined([one.u_by_z for one in each], latents)
        u_by_lower = _joined([one.u_by_lower for one in each], latents, 1)
        gates_by_u = _joined([one.gates_by_u for one in each], hiddens, 0, 4)
        gates_by_h = _joined([one.gates_by_h for one in each], hiddens, 0, 4)
        gates_by_h = gates_by_h + _joined([one.gates_by_lower for one in each], hiddens, 1, 4)
        z_by_d = _joined([layer.to_latent.weight for layer in layers], hiddens, 0, 2)
        z_bias = torch.cat(_by_kind([layer.to_latent.bias for layer in layers], 2))[:, None]
        gates_bias = torch.cat(_by_kind([layer.gates.bias for layer in layers], 4))[:, None]
        h = cell = rows.new_zeros(sum(hiddens), rows.shape[1])
        z = rows.new_zeros(sum(latents), rows.shape[1])
        begins = torch.arange(len(layers)).repeat_interleave(torch.tensor(hiddens))[:, None].to(rows.device)
        steps = []
        noises = torch.split(noise, latents, dim=2)
        by_step = map(_staggered, ([one.d_of_x for one in each], [one.u_of_x for one in each], noises))
        for step, (of_d, of_u, of_noise) in enumerate(zip(*by_step, strict=True)):
            d = functional.leaky_relu(torch.addmm(of_d, d_by_h, h), _SLOPE)
            mean, log_variance = torch.addmm(z_bias, z_by_d, d).chunk(2)
            log_variance = clamped(log_variance)
            last, z = z, drawn(mean, log_variance, of_noise)
            u = torch.addmm(torch.addmm(of_u, u_by_lower, last), u_by_z, z)
            u = functional.softplus(functional.leaky_relu(u, _SLOPE))
            gates = torch.addmm(torch.addmm(gates_bias, gates_by_u, u), gates_by_h, h)
            sigmoids, candidate = gates.tensor_split([-len(h)])
            write, forget, read = sigmoids.sigmoid().chunk(3)
            cell = torch.addcmul(forget * cell, write, candidate.tanh())
            if step < len(layers) - 1:
                cell = cell * (begins <= step)  # a layer that has not begun keeps the state 0
            h = read * cell.tanh()
            steps.append((z, mean, log_variance, h))
        found = (torch.stack(part) for part in zip(*steps, strict=True))
        by_layer = [torch.split(part, n, dim=1) for part, n in zip(found, [latents] * 3 + [hiddens], strict=True)]
        return [Course(*(part[n][n : n + len(rows)].mT for part in by_layer)) for n in range(len(layers))]

    def generated(self, level: int, before: Tensor, above: Tensor | None) -> Tensor:
        """Return the mean of a level: the rows (0) or a layer's latent variables (1, ...).

        ``before`` is the layer's state before the step (the lowest layer's for the rows), ``above`` the latent
        variables of the level above, None for the highest.
        """
        mean = before @ _topics(self.nodes[level], self.units[level]).t()
        if above is not None:
            mean = mean + above @ _topics(self.nodes[level], self.nodes[level + 1]).t()
        return functional.leaky_relu(mean, _SLOPE) if level else mean

    def row_surprise(self, rows: Tensor, before: Tensor, latent: Tensor) -> Tensor:
        """Return ``-log p(x_t | z_t, h_{t-1})`` of rows, states and latent variables of the lowest layer."""
        log_variance = self.row_log_variance(torch.cat([before, latent], dim=-1))
        return surprise(rows, self.generated(0, before, latent), clamped(log_variance))

    def losses(self, rows: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return surprise and divergence, summed over a window, and the last row's forecast error; window means."""
        found, n_windows = self.read(rows, noise), rows.shape[1]
        total = self.row_surprise(rows, found[0].before, found[0].latent).sum()
        apart = rows.new_zeros(())
        for number, course in enumerate(found):
            above = found[number + 1].latent if number + 1 < len(found) else None
            context = course.before if above is None else torch.cat([course.before, above], dim=2)
            prior_log_variance = clamped(self.prior_log_variances[number](context))
            prior_mean = self.generated(number + 1, course.before, above)
            apart = apart + divergence(course.mean, course.log_variance, prior_mean, prior_log_variance).sum()
        ahead = self.forecast(torch.cat([course.state[-2] for course in found], dim=1))
        return total / n_windows, apart / n_windows, (ahead - rows[-1]).square().sum() / n_windows


def _by_kind(parts: Sequence[Tensor], n_kinds: int) -> list[Tensor]:
    """Return the layers' first parts of n_kinds, then their second ones, ..."""
    return [part for of_kind in zip(*(part.chunk(n_kinds) for part in parts), strict=True) for part in of_kind]


def _joined(parts: Sequence[Tensor], sizes: Sequence[int], shift: int = 0, n_kinds: int = 1) -> Tensor:
    """Return a block matrix, kind by kind: a part fills its layer's columns, or with shift=1 the lower layer's."""
    starts = [*[0] * shift, *accumulate(sizes, initial=0)][: len(sizes)]
    blocks = zip(_by_kind(parts, n_kinds), n_kinds * starts, strict=True)
    return torch.cat([functional.pad(block, (at, sum(sizes) - at - block.shape[1])) for block, at in blocks])


def _staggered(parts: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return each step of layers' [n_steps, n_windows, size] as columns, each layer a step after the one below it."""
    late = len(parts) - 1
    padded = [functional.pad(part.mT, (0, 0, 0, 0, by, late - by)) for by, part in enumerate(parts)]
    return torch.cat(padded, dim=1).unbind()


def _embeddings(n_nodes: int, size: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(n_nodes, size) / size**0.25)  # products of two have a variance of 1


def _topics(of: Tensor, to: Tensor) -> Tensor:
    """Return the graph's weights from each node of ``of`` to each of ``to``, by their embeddings; rows sum to 1."""
    return (of @ to.t()).softmax(dim=1)
