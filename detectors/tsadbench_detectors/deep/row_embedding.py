"""The embedding of a row in transformers for time series."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class RowEmbedding(nn.Module):
    """Embeds each row of a window by its values, its neighbours' and its place.

    It is a circular convolution over three rows plus `sinusoids`.
    """

    places: Tensor

    def __init__(self, window: int, n_sensors: int, width: int) -> None:
        super().__init__()
        self.values = nn.Linear(3 * n_sensors, width, bias=False)
        self.register_buffer("places", sinusoids(window, width), persistent=False)

    def forward(self, windows: Tensor) -> Tensor:
        """Return [batch, window, width] for windows [batch, window, n_sensors]."""
        around = torch.cat([windows.roll(1, dims=1), windows, windows.roll(-1, dims=1)], dim=2)
        rows: Tensor = self.values(around) + self.places
        return rows


def sinusoids(window: int, width: int) -> Tensor:
    """Return alternating sines and cosines of each row's place, ever slower, [window, width] (Vaswani et al. 2017)."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(window)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :width]
