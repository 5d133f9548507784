"""A normalising flow of time series, conditioned along an acyclic graph over the series."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tsadbench_detectors.deep.acyclic_graph import acyclicity, strongest_acyclic

# A standardised sensor's deviation, given its condition, lies between exp(-3) and exp(3). Without a bound, the
# certainty about a sensor that hardly moves would make the loss diverge.
_LARGEST_LOG_SCALE = 3.0


class Network(nn.Module):
    """Encoder, graph and flow."""

    def __init__(self, n_sensors: int, hidden_size: int, blocks: int) -> None:
        super().__init__()
        # Entry [k, j] is the edge from sensor k to sensor j.
        self.edges = nn.Parameter(nn.init.xavier_uniform_(torch.empty(n_sensors, n_sensors)).abs())
        self.register_buffer("allowed", 1.0 - torch.eye(n_sensors))
        self.encoder = nn.LSTM(1, hidden_size)
        self.of_parents = nn.Linear(hidden_size, hidden_size)
        self.of_past = nn.Linear(hidden_size, hidden_size, bias=False)
        self.condition = nn.Linear(hidden_size, hidden_size)
        self.flow = nn.ModuleList(Affine(hidden_size) for _ in range(blocks))

    def adjacency(self) -> Tensor:
        """Return A [n_sensors, n_sensors]."""
        return self.edges * self.get_buffer("allowed")

    def acyclicity(self) -> float:
        """Return h(A)."""
        return acyclicity(self.adjacency().detach()).item()

    @torch.no_grad()
    def project(self) -> None:
        """Clamp every edge's weight to [0, 1]."""
        self.edges.clamp_(0.0, 1.0)

    @torch.no_grad()
    def cut(self) -> None:
        """Forbid all edges except those of an acyclic graph."""
        kept = strongest_acyclic(self.adjacency().cpu().double().numpy())
        self.get_buffer("allowed").copy_(torch.from_numpy(kept))

    def forward(self, windows: Tensor, *, last_only: bool = False) -> Tensor:
        """Return the logarithm of each value's density, given the window before, [steps, batch, n_sensors].

        Parameters
        ----------
        windows
            Scaled rows [batch, window, n_sensors].
        last_only
            Only the last step counts: earlier ones may be left out.
        """
        batch, n_steps, n_sensors = windows.shape
        # Time first, then sensor and window: one product mixes the states of all windows along the graph.
        values = windows.permute(1, 2, 0).reshape(n_steps, n_sensors * batch, 1)
        states, _ = self.encoder(values)
        if last_only:
            states, values = states[-2:], values[-2:]
        conditions = self.conditions(states.view(len(states), n_sensors, batch, -1))
        log_density = self.log_density(values, conditions.flatten(1, 2))
        return log_density.view(len(states), n_sensors, batch).transpose(1, 2)

    def conditions(self, states: Tensor) -> Tensor:
        """Return d, for states [steps, n_sensors, batch, hidden_size], in the same shape."""
        mixed = (self.adjacency().t() @ states.flatten(2)).view(states.shape)
        mapped = self.of_parents(mixed)
        # The state before a window is 0.
        before = nn.functional.pad(self.of_past(states[:-1]), (0, 0, 0, 0, 0, 0, 1, 0))
        conditions: Tensor = self.condition((mapped + before).relu())
        return conditions

    def log_density(self, values: Tensor, conditions: Tensor) -> Tensor:
        """Return ``log p(x | d)``, [..., n], for values [..., n, 1] and conditions [..., n, hidden_size]."""
        log_slope = torch.zeros_like(values)
        for block in self.flow:
            values, log_scale = block(values, conditions)
            log_slope = log_slope - log_scale
        return (log_slope - 0.5 * (values.square() + math.log(2 * math.pi)))[..., 0]


class Affine(nn.Module):
    """A block of the flow: ``u = (x - m(d)) exp(-s(d))``."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.maps = nn.Sequential(nn.Linear(hidden_size, hidden_size), nn.Tanh(), nn.Linear(hidden_size, 2))

    def forward(self, values: Tensor, conditions: Tensor) -> tuple[Tensor, Tensor]:
        """Return u and s, [..., 1] each, for values [..., 1] and conditions [..., hidden_size]."""
        shift, log_scale = self.maps(conditions).chunk(2, dim=-1)
        log_scale = log_scale.clamp(-_LARGEST_LOG_SCALE, _LARGEST_LOG_SCALE)
        return (values - shift) * (-log_scale).exp(), log_scale
