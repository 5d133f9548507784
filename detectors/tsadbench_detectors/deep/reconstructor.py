"""The base of detectors that train a network to reconstruct a window of rows through a bottleneck."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsadbench_detectors.deep.network_detector import NetworkDetector


class Reconstructor(NetworkDetector):
    """A detector whose network reconstructs ``window`` rows; a row is scored by the window that ends with it.

    The network maps scaled rows [batch, window, n_sensors] to their reconstruction of the same shape. The score is the
    sum over the sensors of the absolute error of the window's last row; each sensor's term is its contribution. Copies
    of a recording's first row stand in for rows before it, so that every row has a score.
    """

    def _loss(self, windows: Tensor) -> Tensor:
        """Return the mean squared error, unless a subclass overrides it."""
        return nn.functional.mse_loss(self.network_(windows), windows)

    def _row_terms(self, windows: Tensor) -> Tensor:
        """Return the absolute errors of the windows' last rows."""
        return torch.as_tensor(self.network_(windows)[:, -1] - windows[:, -1]).abs()
