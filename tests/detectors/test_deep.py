"""What detectors that train a network share: training and its bounds, held-out windows, errors, the extra."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.helpers.planted import noise
from tsadbench import DataError, MissingExtraError, Recording, UsageError, detector
from tsadbench.base import FloatArray, extra
from tsadbench_detectors.deep.forecaster import Forecaster
from tsadbench_detectors.deep.training import has_levelled
from tsadbench_detectors.deep.windows import Windows


class LevelNetwork(nn.Module):
    """Forecasts the window's last row plus a trained level for each sensor."""

    def __init__(self, n_sensors: int, horizon: int) -> None:
        super().__init__()
        self.level = nn.Parameter(torch.rand(n_sensors) / 100)
        self.horizon = horizon

    def forward(self, past: Tensor) -> Tensor:
        return (past[:, -1:] + self.level).expand(-1, self.horizon, -1)


@detector
class Level(Forecaster):
    """A minimal forecaster that records which windows of a `ramp` it sees, in training and held out.

    With a ``script``, the held-out losses are the script's, the training loss is the number of the batch's first
    window, and the weight counts the epochs.
    """

    script: tuple[float, ...] = ()
    window: int = 2
    horizon: int = 3
    epochs: int = 1
    min_steps: int = 1
    batch_size: int = 4
    held_out: float = 0.0
    patience: int = 1

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        self.batches_: list[Tensor] = []
        self.watched_: list[int] = []
        return LevelNetwork(recordings[0].n_sensors, self.horizon)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        super()._fit(recordings)
        self.training_errors_ = self._training_errors(recordings)

    def _loss(self, windows: Tensor) -> Tensor:
        numbers = self._numbers(windows)
        level = self.network_.get_parameter("level")
        if not self.network_.training:
            self.watched_ += numbers
            return torch.tensor(self.script[len(self.losses_)]) if self.script else super()._loss(windows)
        self.batches_.append(windows.clone())
        if not self.script:
            return super()._loss(windows)
        with torch.no_grad():
            level.fill_(float(len(self.losses_)))  # the epochs before this one
        return 0.0 * level.sum() + float(numbers[0])

    def _numbers(self, windows: Tensor) -> list[int]:
        return [round(one) for one in (windows[:, 0, 0] * self.scaler_.scale[0] + self.scaler_.mean[0]).tolist()]

    def _score(self, recording: Recording) -> FloatArray:
        return np.asarray(self._errors(recording).sum(axis=1))

    def seen(self) -> list[list[int]]:
        """Return the numbers of each training step's windows."""
        return [self._numbers(windows) for windows in self.batches_]


def scripted(*script: float, **parameters: object) -> Level:
    """Return a detector with windows of 3 rows: a ramp of 27 rows gives steps of 10, 10 and 5 windows an epoch."""
    given = {"window": 2, "horizon": 1, "epochs": 3, "batch_size": 10, "script": script or (0.0,) * 99}
    return Level(**{**given, **parameters})  # type: ignore[arg-type]


def ramp(n_rows: int) -> FloatArray:
    return np.arange(n_rows, dtype=np.float64)[:, None]


def test_max_steps_also_bounds_training_errors_and_held_out_windows() -> None:
    rows = noise(30_004)  # 30,000 windows
    every_third = Level(max_steps=1).fit(rows)
    errors = every_third._errors(Recording("a", rows, ("x0", "x1")))
    np.testing.assert_allclose(every_third.training_errors_, errors[2:30_002:3], rtol=1e-6)
    assert len(Level(max_steps=2, batch_size=7_500).fit(rows).training_errors_) == 15_000
    # 60,000 windows, 24,000 of them held out.
    assert scripted(held_out=0.4, max_steps=1).fit(ramp(60_002)).watched_ == list(range(36_000, 60_000, 3))


def test_every_epoch_sees_every_training_window_once_in_a_new_order() -> None:
    seen = Level(epochs=2, batch_size=5).fit([noise(9), noise(11, seed=1)]).batches_
    assert [len(windows) for windows in seen] == [5, 5, 2, 5, 5, 2]
    first, second = torch.cat(seen[:3]).flatten(1), torch.cat(seen[3:]).flatten(1)
    assert not torch.equal(first, second)
    assert torch.equal(first[first[:, 0].argsort()], second[second[:, 0].argsort()])
    assert len(first.unique(dim=0)) == (9 - 5 + 1) + (11 - 5 + 1)


def test_the_facts_of_a_training_without_a_bound() -> None:
    detector = scripted().fit(ramp(27))
    assert [len(windows) for windows in detector.batches_] == 3 * [10, 10, 5]
    assert detector.training_facts() == {
        "steps": 9,
        "epochs": 3,
        "n_windows": 25,
        "share_seen": 1.0,
        "loss": detector.losses_[2][0],
        "held_out_loss": None,
        "levelled": False,
        "on_gpu": False,
    }


def test_max_steps_ends_training_within_an_epoch_and_overrides_min_steps() -> None:
    unbounded, detector = scripted().fit(ramp(27)), scripted(max_steps=5, min_steps=100).fit(ramp(27))
    assert detector.seen() == unbounded.seen()[:5]
    facts = detector.training_facts()
    assert (facts["steps"], facts["epochs"], facts["share_seen"]) == (5, 2, 1.0)
    # The loss of a batch is its first window's number; the last epoch's mean is over the windows trained on.
    first, second = detector.seen()[3:]
    assert detector.losses_[1][0] == (first[0] * 10 + second[0] * 10) / 20
    assert len(scripted(max_steps=3).fit(ramp(27)).losses_) == 1


@pytest.mark.parametrize(("min_steps", "epochs"), [(9, 3), (10, 4), (16, 6)])
def test_whole_epochs_are_added_until_min_steps_is_reached(min_steps: int, epochs: int) -> None:
    detector = scripted(min_steps=min_steps).fit(ramp(27))
    assert detector.seen() == scripted(epochs=epochs).fit(ramp(27)).seen()
    assert detector.training_facts()["epochs"] == epochs


def test_training_ends_after_its_patience_and_the_best_network_is_kept() -> None:
    script = (3.0, 2.0, 1.0, 4.0, 5.0, 0.5)
    detector = scripted(*script, epochs=6, held_out=0.2, patience=2).fit(ramp(60))
    assert [held_out for _, held_out in detector.losses_] == [3.0, 2.0, 1.0, 4.0, 5.0]
    assert detector.network_.get_parameter("level").item() == 2.0  # the third epoch's
    assert detector.training_facts()["levelled"] is True
    without = scripted(*script, epochs=6).fit(ramp(60))
    assert all(math.isnan(held_out) for _, held_out in without.losses_)
    assert without.network_.get_parameter("level").item() == 5.0  # the last one's


@pytest.mark.parametrize(("min_steps", "epochs"), [(20, 4), (21, 5), (300, 60)])  # 5 steps an epoch
def test_early_stopping_waits_for_min_steps(min_steps: int, epochs: int) -> None:
    detector = scripted(*map(float, range(99)), held_out=0.2, patience=3, epochs=50, min_steps=min_steps)
    assert len(detector.fit(ramp(60)).losses_) == epochs


def test_no_row_of_a_held_out_window_is_trained_on() -> None:
    detector = scripted(held_out=0.2, batch_size=1_000, epochs=1).fit(ramp(50))
    values = (detector.batches_[0].numpy() * ramp(50).std() + ramp(50).mean()).round()
    # 48 windows, the last 10 held out: they begin with row 38.
    np.testing.assert_array_equal(np.unique(values), np.arange(38))
    assert detector.training_facts()["n_windows"] == 36
    assert detector.training_facts()["share_seen"] == 1.0
    short = scripted(window=9, held_out=0.2, epochs=1).fit(ramp(30))  # too short to spare windows
    assert short.training_facts()["n_windows"] == 21


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=5), st.integers(1, 12), st.floats(0.0, 0.49), st.integers(1, 15)
)
def test_windows_stay_within_recordings_and_held_out_ones_share_no_row_with_the_others(
    n_rows: list[int], length: int, share: float, stride: int
) -> None:
    borders = np.cumsum([0, *n_rows])
    recordings = [torch.arange(first, first + n)[:, None] for first, n in zip(borders, n_rows, strict=False)]
    windows = Windows(recordings, length, stride)
    starts = [
        first + one for first, n in zip(borders, n_rows, strict=False) for one in range(0, n - length + 1, stride)
    ]
    assert windows[torch.arange(len(windows))][..., 0].tolist() == [list(range(one, one + length)) for one in starts]
    kept, held_out = windows.hold_out(share)
    numbers = torch.cat([kept, held_out]).tolist()
    assert len(set(numbers)) == len(numbers)
    assert not set(windows[kept].flatten().tolist()) & set(windows[held_out].flatten().tolist())
    assert 2 * len(kept) >= len(windows)
    if share == 0.0:
        assert len(kept) == len(windows)


def test_a_loss_has_levelled_if_its_last_tenth_of_steps_hardly_lowers_it() -> None:
    def levelled(*last: float, plus: float = 0.0) -> bool:
        tenths = np.array([10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.5, 2.2, *last])
        return has_levelled(plus + np.repeat(tenths, 10))

    assert levelled(2.0, 1.97)
    assert levelled(2.0, 2.3)
    assert not levelled(2.0, 1.9)  # 5 % of itself, 1.2 % of the fall since the first tenth
    assert not levelled(2.0, 1.8, plus=98.0)  # 0.2 % of itself, 2.4 % of that fall
    assert levelled(2.0, 1.9, plus=98.0)
    assert levelled(2.0, 1.9, plus=-500.0)  # a log-likelihood
    assert not levelled(2.0, 1.5, plus=-500.0)
    assert [has_levelled(np.ones(n)) for n in (1, 19, 20)] == [False, False, True]


@pytest.mark.parametrize(("stride", "max_steps"), [(1, 2), (7, None), (40, 1)])
def test_the_share_of_windows_seen(stride: int, max_steps: int | None) -> None:
    recordings = [ramp(60), 100.0 + ramp(33), 200.0 + ramp(2), 300.0 + ramp(3)]
    detector = scripted(stride=stride, max_steps=max_steps).fit(recordings)
    n_seen = len({number for batch in detector.seen() for number in batch})
    facts = detector.training_facts()
    assert (facts["n_windows"], facts["share_seen"]) == (58 + 31 + 1, n_seen / 90)


def test_too_short_recordings_and_a_diverging_loss_are_errors() -> None:
    with pytest.raises(DataError, match="window"):
        Level().fit([ramp(4), ramp(3)])
    with pytest.raises(UsageError, match="learning_rate"):  # the loss diverges
        Level(epochs=5, learning_rate=1e30).fit(noise(20))


def test_a_missing_package_names_the_extra_and_a_missing_module_of_our_own_is_a_defect() -> None:
    with pytest.raises(MissingExtraError, match=r"tsadbench\[deep\]"), extra("dprgm", "deep"):
        importlib.import_module("a_package_that_nobody_has")
    with pytest.raises(ModuleNotFoundError, match="tsadbench_detectors"), extra("dprgm", "deep"):
        importlib.import_module("tsadbench_detectors.nothing")
