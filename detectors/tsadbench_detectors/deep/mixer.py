"""A forecaster of layers that mix rows and layers that mix sensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsadbench_detectors.deep.batch_norm import BatchNorm

# Added to the variance of a standardised sensor in a window, which is 0 if the sensor is constant.
_EPSILON = 1e-5


class Mixer(nn.Module):
    """Forecasts the next row from a window: TSMixer blocks inside a reversible instance normalisation (RevIN)."""

    def __init__(self, window: int, n_sensors: int, hidden_size: int, blocks: int, *, normalised: bool) -> None:
        super().__init__()
        self.normalised = normalised
        # Part of the normalisation; without it, they stay 1 and 0.
        self.gain = nn.Parameter(torch.ones(n_sensors), requires_grad=normalised)
        self.offset = nn.Parameter(torch.zeros(n_sensors), requires_grad=normalised)
        self.blocks = nn.ModuleList(MixerBlock(window, n_sensors, hidden_size) for _ in range(blocks))
        self.head = nn.Linear(window, 1)

    def forward(self, past: Tensor) -> Tensor:
        """Return the forecast [batch, 1, n_sensors] of rows [batch, window, n_sensors]."""
        level, spread = torch.zeros_like(past[:, :1]), torch.ones_like(past[:, :1])
        if self.normalised:
            variance, level = torch.var_mean(past, dim=1, correction=0, keepdim=True)
            spread = (variance + _EPSILON).sqrt()
        rows = (past - level) / spread * self.gain + self.offset
        for block in self.blocks:
            rows = block(rows)
        output = self.head(rows.mT).mT
        return torch.as_tensor((output - self.offset) / self.gain * spread + level)


class MixerBlock(nn.Module):
    """Mixes each sensor's rows, then each row's sensors, each with a residual connection."""

    def __init__(self, window: int, n_sensors: int, hidden_size: int) -> None:
        super().__init__()
        self.row_norm = BatchNorm(window * n_sensors)
        self.rows = nn.Linear(window, window)
        self.sensor_norm = BatchNorm(window * n_sensors)
        self.sensors_in = nn.Linear(n_sensors, hidden_size)
        self.sensors_out = nn.Linear(hidden_size, n_sensors)

    def forward(self, values: Tensor) -> Tensor:
        """Return mixed values, [batch, window, n_sensors], for values of this shape."""
        normal = self.row_norm(values.flatten(1)).view(values.shape)
        values = values + self.rows(normal.mT).relu().mT
        normal = self.sensor_norm(values.flatten(1)).view(values.shape)
        return values + torch.as_tensor(self.sensors_out(self.sensors_in(normal).relu()))
