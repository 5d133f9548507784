"""The base of detectors that train a network on windows of rows.

It owns windows, scaling, training with early stopping, device, seeds and progress. A detector's own file holds its
network, its loss and its score: `_build_network`, `_loss` and `_row_terms`. `Forecaster` and `Reconstructor` implement
the latter two. A network with several losses also overrides `_losses` and `_optimisers`; one that is trained in parts
overrides `_train`.
"""

from __future__ import annotations

import math
import operator
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, fields, replace
from typing import Annotated, ClassVar, Literal, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from tsadbench import DataError, UsageError
from tsadbench.base import Cheap, Detector, Fact, FloatArray, Ge, Gt, IntArray, Lt, Recording, Traits, Tune, detector
from tsadbench_detectors.deep.device import find_device
from tsadbench_detectors.deep.training import Loss, Losses, Training, TrainingPlan, joined_facts, mean_loss
from tsadbench_detectors.deep.windows import WINDOWS_AT_ONCE, Windows
from tsadbench_detectors.standardise import Scaler, Standardiser, UnitRange

Size: TypeAlias = Literal["default", "paper"]

# Far outside any sensor's range; its square is still finite in float32.
_LARGEST_SCALED = 1e15


@detector
class NetworkDetector(Detector):
    """A detector whose network sees ``window`` rows, and in training the ``horizon`` rows that follow.

    A subclass declares its own parameters, and those below whose default differs. By default, a sensor's contribution
    is its `_row_terms`, and a row's score the sum of its sensors' contributions. A subclass declares
    ``network_: Network = field(init=False)`` for the type checker.

    Parameters
    ----------
    window
        Rows that the network sees.
    stride
        Rows from the start of one training window to the start of the next; every row is scored.
    epochs
        Maximum number of passes over the training windows, unless ``min_steps`` needs more.
    min_steps
        Minimum number of training steps: epochs are added until it is reached, and ``patience`` never ends training
        earlier, so that few training rows train a network as well as many.
    max_steps
        Maximum number of training steps, even if ``min_steps`` is more; None: no bound. A bound may end an epoch early;
        held-out losses and statistics then use evenly spaced windows: at most as many as these steps hold, or 10,000 if
        that is more.
    batch_size
        Windows per training step.
    learning_rate
        Learning rate of Adam.
    held_out
        Share of each training recording's windows, its last ones, that is watched instead of trained on. A short
        recording (`Windows.hold_out`) is trained on whole.
    patience
        Training ends when the loss on the held-out windows has not fallen for this many epochs; the network with the
        smallest such loss is kept.
    size
        "default", or "paper": parameters that are None have published values (``paper``) for any number of sensors.
    seed
        Seed of the initial weights, the order of the training windows and all other random numbers.
    device
        "cpu", "cuda", "cuda:1", ..., or "auto": a GPU if there is one.
    """

    window: Annotated[int, Ge(1)]
    horizon: int = field(default=0, init=False)
    stride: Annotated[int, Ge(1)] = 1
    epochs: Annotated[int, Ge(1), Cheap(1)]
    min_steps: Annotated[int, Ge(1), Cheap(1)] = 500
    max_steps: Annotated[int | None, Ge(1)] = None
    batch_size: Annotated[int, Ge(1)]
    learning_rate: Annotated[float, Gt(0), Lt(math.inf), Tune(1e-4, 1e-2, log=True)] = 1e-3
    held_out: Annotated[float, Ge(0), Lt(0.5)] = 0.1
    patience: Annotated[int, Ge(1)] = 3
    size: Size = field(default="default", init=False)
    seed: Annotated[int, Ge(0)] = 0
    device: str = "cpu"

    # The published values of parameters that are None.
    paper: ClassVar[Mapping[str, int]] = {}
    _scaling: ClassVar[type[Standardiser | UnitRange]] = Standardiser
    # What a network learns that needs at least two sensors; empty if it works with one.
    _needs_two_sensors_for: ClassVar[str] = ""

    @abstractmethod
    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        """Return a new network for these training recordings; ``scaler_`` is set already."""

    @abstractmethod
    def _loss(self, windows: Tensor) -> Tensor:
        """Return the loss to minimise, for scaled rows [batch, window + horizon, n_sensors]."""

    def _row_terms(self, windows: Tensor) -> Tensor:
        """Return what each sensor adds to the score of a window's row, [batch, n_sensors].

        The row is the window's last one; if the network forecasts, the first of the horizon, whose rows after the
        recording's end are NaN.
        """
        raise NotImplementedError

    def _losses(self, windows: Tensor) -> Sequence[Tensor]:
        """Return the loss of each of `_optimisers`; an override uses `_loss` for held-out windows only."""
        return [self._loss(windows)]

    def _optimisers(self) -> Sequence[Optimizer]:
        """Return the optimisers, one for each of `_losses`."""
        return [self._adam(self.network_.parameters())]

    def _adam(self, parameters: ParamsT) -> Optimizer:
        """Return Adam, in one kernel for all weights: a dozen per weight would take most of a small network's step."""
        return torch.optim.Adam(parameters, lr=self.learning_rate, fused=True)

    def declared_traits(self) -> Traits:
        """Return the traits: a score depends on the window and, if the network forecasts, on all of the horizon."""
        memory = self._window if self.horizon else self._window - 1
        given = [getattr(self, name) or 0 for name in self.paper]
        narrower = self.size == "default" and any(map(operator.lt, given, self.paper.values()))
        differs = ("narrower than published", *self.traits.differs) if narrower else self.traits.differs
        return replace(self.traits, memory=memory, look_ahead=max(0, self.horizon - 1), differs=differs)

    def _score(self, recording: Recording) -> FloatArray:
        return np.asarray(self._contributions(recording).sum(axis=1))

    def _contributions(self, recording: Recording) -> FloatArray:
        return self._by_row(recording, self._row_terms)

    def _given_or(self, parameter: str, default: float) -> int:
        """Return a parameter's value; if None, the published one at size "paper", or else ``default`` rounded up."""
        given: int | None = getattr(self, parameter)
        if given is None and self.size == "paper":
            given = self.paper.get(parameter)
        return math.ceil(default) if given is None else given

    @property
    def _window(self) -> int:
        """Rows that the network sees: ``window``, unless a subclass derives it from other parameters."""
        return self.window

    @property
    def _epoch(self) -> int:
        """The current epoch of training, from 1 on."""
        return len(self.losses_) + 1

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

    def expected_check_failures(self) -> Mapping[str, str]:  # noqa: D102
        learned = self._needs_two_sensors_for
        return {"single-sensor": f"it learns a {learned} over at least 2 sensors"} if learned else {}

    def _check(self, sensors: tuple[str, ...]) -> None:
        if self._needs_two_sensors_for and len(sensors) < 2:
            raise UsageError(
                f"{type(self).__name__}: expected at least 2 sensors, whose {self._needs_two_sensors_for} it learns, "
                f"found {len(sensors)}"
            )
        self._require(
            isinstance(self.device, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device) is not None,
            "device",
            "'auto', 'cpu', 'cuda' or 'cuda:NUMBER'",
        )

    def _check_machine(self) -> None:
        find_device(self.device)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        """Set ``scaler_``, train ``network_`` and leave it ready to score; a DataError without a full window."""
        length = self._window + self.horizon
        longest = max(recording.n_rows for recording in recordings)
        if longest < length:
            raise DataError(
                f"{type(self).__name__}: expected a training recording of at least {length} rows (window + horizon), "
                f"the longest has {longest}; train on more rows or make window or horizon smaller"
            )
        self.device_ = find_device(self.device)
        self.losses_: list[tuple[float, float]] = []
        self.facts_: dict[str, Fact] = {}
        self.scaler_: Scaler = self._scaling.of(recordings)
        with self._own_randomness():
            # The initial weights are drawn on the CPU, so that they are the same on every device.
            self.network_ = self._build_network(recordings).to(self.device_)
            self._train(self._training_windows(recordings))
        self.network_.eval()

    def _train(self, windows: Windows) -> None:
        """Train ``network_`` on these windows."""
        self._train_part(windows, self._plan)

    def _train_part(
        self,
        windows: Windows,
        plan: TrainingPlan,
        *,
        loss: Loss | None = None,
        optimisers: Sequence[Optimizer] | None = None,
        before_step: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Train by this plan (`Training`), and add losses and facts to those of earlier parts.

        ``loss`` replaces both `_losses`, which are minimised, and `_loss`, which is watched.
        """
        watched: Loss = self._loss if loss is None else loss
        losses: Losses = self._losses if loss is None else lambda batch: [watched(batch)]
        chosen = self._optimisers() if optimisers is None else optimisers
        name, earlier = type(self).__name__, self.losses_
        training = Training(name, self.network_, watched, losses, chosen, windows, plan, before_step)
        # Mean training and held-out loss after each epoch of this part; `_epoch` counts them.
        self.losses_ = training.losses
        self.facts_ = joined_facts(self.facts_, training.run())
        self.losses_ = [*earlier, *training.losses]

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
        return Windows(rows, self._window + self.horizon, self.stride)

    @property
    def _plan(self) -> TrainingPlan:
        return TrainingPlan(**{field.name: getattr(self, field.name) for field in fields(TrainingPlan)})

    def _training_facts(self) -> Mapping[str, Fact]:
        return self.facts_

    def _statistics_stride(self, recordings: Sequence[Recording], stride: int) -> int:
        """Return the stride, at least ``stride``, of the windows from which a fit takes statistics after training."""
        length = self._window + self.horizon
        return stride * self._plan.gap(
            sum(len(range(0, recording.n_rows - length + 1, stride)) for recording in recordings)
        )

    def _held_out_loss(self, recordings: tuple[Recording, ...], first: int) -> float:
        """Return the mean loss of the windows whose forecast starts at ``first`` or later, whatever their length."""
        parts = [recording.rows(max(0, first - self._window), recording.n_rows) for recording in recordings]
        windows = self._training_windows(parts)
        if len(windows) == 0:
            raise DataError(
                f"{type(self).__name__}: expected held-out recordings of at least {self._window + self.horizon} rows "
                f"(window + horizon), the longest part has {max(part.n_rows for part in parts)}"
            )
        return mean_loss(self.network_, self._loss, windows, torch.arange(len(windows)))

    def _by_row(self, recording: Recording, terms: Callable[[Tensor], Tensor]) -> FloatArray:
        """Return ``terms`` of every row's window, [n_rows, ...]; first windows begin with copies of the first row."""
        before = self._window if self.horizon else self._window - 1
        length, missing = self._window + self.horizon, max(0, self.horizon - 1)
        batches = self._scored_windows(recording, length, before=before, missing=missing)
        return np.concatenate([terms(windows).double().cpu().numpy() for _, windows in batches])

    def _scored_windows(
        self, recording: Recording, length: int, *, before: int, missing: int = 0
    ) -> Iterator[tuple[IntArray, Tensor]]:
        """Yield (start indices, windows) batches that together cover every row, without gradients.

        ``before`` copies of the first row precede the recording, so that indices begin with ``-before``, and
        ``missing`` rows of NaN follow it.
        """
        head = self._rows(recording.rows(0, min(recording.n_rows, length)), missing)
        padded = torch.cat([head[:1].expand(before, -1), head[: length - 1]])
        # Padded windows have separate batches, so that the other scores are bit for bit those without padding.
        yield from self._batches(Windows([padded], length), first=-before)
        yield from self._full_windows(recording, length, missing)

    def _full_windows(
        self, recording: Recording, length: int, missing: int = 0, stride: int = 1
    ) -> Iterator[tuple[IntArray, Tensor]]:
        """Yield, as `_scored_windows` does, all windows without padding, or every ``stride``-th."""
        return self._batches(Windows([self._rows(recording, missing)], length, stride), stride=stride)

    def _batches(self, windows: Windows, *, first: int = 0, stride: int = 1) -> Iterator[tuple[IntArray, Tensor]]:
        with torch.no_grad():
            for batch in torch.split(torch.arange(len(windows)), WINDOWS_AT_ONCE):
                if len(batch):
                    yield first + stride * batch.numpy(), windows[batch]

    def _rows(self, recording: Recording, missing: int = 0) -> Tensor:
        """Return a recording's scaled rows, and ``missing`` rows of NaN after them."""
        rows = torch.full((recording.n_rows + missing, recording.n_sensors), torch.nan)
        with np.errstate(over="ignore"):
            scaled = self.scaler_.scaled(recording.values)
        rows[: recording.n_rows] = torch.from_numpy(scaled.clip(-_LARGEST_SCALED, _LARGEST_SCALED))
        return rows.to(self.device_)
