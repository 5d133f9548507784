"""GReLeN: infers from every window which sensors drive which, and watches how these relations change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from tsadbench.base import Cheap, Choice, FloatArray, Ge, Gt, Lt, Recording, Traits, Tune, detector, extra
from tsadbench_detectors.standardise import UnitRange

with extra("grelen", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    from tsadbench_detectors.deep.batch_norm import BatchNorm
    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size

Statistic: TypeAlias = Literal["reference", "difference", "deviation", "reconstruction"]

_OF_CHANGE = ("reference", "difference")  # how much relations change from one row to the next
_PRIOR = (0.91, 0.03, 0.03, 0.03)  # probabilities of the types of relation; the first type is "none"
_FEATURES, _KEY = 64, 32  # widths of the graph learner
_SMALLEST_SHARE = 1e-12  # of a type, in the divergence: the logarithm of 0 has no gradient
_SMALLEST_DEVIATION = 1e-6  # of m in training windows


@detector
class GReLeN(NetworkDetector):
    """Scores changes of the relations between sensors, which it learns as latent variables of a forecast.

    A graph learner maps the sensors' windows to the probabilities of four types of relation for each ordered pair of
    sensors; the first type is "none". For each other type, a recurrent layer exchanges its state along a graph of
    drawn relations and forecasts each next row of the window. The score is made of each sensor's mean probability of
    having no relation: see ``statistic``. A single sensor has no relations: it scores 0, except with "reconstruction".

    Parameters of training, ``size`` and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once.
    hidden_size
        Width of the recurrent layers, for each sensor. None: 16; at size "paper" 64.
    diffusion_steps
        Number of relations along which the state travels in one step, with and against their direction.
    temperature
        Temperature of the Gumbel-softmax: the smaller, the nearer its draws are to 0 and 1.
    statistic
        "reference": as in the authors' code (github.com/Vicky-51/GRELEN, test_grelen.py), the mean over the sensors of
        m_i's distance from its moving average over two windows; there, thresholds lie on both sides of 0, here the
        score is the absolute value. "difference": the mean of the absolute values, which are the contributions of
        both. Both see one more row. "deviation": how many standard deviations of the training windows m_i is from
        their mean, averaged over the sensors. "reconstruction": the mean squared error of the last row's forecast, with
        the probabilities instead of drawn relations.

    Notes
    -----
    Equations
        ``p_ij = softmax_c(q_i^c . k_j^c)`` over four types of relation, drawn by Gumbel-softmax in training. Loss:
        ``sum (x - forecast)^2 / 2 + KL(mean_ij p_ij || (.91, .03, .03, .03))``, summed over the window. Score:
        ``|mean_i (m_i(t) - m_i(t - 1)) / 2|`` with m_i(t) the mean over j of ``p_ij(none)`` in the window that ends
        with row t.
    Differences
        The score belongs to the window's last row (in the reference to the first, a look-ahead of 29 rows), and scoring
        draws nothing. The reference's statistics average relations over i, not j, and its diffusion counts a sensor
        itself twice. Batch normalisation scores by its running moments, not by those of the same batch. The
        diffusion takes all its hops; the reference leaves out the second. Values enter the recurrent layers directly: a
        linear layer before a linear convolution would add nothing.
    Defaults
        window = 30, two diffusion steps, temperature 0.5, four types and their prior are the paper's. For cost: width
        16 (size "paper": 64), every second window of training, 12 epochs (not up to 300) at one learning rate.

    References
    ----------
    W. Zhang, C. Zhang and F. Tsung, GRELEN: multivariate time series anomaly detection from the perspective of graph
    relational learning, IJCAI 2022.
    """

    traits: ClassVar[Traits] = Traits(
        family="graph",
        stochastic=True,
        scoring_parameters=("statistic",),
        extra="deep",
        paper="Zhang, Zhang, Tsung, IJCAI 2022 (GReLeN)",
        differs=("schedule differs",),
    )
    _scaling = UnitRange

    paper: ClassVar[Mapping[str, int]] = {"hidden_size": 64}

    window: Annotated[int, Ge(2), Tune(10, 60, log=True, alters_loss=True), Cheap(8)] = 30
    stride: int = 2
    size: Size = "default"
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 8, 32, 64)), Cheap(4)] = None
    diffusion_steps: Annotated[int, Ge(1), Tune(1, 3)] = 2
    temperature: Annotated[float, Gt(0), Lt(math.inf), Tune(0.1, 1.0, log=True)] = 0.5
    statistic: Annotated[Statistic, Choice(get_args(Statistic))] = "reference"
    epochs: Annotated[int, Cheap(6)] = 12
    batch_size: Annotated[int, Choice((32, 64, 128, 256)), Cheap(32)] = 64
    network_: Network = field(init=False)

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(
            super().declared_traits(), memory=self.window if self.statistic in _OF_CHANGE else self.window - 1
        )

    def expected_check_failures(self) -> Mapping[str, str]:  # noqa: D102
        if self.statistic == "reconstruction":
            return {}
        known = {
            "contributions": "while a fault lasts, the relations of the sensor that moved are saturated and no longer "
            "change; those of the others go on changing",
            "fault": "its score, as published, is how much relations change from one row to the next: it rises when a "
            "fault begins and when it ends, not while it lasts (statistic=deviation does)",
        }
        return {"contributions": known["contributions"]} if self.statistic == "deviation" else known

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:  # noqa: ARG002 - for any number of sensors
        return Network(self.window, self._given_or("hidden_size", 16), self.diffusion_steps)

    def _loss(self, windows: Tensor) -> Tensor:
        logits = self.network_.learner(windows)
        relations = probabilities = logits.softmax(dim=1)
        if self.network_.training:
            relations = functional.gumbel_softmax(logits, tau=self.temperature, hard=True, dim=1)
        error = (self.network_.decoder(windows[:, :-1], relations) - windows[:, 1:]).square()
        return torch.as_tensor(0.5 * error.sum(dim=1).mean() + divergence(probabilities).mean())

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        super()._fit(recordings)
        self.network_.learner.double()  # neighbouring windows differ by little more than single precision's rounding
        stride = self._statistics_stride(recordings, 1)
        full = (self._full_windows(recording, self.window, stride=stride) for recording in recordings)
        by_window = torch.cat([self._unrelated_in(windows) for of_one in full for _, windows in of_one]).cpu().numpy()
        self.unrelated_mean_ = by_window.mean(axis=0)
        self.unrelated_deviation_ = np.maximum(by_window.std(axis=0), _SMALLEST_DEVIATION)

    def _held_out_loss(self, recordings: tuple[Recording, ...], first: int) -> float:
        """Return the loss of training, in single precision."""
        self.network_.learner.float()
        try:
            return super()._held_out_loss(recordings, first)
        finally:
            self.network_.learner.double()

    def _score(self, recording: Recording) -> FloatArray:
        if self.statistic == "reference":
            return np.asarray(np.abs(self._half_changes(recording).mean(axis=1)))
        return super()._score(recording)

    def _contributions(self, recording: Recording) -> FloatArray:
        if self.statistic == "reconstruction":
            terms = self._by_row(recording, self._errors)
        elif self.statistic == "deviation":
            terms = np.abs(self._unrelated(recording) - self.unrelated_mean_) / self.unrelated_deviation_
        else:
            terms = np.abs(self._half_changes(recording))
        return terms / recording.n_sensors

    def _half_changes(self, recording: Recording) -> FloatArray:
        """Return m's distance from its mean over the windows of this row and the previous one, [n_rows, n_sensors]."""
        by_row = self._unrelated(recording)
        # The window before the first row's would hold only copies of the first row too.
        return np.asarray(np.diff(by_row, axis=0, prepend=by_row[:1]) / 2)

    def _unrelated(self, recording: Recording) -> FloatArray:
        """Return m [n_rows, n_sensors]."""
        return self._by_row(recording, self._unrelated_in)

    def _unrelated_in(self, windows: Tensor) -> Tensor:
        """Return m in windows, [n_windows, n_sensors]."""
        return unrelated(self._probabilities(windows))

    def _errors(self, windows: Tensor) -> Tensor:
        """Return the squared errors of the windows' last rows, [n_windows, n_sensors]."""
        forecast = self.network_.decoder(windows[:, :-1], self._probabilities(windows).float())[:, -1]
        return torch.as_tensor((forecast - windows[:, -1]).square())

    def _probabilities(self, windows: Tensor) -> Tensor:
        """Return the probabilities of each pair's types of relation, [batch, type, from, to], in double precision."""
        return torch.as_tensor(self.network_.learner(windows.double()).softmax(dim=1))


def unrelated(probabilities: Tensor) -> Tensor:
    """Return m [batch, n_sensors]: the mean probability that a sensor has no relation to another; 0 without others."""
    return _of_pairs(probabilities)[:, 0].sum(dim=-1) / max(1, probabilities.shape[-1] - 1)


def divergence(probabilities: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of the pairs' mean probabilities from the prior, [batch]."""
    n_sensors = probabilities.shape[-1]
    shares = _of_pairs(probabilities).sum(dim=(2, 3)) / max(1, n_sensors * (n_sensors - 1))
    shares = shares.clamp_min(_SMALLEST_SHARE)
    return (shares * (shares / shares.new_tensor(_PRIOR)).log()).sum(dim=1)


def _of_pairs(probabilities: Tensor) -> Tensor:
    """Return probabilities [batch, type, n_sensors, n_sensors] with 0 on the diagonal."""
    return probabilities * (1.0 - torch.eye(probabilities.shape[-1]).to(probabilities))


def random_walks(adjacency: Tensor, n_steps: int) -> Tensor:
    """Return the walks ``I, S, ..., S^n, R, ..., R^n`` with and against the edges, [..., from, walk, to].

    ``S = D_out^-1 A`` and ``R = D_in^-1 A^T``; every sensor of A [..., from, to] needs an edge out and an edge in.
    """
    walks = [torch.eye(adjacency.shape[-1]).to(adjacency).expand_as(adjacency)]
    for edges in (adjacency, adjacency.transpose(-1, -2)):
        step = edges / edges.sum(dim=-1, keepdim=True)
        walks.append(step)
        for _ in range(n_steps - 1):
            walks.append(step @ walks[-1])
    return torch.stack(walks, dim=-2)


class Network(nn.Module):
    """Graph learner and decoder."""

    def __init__(self, window: int, hidden_size: int, diffusion_steps: int) -> None:
        super().__init__()
        self.learner = GraphLearner(window)
        self.decoder = Decoder(hidden_size, diffusion_steps)


class GraphLearner(nn.Module):
    """Infers relations from a window: a perceptron shared by the sensors, then queries and keys per sensor and type."""

    def __init__(self, window: int) -> None:
        super().__init__()
        layers = [nn.Linear(window, _FEATURES), nn.Linear(_FEATURES, _FEATURES)]
        for layer in layers:
            nn.init.xavier_normal_(layer.weight)
            nn.init.constant_(layer.bias, 0.1)
        self.encoder = nn.Sequential(layers[0], nn.ELU(), layers[1], nn.ELU(), BatchNorm(_FEATURES))
        self.query = nn.Linear(_FEATURES, len(_PRIOR) * _KEY)
        self.key = nn.Linear(_FEATURES, len(_PRIOR) * _KEY)

    def forward(self, windows: Tensor) -> Tensor:
        """Return each pair's logits, [batch, type, from, to], for scaled rows [batch, window, n_sensors]."""
        batch, _, n_sensors = windows.shape
        features = self.encoder(windows.transpose(1, 2).flatten(0, 1)).view(batch, n_sensors, _FEATURES)
        query, key = (_by_type(linear(features)) for linear in (self.query, self.key))
        return torch.matmul(query, key.transpose(2, 3))


def _by_type(features: Tensor) -> Tensor:
    return features.view(*features.shape[:2], len(_PRIOR), _KEY).transpose(1, 2)


class Decoder(nn.Module):
    """Forecasts each next row: for each type of relation a gated recurrent unit whose maps are diffusion convolutions.

    A diffusion convolution maps what arrives at a sensor by each of the `random_walks`. The mean of the types' states
    gives the forecast.
    """

    def __init__(self, hidden_size: int, diffusion_steps: int) -> None:
        super().__init__()
        self.diffusion_steps = diffusion_steps
        n_inputs = (1 + 2 * diffusion_steps) * (1 + hidden_size)
        self.gates = _Maps(n_inputs, 2 * hidden_size)
        self.candidate = _Maps(n_inputs, hidden_size)
        self.head = nn.Linear(hidden_size, 1)

    def forward(self, rows: Tensor, relations: Tensor) -> Tensor:
        """Return the forecast of the row after each row, for relations (or probabilities) [batch, type, from, to]."""
        n_types, (batch, _, n_sensors) = len(_PRIOR) - 1, rows.shape
        adjacency = _of_pairs(relations)[:, 1:] + torch.eye(n_sensors).to(relations)
        # From here on, the first dimension is (type, window): one product for all of them.
        walks = random_walks(adjacency.transpose(0, 1).flatten(0, 1), self.diffusion_steps).flatten(1, 2)
        values = rows.permute(1, 0, 2)[..., None].repeat(1, n_types, 1, 1)

        def diffused(state: Tensor, maps: _Maps) -> Tensor:
            arriving = (walks @ state).view(n_types, batch * n_sensors, -1)
            return torch.as_tensor(maps(arriving)).view(n_types * batch, n_sensors, -1)

        state = rows.new_zeros(n_types * batch, n_sensors, self.head.in_features)
        states = []
        for value in values:
            update, reset = diffused(torch.cat([value, state], dim=-1), self.gates).sigmoid().chunk(2, dim=-1)
            candidate = diffused(torch.cat([value, reset * state], dim=-1), self.candidate).tanh()
            state = torch.lerp(candidate, state, update)
            states.append(state)
        by_type = torch.stack(states).view(len(states), n_types, batch, n_sensors, -1)
        forecast: Tensor = self.head(by_type.mean(dim=1))[..., 0]
        return forecast.transpose(0, 1)


class _Maps(nn.Module):
    """One linear map for each type of relation except "none": [type, n, n_in] to [type, n, n_out]."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        maps = [nn.init.xavier_uniform_(torch.empty(n_in, n_out)) for _ in _PRIOR[1:]]
        self.weight = nn.Parameter(torch.stack(maps))
        self.bias = nn.Parameter(torch.zeros(len(maps), 1, n_out))

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, inputs, self.weight)
