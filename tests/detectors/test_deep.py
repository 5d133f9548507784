"""What detectors that train a network share: training, errors, devices, the pip extra."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tsadbench import DataError, MissingExtraError, Recording, UsageError
from tsadbench.base import FloatArray, extra
from tsadbench.utils.progress import listening
from tsadbench_detectors.deep.device import find_device
from tsadbench_detectors.deep.forecaster import Forecaster


class LevelNetwork(nn.Module):
    """Forecasts the window's last row, plus a level a sensor that training finds."""

    def __init__(self, n_sensors: int, horizon: int) -> None:
        super().__init__()
        self.level = nn.Parameter(torch.rand(n_sensors) / 100)
        self.horizon = horizon
        self.seen: list[Tensor] = []

    def forward(self, past: Tensor) -> Tensor:
        if self.training:
            self.seen.append(past.clone())
        return (past[:, -1:] + self.level).expand(-1, self.horizon, -1)


class Level(Forecaster):
    """The smallest forecaster there is."""

    def __init__(
        self,
        *,
        window: int = 2,
        horizon: int = 3,
        epochs: int = 1,
        batch_size: int = 4,
        learning_rate: float = 1e-3,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.window = window
        self.horizon = horizon
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed
        self.device = device

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        return LevelNetwork(recordings[0].n_sensors, self.horizon)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        super()._fit(recordings)
        self.training_errors_ = self._training_errors(recordings)

    def _score(self, recording: Recording) -> FloatArray:
        return np.asarray(self._errors(recording).sum(axis=1))


def padded(rows: FloatArray, n_before: int) -> FloatArray:
    """Rows with so many copies of the first one before them: what a detector is to see of a recording's beginning."""
    return np.concatenate([np.repeat(rows[:1], n_before, axis=0), rows])


def ramp(n_rows: int, slope: float = 1.0) -> FloatArray:
    return slope * np.arange(n_rows, dtype=np.float64)[:, None]


def noise(n_rows: int, n_sensors: int = 2, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(n_rows, n_sensors))


def test_errors_by_hand() -> None:
    detector = Level(learning_rate=1e-30).fit(ramp(9))
    level = detector.network_.get_parameter("level").item()
    deviation = ramp(9).std()
    errors = detector.score(ramp(6, slope=2.0))
    # One row on, a slope of 2 has moved by 2 / deviation, two rows on by twice that, and so on.
    misses = [(steps * 2.0 / deviation - level) ** 2 for steps in (1, 2, 3)]
    # Before the first row it has not moved: to row 0 by no step, to rows 0 to 2 by up to two.
    unmoved, one, two = level**2, *misses[:2]
    first = [np.mean([unmoved, one, two]), np.mean(misses)]
    expected = [*first, np.mean(misses), np.mean(misses), np.mean(misses[:2]), misses[0]]
    np.testing.assert_allclose(errors, expected, rtol=1e-5)


@pytest.mark.parametrize("horizon", [1, 3])
def test_training_errors_are_those_of_full_horizons(horizon: int) -> None:
    recordings = [noise(9), noise(7, seed=1), noise(2, seed=2)]
    detector = Level(horizon=horizon).fit(recordings)
    errors = [detector._errors(Recording("a", rows, ("x0", "x1")))[2 : len(rows) - horizon + 1] for rows in recordings]
    np.testing.assert_array_equal(detector.training_errors_, np.concatenate(errors))
    assert len(detector.training_errors_) == (7 - horizon + 1) + (5 - horizon + 1)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 5, 6, 9])
@pytest.mark.parametrize("window", [1, 2, 4])
def test_every_row_is_scored_as_if_the_first_row_had_stood_still_before(n_rows: int, window: int) -> None:
    detector, rows = Level(window=window).fit(noise(30)), noise(n_rows, seed=1)
    longer = padded(rows, window)
    np.testing.assert_allclose(detector.score(rows), detector.score(longer)[window:], rtol=1e-6)
    by_hand = []
    scaled = detector.scaler_.scaled(longer)
    level = detector.network_.get_parameter("level").detach().numpy()
    for row in range(window, len(longer)):
        forecast = scaled[row - 1] + level
        by_hand.append(((scaled[row : row + 3] - forecast) ** 2).mean(axis=0).sum())
    np.testing.assert_allclose(detector.score(rows), by_hand, rtol=1e-5)


def test_padding_changes_no_bit_of_the_other_rows_scores() -> None:
    detector, rows = Level(window=7).fit(noise(40)), noise(600, seed=1)
    windows = [
        errors.sum(axis=1)
        for _, batch in detector._full_windows(Recording("a", rows, ("x0", "x1")), 10, 2)
        for errors in [detector._errors_of(batch)]
    ]
    np.testing.assert_array_equal(detector.score(rows)[7:], np.concatenate(windows))


def test_nothing_that_is_learned_comes_from_padded_windows() -> None:
    detector = Level(window=4, epochs=2).fit([noise(20), noise(12, seed=1)])
    seen = torch.cat(detector.network_.seen)
    assert not (seen[:, 0] == seen[:, 1]).all(dim=1).any()
    assert len(seen) == 2 * ((20 - 6) + (12 - 6))
    assert len(detector.training_errors_) == (20 - 6) + (12 - 6)


def test_every_training_window_is_seen_once_an_epoch_in_another_order() -> None:
    detector = Level(epochs=2, batch_size=5).fit([noise(9), noise(11, seed=1)])
    seen = detector.network_.seen
    assert [len(past) for past in seen] == [5, 5, 2, 5, 5, 2]
    first, second = torch.cat(seen[:3]).flatten(1), torch.cat(seen[3:]).flatten(1)
    assert not torch.equal(first, second)
    assert torch.equal(first[first[:, 0].argsort()], second[second[:, 0].argsort()])
    assert len(first.unique(dim=0)) == (9 - 5 + 1) + (11 - 5 + 1)


def test_training_lowers_the_loss_and_reports_it() -> None:
    reports: list[tuple[int, int, str]] = []
    with listening(lambda done, total, note: reports.append((done, total, note))):
        Level(epochs=5, learning_rate=0.01, batch_size=100).fit(ramp(30))
    assert [(done, total) for done, total, _ in reports] == [*[(epoch, 5) for epoch in range(1, 6)], (5, 5)]
    assert reports[-1][2] == "training ended while the loss was still falling"
    losses = [float(note.removeprefix("loss ")) for _, _, note in reports[:-1]]
    assert losses == sorted(set(losses), reverse=True)
    assert len(losses) == 5


def test_the_seed_alone_decides() -> None:
    rows = noise(20)
    first = Level(seed=3).fit(rows).score(rows)
    torch.manual_seed(99)
    np.testing.assert_array_equal(Level(seed=3).fit(rows).score(rows), first)
    assert not np.array_equal(Level(seed=4).fit(rows).score(rows), first, equal_nan=True)


def test_global_random_states_are_left_alone() -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[index,union-attr]
    Level().fit(noise(20)).score(noise(20))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # type: ignore[index,union-attr]
    assert random.getstate() == before[2]


def test_scoring_does_not_depend_on_how_many_windows_go_at_once() -> None:
    # More windows than go at once (256), against parts of at most 50 rows; a score depends on 4 rows on each side.
    rows = noise(600)
    detector = Level().fit(rows[:40])
    scores = detector.score(rows)
    for first in range(0, 600, 40):
        before = min(first, 5)
        part = detector.score(rows[first - before : first + 45])[before : before + 40]
        np.testing.assert_allclose(part, scores[first : first + 40], rtol=1e-6)


def test_values_far_outside_keep_scores_finite() -> None:
    rows = noise(20)
    detector = Level().fit(rows)
    rows[10] = [1e300, -1e300]
    scores = detector.score(rows)
    assert np.isfinite(scores[2:]).all()
    assert scores[10] > 1e20


def test_too_few_training_rows() -> None:
    with pytest.raises(DataError, match=r"at least 5 rows \(window \+ horizon\), the longest has 4"):
        Level().fit([ramp(4), ramp(3)])


def test_a_loss_that_runs_away() -> None:
    with pytest.raises(UsageError, match=r"the loss became (inf|nan) in epoch 1 of 5; make learning_rate smaller"):
        Level(epochs=5, learning_rate=1e30).fit(noise(20))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"window": 0}, "window must be an integer of at least 1, found 0"),
        ({"horizon": 2.5}, "horizon must be an integer of at least 1, found 2.5"),
        ({"epochs": 0}, "epochs must be an integer of at least 1, found 0"),
        ({"batch_size": -1}, "batch_size must be an integer of at least 1, found -1"),
        ({"seed": -1}, "seed must be an integer of at least 0, found -1"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0, found 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number above 0, found nan"),
        ({"device": "cuda:77"}, r"device must be 'auto' or one of this machine's \(.+\), \['cpu'.*\], found 'cuda:77'"),
        ({"device": "quantum"}, "device must be 'auto', 'cpu', 'cuda' or 'cuda:NUMBER', found 'quantum'"),
        ({"device": 0}, "found 0"),
    ],
)
def test_wrong_parameters(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Level(**parameters).check(("x0",))  # type: ignore[arg-type]


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert find_device("auto") == find_device("cpu") == torch.device("cpu")
    with pytest.raises(UsageError, match="found 'cuda'"):
        find_device("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_device("auto") == find_device("cuda") == torch.device("cuda")
    assert find_device("cuda:1") == torch.device("cuda", 1)


def test_a_missing_package_names_the_extra() -> None:
    message = r"^dprgm needs .* pip install 'tsadbench\[deep\]'$"
    with pytest.raises(MissingExtraError, match=message), extra("dprgm", "deep"):
        importlib.import_module("a_package_that_nobody_has")


def test_a_missing_module_of_our_own_is_a_defect_not_an_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match="tsadbench_detectors"), extra("dprgm", "deep"):
        importlib.import_module("tsadbench_detectors.nothing")


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import tsadbench_detectors.dprgm
"""


@pytest.mark.parametrize("missing", ["torch", "torch_geometric"])
def test_dprgm_without_its_packages(missing: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, missing], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "tsadbench.errors.MissingExtraError: dprgm needs packages that are not installed: "
        "run  pip install 'tsadbench[deep]'"
    )
