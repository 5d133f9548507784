"""The training of a network: its length, the order of the windows, and the facts that are known afterwards."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tsadbench import UsageError, progress
from tsadbench.base import LEVELLED, SHARE_SEEN, STILL_FALLING, Fact, FloatArray, share_note
from tsadbench_detectors.deep.windows import WINDOWS_AT_ONCE, Windows

Loss: TypeAlias = Callable[[Tensor], Tensor]
Losses: TypeAlias = Callable[[Tensor], Sequence[Tensor]]

_STEPS_A_REPORT = 100  # between two reports within an epoch
_ENOUGH_WINDOWS = 10_000  # evenly spaced, for quantiles and mean losses
_FEWEST_STEPS = 20  # whose tenths can be compared
_LEVEL = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """How to train: the parameters of `NetworkDetector` with these names."""

    epochs: int
    min_steps: int
    max_steps: int | None
    batch_size: int
    learning_rate: float
    held_out: float
    patience: int
    seed: int

    def gap(self, n_windows: int) -> int:
        """Return k: with ``max_steps``, a fit computes held-out losses and statistics from every k-th window only."""
        if self.max_steps is None:
            return 1
        return math.ceil(n_windows / max(_ENOUGH_WINDOWS, self.max_steps * self.batch_size)) or 1

    def rest(self, n_taken: int) -> TrainingPlan:
        """Return the plan that is left after ``n_taken`` steps."""
        most = None if self.max_steps is None else self.max_steps - n_taken
        return replace(self, min_steps=max(1, self.min_steps - n_taken), max_steps=most)

    def steps_an_epoch(self, n_windows: int) -> int:
        """Return the number of steps of an epoch over ``n_windows`` windows."""
        return math.ceil(n_windows / self.batch_size)


class Training:
    """Trains a network on shuffled windows, to the last epoch or step or until the held-out loss stops falling.

    Each batch is one step: all losses come from one forward pass, and each is differentiated with respect to its own
    optimiser's parameters alone, at the weights before the batch. Then the optimisers take their steps, in order.

    Parameters
    ----------
    detector, network
        Name of the detector, for messages, and the network to train.
    loss
        Loss of held-out windows [batch, length, n_sensors] in scoring mode: it decides when training ends and which
        network is kept.
    losses, optimisers
        One loss to minimise for each optimiser; the first is reported. Optimisers may share parameters.
    windows, plan
        What to train on, and how.
    before_step
        Called before each step with the number of steps taken.

    Attributes
    ----------
    losses
        Mean training loss and held-out loss (NaN without held-out windows) after each epoch.
    """

    def __init__(
        self,
        detector: str,
        network: nn.Module,
        loss: Loss,
        losses: Losses,
        optimisers: Sequence[Optimizer],
        windows: Windows,
        plan: TrainingPlan,
        before_step: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._detector, self._network, self._windows, self._plan = detector, network, windows, plan
        self._loss, self._losses, self._optimisers, self._before_step = loss, losses, optimisers, before_step
        self._training, held_out = windows.hold_out(plan.held_out)
        self._held_out = held_out[:: plan.gap(len(held_out))]
        steps_an_epoch = plan.steps_an_epoch(len(self._training))
        self._n_epochs = max(plan.epochs, math.ceil(plan.min_steps / steps_an_epoch))
        self._most_steps = min(self._n_epochs * steps_an_epoch, plan.max_steps or math.inf)
        self._loss_by_step: list[float] = []
        self._n_seen = 0
        self.losses: list[tuple[float, float]] = []

    def run(self) -> dict[str, Fact]:
        """Train, and return the `training_facts`; a UsageError if the loss is not finite.

        ``n_windows`` counts the windows at a stride of 1, without those held out; ``share_seen`` is the share of them
        that was trained on at least once.
        """
        order = torch.Generator().manual_seed(self._plan.seed)
        best, best_weights = math.inf, None
        since_best, ended_early = 0, False
        for epoch in range(1, self._n_epochs + 1):
            loss = self._run_epoch(epoch, self._training[torch.randperm(len(self._training), generator=order)])
            watched = mean_loss(self._network, self._loss, self._windows, self._held_out)
            self.losses.append((loss, watched))
            self._report(epoch, f"loss {loss:.4f}" + ("" if math.isnan(watched) else f", held out {watched:.4f}"))
            if len(self._held_out) > 0:
                since_best = 0 if watched < best else since_best + 1
                if watched < best:
                    best, best_weights = watched, copy.deepcopy(self._network.state_dict())
            ended_early = since_best >= self._plan.patience and self._n_steps >= self._plan.min_steps
            if ended_early or self._n_steps == self._plan.max_steps:
                break
        if best_weights is not None:
            self._network.load_state_dict(best_weights)
        facts = self._facts(ended_early)
        if notes := [note for note in (share_note([facts]), "" if facts[LEVELLED] else STILL_FALLING) if note]:
            self._report(len(self.losses), "; ".join(notes))
        return facts

    @property
    def _n_steps(self) -> int:
        return len(self._loss_by_step)

    def _facts(self, ended_early: bool) -> dict[str, Fact]:
        loss, held_out_loss = self.losses[-1]
        n_windows = self._windows.n_without_stride(self._training)
        return {
            "steps": self._n_steps,
            "epochs": len(self.losses),
            "n_windows": n_windows,
            SHARE_SEEN: self._n_seen / n_windows,
            "loss": loss,
            "held_out_loss": held_out_loss if math.isfinite(held_out_loss) else None,
            LEVELLED: ended_early or has_levelled(np.array(self._loss_by_step)),
            "on_gpu": self._windows.device.type == "cuda",
        }

    def _run_epoch(self, epoch: int, shuffled: Tensor) -> float:
        """Take a step for each batch of the windows with these numbers; return their mean loss in training."""
        batches = torch.split(shuffled, self._plan.batch_size)
        if self._plan.max_steps is not None:
            batches = batches[: self._plan.max_steps - self._n_steps]
        self._network.train()
        loss, n_seen = 0.0, 0
        for step, batch in enumerate(batches, start=1):
            self._before_step(self._n_steps)
            self._loss_by_step.append(self._step(self._windows[batch]))
            loss += self._loss_by_step[-1] * len(batch)
            n_seen += len(batch)
            if step % _STEPS_A_REPORT == 0:
                self._require_finite(loss, epoch)
                self._report(epoch - 1, f"step {step} of {len(batches)} in epoch {epoch}, loss {loss / n_seen:.4f}")
        self._n_seen = max(self._n_seen, n_seen)
        self._require_finite(loss, epoch)
        return loss / n_seen

    def _step(self, windows: Tensor) -> float:
        losses = self._losses(windows)
        trained = [
            [weight for group in optimiser.param_groups for weight in group["params"] if weight.requires_grad]
            for optimiser in self._optimisers
        ]
        gradients = []
        for number, (loss, optimiser, weights) in enumerate(zip(losses, self._optimisers, trained, strict=True), 1):
            # The forward pass is needed until the last loss is differentiated. `backward` gives gradients the layout
            # of their weights in memory, which fused Adam relies on; `torch.autograd.grad` does not.
            loss.backward(inputs=weights, retain_graph=number < len(losses))  # type: ignore[no-untyped-call]
            gradients.append([weight.grad for weight in weights])
            optimiser.zero_grad()
        for optimiser, weights, of_loss in zip(self._optimisers, trained, gradients, strict=True):
            for weight, gradient in zip(weights, of_loss, strict=True):
                weight.grad = gradient
            optimiser.step()
            optimiser.zero_grad()
        return losses[0].item()

    def _require_finite(self, loss: float, epoch: int) -> None:
        if not math.isfinite(loss):
            raise UsageError(
                f"{self._detector}: the loss became {loss} in epoch {epoch} of {self._n_epochs}; "
                f"make learning_rate smaller, it is {self._plan.learning_rate}"
            )

    def _report(self, epochs: int, note: str) -> None:
        """Report progress in epochs; in steps if those are bounded."""
        if self._plan.max_steps is None:
            progress(epochs, self._n_epochs, note)
        else:
            progress(self._n_steps, int(self._most_steps), note)


def joined_facts(before: Mapping[str, Fact], after: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return the facts of two successive trainings as those of one."""
    sums = {name: int(before.get(name) or 0) + int(after[name] or 0) for name in ("steps", "epochs")}
    seen = max(float(facts.get(SHARE_SEEN) or 0.0) for facts in (before, after))
    return {**before, **after, **sums, SHARE_SEEN: seen}


def mean_loss(network: nn.Module, loss: Loss, windows: Windows, numbers: Tensor) -> float:
    """Return the mean loss of the windows with these indices, in evaluation mode; NaN without windows."""
    if len(numbers) == 0:
        return math.nan
    network.eval()
    with torch.inference_mode():
        batches = torch.split(numbers, WINDOWS_AT_ONCE)
        return sum(loss(windows[batch]).item() * len(batch) for batch in batches) / len(numbers)


def has_levelled(losses: FloatArray) -> bool:
    """Whether the losses of a training's steps have levelled; False for fewer than 20 steps.

    From the ninth tenth of the steps to the last, the mean loss has fallen by at most 2 % of its fall since the first
    tenth (noise may keep a loss high), and by at most 2 % of itself (a loss may have begun very high).
    """
    if len(losses) < _FEWEST_STEPS:
        return False
    tenth = len(losses) // 10
    first, before, last = (
        float(part.mean()) for part in (losses[:tenth], losses[-2 * tenth : -tenth], losses[-tenth:])
    )
    return before - last <= _LEVEL * max(0.0, min(first - last, abs(last)))
