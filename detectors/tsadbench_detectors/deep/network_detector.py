"""The base of detectors that train a network on windows of rows.

It owns windows, scaling, training with early stopping, device, seeds and progress. A detector's own file holds its
network, its loss and its score: it writes `_build_network`, `_loss` and, by `_scored_windows`, ``_contributions`` or
``_score``. `Forecaster` and `Reconstructor` do that for the two usual kinds.
"""

from __future__ import annotations

import copy
import math
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral, Real
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tsadbench import DataError, UsageError, progress
from tsadbench.base import SHARE_SEEN, Detector, Fact, FloatArray, IntArray, Recording, Traits, share_note
from tsadbench_detectors.deep.device import find_device
from tsadbench_detectors.deep.windows import Windows
from tsadbench_detectors.standardise import Scaler, Standardiser

# Windows scored at once. It does not change the scores; with about 2,000 sequences (of 8 sensors), a recurrent layer's
# step still fits in a core's cache.
_WINDOWS_AT_ONCE = 256
# Training steps between two reports within an epoch.
_STEPS_A_REPORT = 100
# Of so many windows, evenly spaced, quantiles and mean losses are known well enough.
_ENOUGH_WINDOWS = 10_000
# Far outside any sensor's range, and its square is still a float32.
_LARGEST_SCALED = 1e15


class NetworkDetector(Detector):
    """A detector whose network sees ``window`` rows, and in training the ``horizon`` rows that follow.

    A subclass's constructor stores the parameters below and its own. One without ``stride``, ``max_steps``, or
    ``held_out`` and ``patience``, leaves them as they are here: it trains on all windows, as often as ``epochs`` says.
    By default, a row's score is the sum of its sensors' contributions.

    Parameters
    ----------
    window
        Rows that the network sees.
    stride
        Rows from the start of one training window to the start of the next; every row is scored.
    epochs
        Passes over the training windows, at most.
    max_steps
        Training steps, at most; None: no bound. The first steps are those of a training without a bound, which then
        ends, within an epoch if need be. What else a fit computes of its windows is bounded too: losses on held-out
        windows, and errors for later use, come from at most as many windows, evenly spaced, as these steps hold, or
        from 10,000 if that is more.
    batch_size
        Windows per training step.
    learning_rate
        Adam's.
    held_out
        Share of each training recording's windows, its last ones, that is watched instead of trained on. A recording
        that is too short for that (`Windows.hold_out`) is trained on whole.
    patience
        Training ends when the loss on the held-out windows has not fallen for this many epochs; the network with the
        smallest such loss is kept.
    seed
        Decides the initial weights, the order of the training windows and everything else that is drawn.
    device
        "cpu", "cuda", "cuda:1", ..., or "auto": a GPU if there is one.
    """

    window: int
    horizon: int = 0
    stride: int = 1
    epochs: int
    max_steps: int | None = None
    batch_size: int
    learning_rate: float
    held_out: float = 0.0
    patience: int = 1
    seed: int
    device: str

    scaler_: Scaler
    network_: nn.Module
    device_: torch.device
    # After each epoch, the last of which may be a part of one: the mean loss of the windows trained on in it, and the
    # held-out windows' (NaN if there are none).
    losses_: list[tuple[float, float]]
    # Training steps taken, and those there are if nothing ends training early.
    steps_: int
    most_steps_: int
    # Windows trained on at least once, and those that could be with a stride of 1.
    n_seen_: int
    n_windows_: int

    @abstractmethod
    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        """Return a new network for these training recordings; ``scaler_`` is set already."""

    @abstractmethod
    def _loss(self, windows: Tensor) -> Tensor:
        """Return the loss to minimise, for scaled rows [batch, window + horizon, n_sensors]."""

    def declared_traits(self) -> Traits:
        """Return the traits: a score depends on the window and, if the network forecasts, on all of the horizon."""
        memory = self.window if self.horizon else self.window - 1
        return replace(self.traits, memory=memory, look_ahead=max(0, self.horizon - 1))

    def _score(self, recording: Recording) -> FloatArray:
        return np.asarray(self._contributions(recording).sum(axis=1))

    def _learn_scaler(self, recordings: Sequence[Recording]) -> Scaler:
        """Return the scaler of the rows."""
        return Standardiser.of(recordings)

    def _rebuilt_network(self) -> nn.Module:
        """Return a network for a model file's weights; override it if `_build_network` uses training rows."""
        return self._build_network([Recording("none", np.zeros((1, len(self.sensors_))), self.sensors_)])

    def _learned(self) -> dict[str, object]:
        kept = {name: value for name, value in super()._learned().items() if name != "device_"}
        weights = {name: tensor.cpu().numpy() for name, tensor in self.network_.state_dict().items()}
        return {**kept, "network_": weights}

    def _restore(self, learned: Mapping[str, object]) -> None:
        super()._restore({name: value for name, value in learned.items() if name != "network_"})
        weights = cast("Mapping[str, NDArray[np.generic]]", learned["network_"])
        self.device_ = find_device(self.device)
        with self._own_randomness():  # initial weights are drawn
            self.network_ = self._rebuilt_network()
        # Assigned, not copied: a detector may have changed some of its weights to double precision.
        self.network_.load_state_dict({name: torch.tensor(array) for name, array in weights.items()}, assign=True)
        self.network_.to(self.device_).eval()

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002 - a subclass may need them
        for parameter in ("window", "stride", "epochs", "batch_size", "patience"):
            self._require_integer(parameter, at_least=1)
        if self.max_steps is not None:
            self._require_integer("max_steps", at_least=1)
        self._require_integer("seed", at_least=0)
        rate, share = self.learning_rate, self.held_out
        self._require(isinstance(rate, Real) and 0.0 < rate < math.inf, "learning_rate", "a number above 0")
        self._require(isinstance(share, Real) and 0.0 <= share < 0.5, "held_out", "a number from 0 to below 0.5")
        self._require(
            isinstance(self.device, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device) is not None,
            "device",
            "'auto', 'cpu', 'cuda' or 'cuda:NUMBER'",
        )

    def _check_machine(self) -> None:
        find_device(self.device)

    def _require_integer(self, parameter: str, at_least: int) -> None:
        value = getattr(self, parameter)
        self._require(
            isinstance(value, Integral) and at_least <= int(value) < 2**63,
            parameter,
            f"an integer of at least {at_least}",
        )

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        """Set ``scaler_``, train ``network_`` and leave it ready to score.

        Raises
        ------
        DataError
            If no recording holds a window with its full horizon.
        UsageError
            If the loss is not finite.
        """
        length = self.window + self.horizon
        longest = max(recording.n_rows for recording in recordings)
        if longest < length:
            raise DataError(
                f"{type(self).__name__}: expected a training recording of at least {length} rows (window + horizon), "
                f"the longest has {longest}; train on more rows or make window or horizon smaller"
            )
        self.device_ = find_device(self.device)
        self.scaler_ = self._learn_scaler(recordings)
        with self._own_randomness():
            # The initial weights are drawn on the CPU, so that they are the same on every device.
            self.network_ = self._build_network(recordings).to(self.device_)
            self._run_epochs(self._training_windows(recordings))
        self.network_.eval()

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """Make random numbers drawn inside depend on the seed alone, without touching the generators outside."""
        on_gpu = self.device_.type == "cuda"
        with torch.random.fork_rng(devices=[self.device_] if on_gpu else []):
            torch.default_generator.manual_seed(self.seed)
            if on_gpu:
                with torch.cuda.device(self.device_):
                    torch.cuda.manual_seed(self.seed)
            yield

    def _training_windows(self, recordings: Sequence[Recording]) -> Windows:
        """Return the windows with a full horizon, one every ``stride`` rows."""
        rows = [self._rows(recording) for recording in recordings]
        return Windows(rows, self.window + self.horizon, self.stride)

    def _run_epochs(self, windows: Windows) -> None:
        """Train ``network_`` until the last epoch or step, or until the held-out loss stops falling."""
        # One kernel for all weights instead of a dozen each, which small networks would spend most of a step in.
        fused = self.device_.type in ("cpu", "cuda")
        optimiser = torch.optim.Adam(self.network_.parameters(), lr=self.learning_rate, fused=fused)
        order = torch.Generator().manual_seed(self.seed)
        training, held_out = windows.hold_out(self.held_out)
        held_out = held_out[:: self._gap(len(held_out))]
        best, best_weights = math.inf, None
        since_best = 0
        self.losses_ = []
        self.steps_, self.n_seen_, self.n_windows_ = 0, 0, windows.n_without_stride(training)
        self.most_steps_ = self.epochs * math.ceil(len(training) / self.batch_size)
        if self.max_steps is not None:
            self.most_steps_ = min(self.most_steps_, self.max_steps)
        for epoch in range(1, self.epochs + 1):
            loss = self._run_epoch(epoch, optimiser, windows, training[torch.randperm(len(training), generator=order)])
            watched = self._mean_loss(windows, held_out)
            self.losses_.append((loss, watched))
            self._report(epoch, f"loss {loss:.4f}" + ("" if math.isnan(watched) else f", held out {watched:.4f}"))
            if len(held_out) > 0:
                since_best = 0 if watched < best else since_best + 1
                if watched < best:
                    best, best_weights = watched, copy.deepcopy(self.network_.state_dict())
            if since_best == self.patience or self.steps_ == self.max_steps:
                break
        if best_weights is not None:
            self.network_.load_state_dict(best_weights)
        if note := share_note([self._training_facts()]):
            self._report(epoch, note)

    def _run_epoch(self, epoch: int, optimiser: torch.optim.Optimizer, windows: Windows, shuffled: Tensor) -> float:
        """Take a step for each batch of the windows of these numbers; return the mean loss of those trained on."""
        batches = torch.split(shuffled, self.batch_size)
        if self.max_steps is not None:
            batches = batches[: self.max_steps - self.steps_]
        self.network_.train()
        loss, n_seen = 0.0, 0
        for step, batch in enumerate(batches, start=1):
            loss += self._step(optimiser, windows[batch]) * len(batch)
            n_seen += len(batch)
            self.steps_ += 1
            if step % _STEPS_A_REPORT == 0:
                self._require_finite(loss, epoch)
                self._report(epoch - 1, f"step {step} of {len(batches)} in epoch {epoch}, loss {loss / n_seen:.4f}")
        self.n_seen_ = max(self.n_seen_, n_seen)
        self._require_finite(loss, epoch)
        return loss / n_seen

    def _require_finite(self, loss: float, epoch: int) -> None:
        if not math.isfinite(loss):
            raise UsageError(
                f"{type(self).__name__}: the loss became {loss} in epoch {epoch} of {self.epochs}; "
                f"make learning_rate smaller, it is {self.learning_rate}"
            )

    def _report(self, epochs: int, note: str) -> None:
        """Report progress in epochs; in steps if those are bounded."""
        if self.max_steps is None:
            progress(epochs, self.epochs, note)
        else:
            progress(self.steps_, self.most_steps_, note)

    def _training_facts(self) -> Mapping[str, Fact]:
        """Return steps, epochs (the last of which may be a part of one), and the last epoch's losses.

        ``n_windows`` counts the windows that could be trained on with a stride of 1, without those held out;
        ``share_seen`` is the share of them that was trained on at least once.
        """
        if not hasattr(self, "steps_"):  # a model file of version 0.1.0
            return {}
        loss, held_out_loss = self.losses_[-1]
        return {
            "steps": self.steps_,
            "epochs": len(self.losses_),
            "n_windows": self.n_windows_,
            SHARE_SEEN: self.n_seen_ / self.n_windows_,
            "loss": loss,
            "held_out_loss": held_out_loss if math.isfinite(held_out_loss) else None,
            "on_gpu": self.device_.type == "cuda",
        }

    def _gap(self, n_windows: int) -> int:
        """Return k: of so many windows, every k-th is looked at outside of training steps; all if those are unbounded.

        A bound on the steps alone would leave a fit without a bound.
        """
        if self.max_steps is None:
            return 1
        return math.ceil(n_windows / max(_ENOUGH_WINDOWS, self.max_steps * self.batch_size)) or 1

    def _statistics_stride(self, recordings: Sequence[Recording], stride: int) -> int:
        """Return the rows between windows, at least ``stride``, of which a fit takes statistics after training."""
        length = self.window + self.horizon
        return stride * self._gap(sum(len(range(0, recording.n_rows - length + 1, stride)) for recording in recordings))

    def _step(self, optimiser: torch.optim.Optimizer, windows: Tensor) -> float:
        optimiser.zero_grad()
        loss = self._loss(windows)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return loss.item()

    def _mean_loss(self, windows: Windows, numbers: Tensor) -> float:
        """Return the mean loss of the windows of these numbers, in scoring mode; NaN if there are none."""
        if len(numbers) == 0:
            return math.nan
        self.network_.eval()
        with torch.inference_mode():
            batches = torch.split(numbers, _WINDOWS_AT_ONCE)
            return sum(self._loss(windows[batch]).item() * len(batch) for batch in batches) / len(numbers)

    def _held_out_loss(self, recordings: tuple[Recording, ...], first: int) -> float:
        """Return the mean loss, in scoring mode, of the windows whose forecast starts at ``first`` or later.

        Thus windows of different lengths are measured on the same forecasts.
        """
        parts = [recording.rows(max(0, first - self.window), recording.n_rows) for recording in recordings]
        windows = self._training_windows(parts)
        if len(windows) == 0:
            raise DataError(
                f"{type(self).__name__}: expected held-out recordings of at least {self.window + self.horizon} rows "
                f"(window + horizon), the longest part has {max(part.n_rows for part in parts)}"
            )
        return self._mean_loss(windows, torch.arange(len(windows)))

    def _scored_windows(
        self, recording: Recording, length: int, missing: int = 0, stride: int = 1
    ) -> Iterator[tuple[IntArray, Tensor]]:
        """Yield batches of a recording's windows: the first rows' indices [batch], and [batch, length, n_sensors].

        In inference mode. ``missing`` rows of NaN follow the recording's end. All windows, or every ``stride``-th.
        """
        windows = Windows([self._rows(recording, missing)], length, stride)
        with torch.inference_mode():
            for first in range(0, len(windows), _WINDOWS_AT_ONCE):
                batch = torch.arange(first, min(first + _WINDOWS_AT_ONCE, len(windows)))
                yield stride * batch.numpy(), windows[batch]

    def _rows(self, recording: Recording, missing: int = 0) -> Tensor:
        """Return a recording's scaled rows, and ``missing`` rows of NaN after them."""
        rows = torch.full((recording.n_rows + missing, recording.n_sensors), torch.nan)
        with np.errstate(over="ignore"):
            scaled = self.scaler_.scaled(recording.values)
        rows[: recording.n_rows] = torch.from_numpy(scaled.clip(-_LARGEST_SCALED, _LARGEST_SCALED))
        return rows.to(self.device_)
