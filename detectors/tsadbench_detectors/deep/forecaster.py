"""The base of detectors that train a network to forecast the next rows from a window of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn

from tsadbench.base import FloatArray, Ge, Recording, detector
from tsadbench_detectors.deep.network_detector import NetworkDetector


@detector
class Forecaster(NetworkDetector):
    """A detector whose network sees ``window`` rows and forecasts the ``horizon`` rows that follow.

    The network maps scaled rows [batch, window, n_sensors] to their forecast [batch, horizon, n_sensors]. A subclass
    makes its score of `_errors`; by default it is their sum.

    Parameters
    ----------
    horizon
        Rows that a forecast covers; 1 if a subclass has no such parameter.
    """

    horizon: Annotated[int, Ge(1)] = field(default=1, init=False)

    def _loss(self, windows: Tensor) -> Tensor:
        """Return the mean squared error, unless a subclass overrides it."""
        past, future = self._past_and_future(windows)
        return nn.functional.mse_loss(self.network_(past), future)

    def _row_terms(self, windows: Tensor) -> Tensor:
        """Return the mean squared error over the rows of the horizon that exist."""
        past, future = self._past_and_future(windows)
        return torch.as_tensor(self.network_(past) - future).square().nanmean(dim=1)

    def _errors(self, recording: Recording) -> FloatArray:
        """Return `_row_terms` of each row, [n_rows, n_sensors]: of the forecast of this row and those after it."""
        return self._by_row(recording, self._row_terms)

    def _training_errors(self, recordings: Sequence[Recording]) -> FloatArray:
        """Return the training windows' errors, [n_windows, n_sensors]; some of them if ``max_steps`` is set."""
        stride, length = self._statistics_stride(recordings, self.stride), self.window + self.horizon
        batches = (batch for one in recordings for _, batch in self._full_windows(one, length, stride=stride))
        return np.concatenate([self._row_terms(windows).double().cpu().numpy() for windows in batches])

    def _past_and_future(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        return windows[:, : self.window], windows[:, self.window :]
