"""The base of detectors that train a network to reconstruct a window of rows through a bottleneck."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from tsadbench.base import FloatArray, Recording
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

    def _contributions(self, recording: Recording) -> FloatArray:
        errors = np.empty(recording.values.shape)
        for first, windows in self._scored_windows(recording, self.window, before=self.window - 1):
            errors[self.window - 1 + first] = (self.network_(windows)[:, -1] - windows[:, -1]).abs().cpu().numpy()
        return errors
