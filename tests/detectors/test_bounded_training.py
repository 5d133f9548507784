"""Trainings bounded: every k-th window, so many steps at most, so many at least; and whether a loss has levelled."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.detectors.test_deep import Level, noise
from tsadbench import Recording, UsageError
from tsadbench.base import Detector, FloatArray
from tsadbench.registry import entries, load_detector
from tsadbench.utils.progress import listening
from tsadbench_detectors.deep.network_detector import NetworkDetector
from tsadbench_detectors.deep.training import has_levelled

SHIPPED = [entry.name for entry in entries("detectors") if entry.package == "tsadbench"]
NETWORKS = [
    name
    for name in SHIPPED
    if issubclass(load_detector(name), NetworkDetector) and not load_detector(name).traits.floor  # it is not trained
]


class Counting(NetworkDetector):
    """Counts the windows it is shown, and keeps the row with which each starts."""

    def __init__(
        self,
        *,
        window: int = 3,
        stride: int = 1,
        epochs: int = 3,
        min_steps: int = 1,
        max_steps: int | None = None,
        batch_size: int = 10,
        learning_rate: float = 1e-3,
        held_out: float = 0.0,
        patience: int = 1,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.window = window
        self.stride = stride
        self.epochs = epochs
        self.min_steps = min_steps
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.held_out = held_out
        self.patience = patience
        self.seed = seed
        self.device = device

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        self.batches_: list[list[int]] = []
        self.watched_: list[int] = []
        return nn.Linear(1, 1)

    def _loss(self, windows: Tensor) -> Tensor:
        starts = windows[:, 0, 0] * float(self.scaler_.scale[0]) + float(self.scaler_.mean[0])  # type: ignore[attr-defined]
        numbers = [round(start) for start in starts.tolist()]
        if not self.network_.training:
            self.watched_.extend(numbers)
            return torch.tensor(float(-len(self.losses_)))
        self.batches_.append(numbers)
        return 0.0 * self.network_.get_parameter("weight").sum() + float(numbers[0])

    def _score(self, recording: Recording) -> FloatArray:
        return np.zeros(recording.n_rows)


def ramp(n_rows: int) -> FloatArray:
    return np.arange(n_rows, dtype=np.float64)[:, None]


def test_without_a_bound_all_epochs_are_trained() -> None:
    detector = Counting().fit(ramp(27))
    assert [len(batch) for batch in detector.batches_] == 3 * [10, 10, 5]
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


def test_a_bound_ends_training_within_an_epoch() -> None:
    unbounded, detector = Counting().fit(ramp(27)), Counting(max_steps=5).fit(ramp(27))
    assert detector.batches_ == unbounded.batches_[:5]
    facts = detector.training_facts()
    assert (facts["steps"], facts["epochs"], facts["share_seen"]) == (5, 2, 1.0)
    # The loss of a batch is its first window's number: the last epoch's mean is that of the windows trained on in it.
    first, second = detector.batches_[3:]
    assert len(detector.losses_) == 2
    assert detector.losses_[1][0] == (first[0] * 10 + second[0] * 10) / 20


@pytest.mark.parametrize("max_steps", [3, 6])
def test_a_bound_at_the_end_of_an_epoch_starts_no_other(max_steps: int) -> None:
    detector = Counting(max_steps=max_steps).fit(ramp(27))
    assert len(detector.losses_) == max_steps / 3
    assert len(detector.batches_) == max_steps


@pytest.mark.parametrize(("min_steps", "epochs"), [(1, 3), (9, 3), (10, 4), (13, 5), (15, 5), (16, 6)])
def test_whole_epochs_follow_until_the_fewest_steps_are_taken(min_steps: int, epochs: int) -> None:
    unbounded = Counting(epochs=epochs).fit(ramp(27))
    detector = Counting(min_steps=min_steps).fit(ramp(27))
    assert detector.batches_ == unbounded.batches_
    assert detector.training_facts()["steps"] == 3 * epochs
    assert len(detector.losses_) == epochs


def test_the_upper_bound_on_steps_wins_over_the_lower_one() -> None:
    assert Counting(min_steps=100, max_steps=7).fit(ramp(27)).training_facts()["steps"] == 7


class Rises(Counting):
    """Its held-out loss is smallest after the first epoch."""

    def _loss(self, windows: Tensor) -> Tensor:
        return super()._loss(windows) if self.network_.training else -super()._loss(windows)


def test_early_stopping_comes_first_if_it_comes_first() -> None:
    detector = Rises(held_out=0.2, epochs=50, max_steps=100).fit(ramp(60))
    assert len(detector.losses_) == 2
    assert detector.training_facts()["steps"] == 10


@pytest.mark.parametrize(("min_steps", "epochs"), [(1, 4), (20, 4), (21, 5), (50, 10), (300, 60)])
def test_early_stopping_waits_for_the_fewest_steps(min_steps: int, epochs: int) -> None:
    detector = Rises(held_out=0.2, patience=3, epochs=50, min_steps=min_steps).fit(ramp(60))  # 5 steps an epoch
    assert len(detector.losses_) == epochs
    assert detector.training_facts()["levelled"] is True


def test_early_stopping_does_not_act_at_the_first_epoch_after_the_fewest_steps_if_the_loss_has_just_fallen() -> None:
    class Falls(Counting):
        def _loss(self, windows: Tensor) -> Tensor:
            loss = super()._loss(windows)
            return loss if self.network_.training or len(self.losses_) == 3 else -loss

    # The held-out loss rises, falls in the fourth epoch (15 to 20 steps), and rises again.
    assert len(Falls(held_out=0.2, patience=2, epochs=50, min_steps=20).fit(ramp(60)).losses_) == 6


def step_losses(*tenths: float, n_steps: int = 100) -> FloatArray:
    return np.repeat(np.array(tenths, dtype=np.float64), n_steps // 10)


FALL = (10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.5, 2.2)


@pytest.mark.parametrize(
    ("losses", "levelled"),
    [
        (step_losses(*FALL, 2.0, 2.0), True),
        (step_losses(*FALL, 2.0, 1.97), True),
        (step_losses(*FALL, 2.0, 2.3), True),
        (step_losses(*FALL, 2.0, 1.9), False),  # 5 % of itself, 1.2 % of the fall since the first tenth
        (98.0 + step_losses(*FALL, 2.0, 1.8), False),  # 0.2 % of itself, 2.4 % of that fall
        (98.0 + step_losses(*FALL, 2.0, 1.9), True),
        (-500.0 + step_losses(*FALL, 2.0, 1.9), True),  # a log-likelihood
        (-500.0 + step_losses(*FALL, 2.0, 1.5), False),
        (step_losses(*range(10, 20)), True),  # rises
        (np.exp(-np.arange(300) / 100), False),
        (np.exp(-np.arange(1000) / 10) + 1.0, True),
        (np.ones(19), False),
        (np.ones(20), True),
        (np.ones(1), False),
        (step_losses(*FALL, 2.0, 1.0, n_steps=20), False),
    ],
)
def test_a_loss_has_levelled_if_its_last_tenth_of_steps_hardly_lowers_it(losses: FloatArray, levelled: bool) -> None:
    assert has_levelled(losses) is levelled


def test_the_held_out_loss_of_a_part_of_an_epoch_counts() -> None:
    detector = Counting(held_out=0.2, max_steps=1).fit(ramp(60))
    assert detector.losses_[0][1] == 0.0
    assert sorted(detector.watched_) == list(range(46, 58))


def seen_and_possible(detector: Counting, recordings: list[FloatArray]) -> tuple[int, int]:
    """Count, from what the network was shown, the windows seen and those that a stride of 1 would give."""
    seen = {number for batch in detector.batches_ for number in batch}
    everything = Counting(epochs=1, held_out=detector.held_out).fit(recordings)
    return len(seen), len({number for batch in everything.batches_ for number in batch})


@pytest.mark.parametrize("stride", [1, 2, 7, 40])
@pytest.mark.parametrize("max_steps", [None, 1, 2])
def test_the_share_of_windows_seen(stride: int, max_steps: int | None) -> None:
    recordings = [ramp(60), 100.0 + ramp(33), 200.0 + ramp(2), 300.0 + ramp(3)]
    detector = Counting(stride=stride, max_steps=max_steps).fit(recordings)
    n_seen, n_possible = seen_and_possible(detector, recordings)
    assert n_possible == 58 + 31 + 1
    assert detector.training_facts()["n_windows"] == n_possible
    assert detector.training_facts()["share_seen"] == n_seen / n_possible


def test_windows_held_out_are_not_among_those_that_could_be_seen() -> None:
    detector = Counting(held_out=0.2).fit(ramp(60))
    n_seen, n_possible = seen_and_possible(detector, [ramp(60)])
    assert n_seen == n_possible == detector.training_facts()["n_windows"] == 44  # 58 less 12 and the 2 before them
    assert detector.training_facts()["share_seen"] == 1.0
    assert detector.training_facts()["held_out_loss"] == detector.losses_[-1][1]
    strided = Counting(held_out=0.2, stride=2).fit(ramp(60)).training_facts()
    assert strided["share_seen"] == 0.5


def test_progress_says_what_share_was_seen_and_counts_steps_if_they_are_bounded() -> None:
    def reports(rows: int, **bounds: int) -> list[tuple[int, int, str]]:
        heard: list[tuple[int, int, str]] = []
        with listening(lambda done, total, note: heard.append((done, total, note))):
            Counting(**bounds).fit(ramp(rows))  # type: ignore[arg-type]
        return heard

    falling = "training ended while the loss was still falling"
    assert all("saw" not in note for _, _, note in reports(60))
    assert reports(60, stride=4)[-1] == (3, 3, f"saw 25 % of the training windows; {falling}")
    assert reports(60, max_steps=2)[-1] == (2, 2, f"saw 34 % of the training windows; {falling}")
    assert reports(27, max_steps=100)[-1][:2] == (9, 9)
    within = reports(2_502, epochs=2)
    assert [done for done, _, _ in within] == [0, 0, 1, 1, 1, 2]
    assert within[1][2].startswith("step 200 of 250 in epoch 1, loss ")
    assert [done for done, _, _ in reports(2_502, max_steps=230)] == [100, 200, 230, 230]


def test_facts_survive_a_restored_model() -> None:
    detector = fitted("vanilla-ae", [noise(50, 3)])
    again = type(detector)(**detector.get_params()).restore(detector.learned())
    again.sensors_ = detector.sensors_
    assert again.training_facts() == detector.training_facts() != {}


def test_held_out_windows_are_thinned_out_evenly_if_steps_are_bounded() -> None:
    n_rows = 60_002  # 60,000 windows, 24,000 of them held out
    assert len(Counting(held_out=0.4, epochs=1, batch_size=6_000).fit(ramp(n_rows)).watched_) == 24_000
    detector = Counting(held_out=0.4, max_steps=1).fit(ramp(n_rows))
    assert detector.watched_ == list(range(36_000, 60_000, 3))
    assert len(Counting(held_out=0.4, max_steps=2, batch_size=6_000).fit(ramp(n_rows)).watched_) == 12_000


def bounded_level(stride: int = 1, max_steps: int | None = None, horizon: int = 3, batch_size: int = 4) -> Level:
    # Attributes of the class: those of the object, which are no parameters, would be forgotten by the fit.
    cls = type("BoundedLevel", (Level,), {"stride": stride, "max_steps": max_steps})
    return cls(horizon=horizon, batch_size=batch_size)


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("stride", [1, 2, 4, 50])
def test_training_errors_of_every_kth_window(stride: int, horizon: int) -> None:
    recordings = [noise(30), noise(11, seed=1), noise(2, seed=2)]
    detector = bounded_level(stride, horizon=horizon).fit(recordings)
    expected = []
    for rows in recordings:
        all_errors = detector._errors(Recording("a", rows, ("x0", "x1")))
        starts = range(0, len(rows) - 2 - horizon + 1, stride)
        expected += [all_errors[start + 2] for start in starts]
    np.testing.assert_allclose(detector.training_errors_, expected, rtol=1e-6)


def test_training_errors_are_bounded_with_the_steps() -> None:
    rows = noise(30_004)  # 30,000 windows
    assert len(bounded_level(max_steps=1, batch_size=4).fit(rows).training_errors_) == 10_000
    assert len(bounded_level(max_steps=2, batch_size=7_500).fit(rows).training_errors_) == 15_000
    assert len(bounded_level(max_steps=1, stride=2).fit(rows).training_errors_) == 7_500
    every_third = bounded_level(max_steps=1).fit(rows).training_errors_
    all_errors = bounded_level(max_steps=1).fit(rows)._errors(Recording("a", rows, ("x0", "x1")))
    np.testing.assert_allclose(every_third, all_errors[2:30_002:3], rtol=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_takes_the_bounds(name: str) -> None:
    parameters = inspect.signature(load_detector(name)).parameters
    assert parameters["min_steps"].default == 500
    assert parameters["max_steps"].default is None
    assert parameters["stride"].default >= 1


def fitted(name: str, recordings: Sequence[FloatArray], **bounds: int) -> Detector:
    cls = load_detector(name)
    return cls(**{**cls.test_params(), "epochs": 2, "batch_size": 16, **bounds}).fit(recordings)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_bound_that_is_not_reached_changes_no_bit(name: str) -> None:
    recordings = [noise(70, 3), noise(40, 3, seed=1)]
    unbounded, bounded = (fitted(name, recordings, **bounds) for bounds in ({}, {"max_steps": 10**6}))
    for before, after in zip(unbounded.training_scores(recordings), bounded.training_scores(recordings), strict=True):
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("bounds", [{"max_steps": 1}, {"stride": 7}, {"stride": 3, "max_steps": 2}])
def test_a_bounded_network_scores_every_row_that_an_unbounded_one_scores(name: str, bounds: dict[str, int]) -> None:
    recordings = [noise(120, 3), noise(40, 3, seed=1)]
    unbounded, bounded = fitted(name, recordings), fitted(name, recordings, **bounds)
    assert isinstance(bounded, NetworkDetector)
    facts = bounded.training_facts()
    assert facts["steps"] <= bounds.get("max_steps", 10**6)  # type: ignore[operator]
    assert 0.0 < facts["share_seen"] < 1.0  # type: ignore[operator]
    rows = noise(60, 3, seed=2)
    scores = bounded.score(rows)
    np.testing.assert_array_equal(np.isfinite(scores), np.isfinite(unbounded.score(rows)))
    assert not np.array_equal(scores, unbounded.score(rows), equal_nan=True)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    ("parameter", "value"), [("min_steps", -1), ("min_steps", 0), ("max_steps", 0), ("max_steps", 2.5), ("stride", 0)]
)
def test_wrong_bounds_are_named(name: str, parameter: str, value: float) -> None:
    cls = load_detector(name)
    with pytest.raises(UsageError, match=f"{parameter} must be an integer of at least 1, found {value}"):
        cls(**{**cls.test_params(), parameter: value}).check(("a", "b"))
