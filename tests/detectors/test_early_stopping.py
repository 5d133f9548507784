"""Training with windows held out: which, when it ends, and what it leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tsadbench import Recording, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.deep.network_detector import NetworkDetector
from tsadbench_detectors.deep.windows import Windows


class Scripted(NetworkDetector):
    """Its held-out loss follows a script, and its only weight counts the epochs."""

    def __init__(
        self,
        *,
        script: Sequence[float] = (3.0, 2.0, 1.0, 4.0, 5.0, 0.5),
        window: int = 3,
        epochs: int = 6,
        batch_size: int = 1000,
        learning_rate: float = 1e-3,
        held_out: float = 0.2,
        patience: int = 2,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.script = script
        self.window = window
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.held_out = held_out
        self.patience = patience
        self.seed = seed
        self.device = device

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        self.trained_on_: list[Tensor] = []
        return nn.Linear(1, 1)

    def _loss(self, windows: Tensor) -> Tensor:
        weight = self.network_.get_parameter("weight")
        if self.network_.training:
            self.trained_on_.append(windows.clone())
            with torch.no_grad():
                weight.fill_(float(len(self.losses_)))  # the epochs before this one
            return 0.0 * weight.sum()
        return torch.tensor(self.script[len(self.losses_)])

    def _score(self, recording: Recording) -> FloatArray:
        return np.full(recording.n_rows, self.network_.get_parameter("weight").item())


def ramp(n_rows: int) -> FloatArray:
    return np.arange(n_rows, dtype=np.float64)[:, None]


def test_training_ends_after_its_patience_and_the_best_network_is_kept() -> None:
    detector = Scripted().fit(ramp(50))
    assert [held_out for _, held_out in detector.losses_] == [3.0, 2.0, 1.0, 4.0, 5.0]
    assert detector.score(ramp(3))[0] == 2.0  # the third epoch's


def test_a_loss_that_keeps_falling_uses_all_epochs() -> None:
    detector = Scripted(script=[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]).fit(ramp(50))
    assert len(detector.losses_) == 6
    assert detector.score(ramp(3))[0] == 5.0


def test_without_held_out_windows_the_last_network_is_kept() -> None:
    detector = Scripted(held_out=0.0).fit(ramp(50))
    assert all(math.isnan(held_out) for _, held_out in detector.losses_)
    assert detector.score(ramp(3))[0] == 5.0


def test_no_row_of_a_held_out_window_is_trained_on() -> None:
    detector = Scripted(epochs=1).fit(ramp(50))
    (windows,) = detector.trained_on_
    values = np.unique((windows.numpy() * ramp(50).std() + ramp(50).mean()).round())
    # 48 windows, the last 10 held out: they begin with row 38.
    np.testing.assert_array_equal(values, np.arange(38))


def test_a_recording_too_short_to_spare_windows_is_trained_on_whole() -> None:
    detector = Scripted(epochs=1, window=10).fit(ramp(30))
    assert len(detector.trained_on_[0]) == 21
    assert math.isnan(detector.losses_[0][1])


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=5), st.integers(1, 12), st.floats(0.0, 0.49), st.integers(1, 15)
)
def test_windows_held_out_share_no_row_with_those_that_stay(
    n_rows: list[int], length: int, share: float, stride: int
) -> None:
    borders = np.cumsum([0, *n_rows])
    recordings = [torch.arange(first, first + n)[:, None] for first, n in zip(borders, n_rows, strict=False)]
    windows = Windows(recordings, length, stride)
    assert len(windows) == sum(len(range(0, max(0, n - length + 1), stride)) for n in n_rows)
    kept, held_out = windows.hold_out(share)
    numbers = torch.cat([kept, held_out]).tolist()
    assert len(set(numbers)) == len(numbers)
    assert set(numbers) <= set(range(len(windows)))
    assert not set(windows[kept].flatten().tolist()) & set(windows[held_out].flatten().tolist())
    assert 2 * len(kept) >= len(windows)
    if share == 0.0:
        assert len(kept) == len(windows)


def test_the_global_random_generator_is_left_alone_and_not_used() -> None:
    class Draws(Scripted):
        def _loss(self, windows: Tensor) -> Tensor:
            self.drawn_ = torch.rand(1).item()
            return super()._loss(windows)

    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = Draws().fit(ramp(50)).drawn_
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert Draws().fit(ramp(50)).drawn_ == first
    assert Draws(seed=1).fit(ramp(50)).drawn_ != first


@pytest.mark.parametrize(("parameter", "value"), [("held_out", 0.5), ("held_out", -0.1), ("patience", 0)])
def test_wrong_parameters_are_named(parameter: str, value: float) -> None:
    with pytest.raises(UsageError, match=parameter):
        Scripted(**{parameter: value}).fit(ramp(50))  # type: ignore[arg-type]
