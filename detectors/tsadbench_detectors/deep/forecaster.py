"""The base of detectors that train a network to forecast the next rows from a window of rows.

It owns windows, standardising, training, device, seeds and progress. A detector's own file holds its network and
what it makes of the errors: it writes `_build_network`, calls `_train` in ``_fit`` and `_errors` in ``_score``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np
import torch
from torch import Tensor, nn

from tsadbench.arrays import FloatArray
from tsadbench.detector import Detector
from tsadbench.errors import DataError, UsageError
from tsadbench.progress import progress
from tsadbench.recording import Recording
from tsadbench_detectors.deep.device import find_device
from tsadbench_detectors.deep.windows import Windows
from tsadbench_detectors.standardise import Standardiser

# Forecast at once when scoring. Without influence on the scores; with some 2,000 sequences (of 8 sensors) a
# recurrent layer's step still fits a core's cache.
_WINDOWS_AT_ONCE = 256
# Far outside any sensor's range, and its square is still a float32.
_LARGEST_Z_SCORE = 1e15


class Forecaster(Detector):
    """A detector whose network sees ``window`` rows and forecasts the ``horizon`` rows that follow.

    A subclass's constructor stores the parameters below, and its own.

    Parameters
    ----------
    window, horizon
        Rows that a forecast sees, and rows that it covers.
    epochs, batch_size, learning_rate
        Of the training, by Adam.
    seed
        Of the initial weights and of the order of the training windows.
    device
        "cpu", "cuda", "cuda:1", ..., or "auto": a GPU where there is one.
    """

    window: int
    horizon: int
    epochs: int
    batch_size: int
    learning_rate: float
    seed: int
    device: str

    standardiser_: Standardiser
    network_: nn.Module
    device_: torch.device

    @abstractmethod
    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        """Return a new network for these training recordings, whose ``standardiser_`` is set already.

        It maps standardised rows [batch, window, n_sensors] to their forecast [batch, horizon, n_sensors].
        """

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002 - a subclass may need them
        for parameter in ("window", "horizon", "epochs", "batch_size"):
            self._require_integer(parameter, at_least=1)
        self._require_integer("seed", at_least=0)
        rate = self.learning_rate
        self._require(isinstance(rate, Real) and 0.0 < rate < math.inf, "learning_rate", "a number above 0")
        find_device(self.device)

    def _require_integer(self, parameter: str, at_least: int) -> None:
        value = getattr(self, parameter)
        self._require(
            isinstance(value, Integral) and at_least <= int(value) < 2**63,
            parameter,
            f"an integer of at least {at_least}",
        )

    def _train(self, recordings: Sequence[Recording]) -> None:
        """Set ``standardiser_`` and train ``network_``.

        Raises
        ------
        DataError
            Where no recording holds a window with its full horizon.
        UsageError
            Where the loss runs away.
        """
        length = self.window + self.horizon
        longest = max(recording.n_rows for recording in recordings)
        if longest < length:
            raise DataError(
                f"{type(self).__name__}: expected a training recording of at least {length} rows (window + horizon), "
                f"the longest has {longest}; train on more rows or make window or horizon smaller"
            )
        self.device_ = find_device(self.device)
        self.standardiser_ = Standardiser.of(recordings)
        # The initial weights are drawn on the CPU, so that they are the same on every device.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seed)
            self.network_ = self._build_network(recordings).to(self.device_)
        self._run_epochs(Windows([self._rows(recording) for recording in recordings], length))
        self.network_.eval()

    def _run_epochs(self, windows: Windows) -> None:
        """Train ``network_``; the one place for whatever decides when training ends."""
        optimiser = torch.optim.Adam(self.network_.parameters(), lr=self.learning_rate)
        order = torch.Generator().manual_seed(self.seed)
        for epoch in range(1, self.epochs + 1):
            batches = torch.split(torch.randperm(len(windows), generator=order), self.batch_size)
            loss = sum(self._step(optimiser, windows[batch]) * len(batch) for batch in batches) / len(windows)
            if not math.isfinite(loss):
                raise UsageError(
                    f"{type(self).__name__}: the loss became {loss} in epoch {epoch} of {self.epochs}; "
                    f"make learning_rate smaller, it is {self.learning_rate}"
                )
            progress(epoch, self.epochs, f"loss {loss:.4f}")

    def _step(self, optimiser: torch.optim.Optimizer, windows: Tensor) -> float:
        optimiser.zero_grad()
        loss = self._loss(*self._past_and_future(windows))
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return loss.item()

    def _loss(self, past: Tensor, future: Tensor) -> Tensor:
        """Return what training makes small: the mean squared error, where a subclass does not override it."""
        return nn.functional.mse_loss(self.network_(past), future)

    def _errors(self, recording: Recording) -> FloatArray:
        """Return each sensor's mean squared error, [n_rows, n_sensors], in standardised units.

        Row t holds the error of the forecast made from the ``window`` rows before it, over the rows t to
        t + horizon - 1, or to the recording's end where that comes first. No forecast meets the first ``window``
        rows: they are NaN.
        """
        errors = np.full(recording.values.shape, np.nan)
        rows = self._rows(recording, missing=self.horizon - 1)
        windows = Windows([rows], self.window + self.horizon)
        with torch.inference_mode():
            for first in range(0, len(windows), _WINDOWS_AT_ONCE):
                batch = torch.arange(first, min(first + _WINDOWS_AT_ONCE, len(windows)))
                past, future = self._past_and_future(windows[batch])
                squared = (self.network_(past) - future).square()
                errors[self.window + batch.numpy()] = squared.nanmean(dim=1).cpu().numpy()
        return errors

    def _training_errors(self, recordings: Sequence[Recording]) -> FloatArray:
        """Return the errors of all windows with a full horizon, [n_windows, n_sensors]."""
        ends = [max(0, recording.n_rows - self.horizon + 1) for recording in recordings]
        return np.concatenate(
            [self._errors(recording)[self.window : end] for recording, end in zip(recordings, ends, strict=True)]
        )

    def _rows(self, recording: Recording, missing: int = 0) -> Tensor:
        """Return a recording's standardised rows, and so many missing ones (NaN) after them."""
        rows = torch.full((recording.n_rows + missing, recording.n_sensors), torch.nan)
        with np.errstate(over="ignore"):
            z_scores = self.standardiser_.z_scores(recording.values)
        rows[: recording.n_rows] = torch.from_numpy(z_scores.clip(-_LARGEST_Z_SCORE, _LARGEST_Z_SCORE))
        return rows.to(self.device_)

    def _past_and_future(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        return windows[:, : self.window], windows[:, self.window :]
