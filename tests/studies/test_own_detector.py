"""How the detector of our own was chosen: its page comes from its records, and what is planted is what is said."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.helpers.planted import series
from tests.helpers.scripts import load_script
from tsadbench import Recording
from tsadbench.base import BoolArray, FloatArray
from tsadbench.utils.markdown import fill_blocks

FOLDER = Path(__file__).parents[2] / "docs/studies"
SENSORS = tuple("abcdefghi")
CONSTANT = 8


@pytest.fixture(scope="module")
def planting() -> ModuleType:
    load_script(FOLDER / "own_detector.py")
    return sys.modules["planting"]  # which that script imports from its folder


def recordings(*lengths: int) -> list[Recording]:
    """Return recordings of eight coupled sensors and a constant one; each row is unlike all others."""
    rows = np.hstack([series(sum(lengths)), np.full((sum(lengths), 1), 7.0)])
    parts = np.split(rows, np.cumsum(lengths)[:-1])
    return [Recording(f"r{number}", part, SENSORS) for number, part in enumerate(parts)]


def test_the_committed_page_comes_from_the_committed_records() -> None:
    page = (FOLDER / "own-detector.md").read_text(encoding="utf-8")
    assert fill_blocks(page, load_script(FOLDER / "own_detector.py").block) == page


def test_every_candidate_was_measured_once_on_every_data_set() -> None:
    study = load_script(FOLDER / "own_detector.py")
    found = [(one["dataset"], one["candidate"]) for one in study.read_records(study.RECORDS)]
    labels = [label for group in study.CANDIDATES.values() for label in group]
    assert sorted(found) == sorted((dataset, label) for dataset in study.DATASETS for label in labels)


@pytest.mark.parametrize("lengths", [(6_000,), (900, 2_100, 40, 1_500), (30, 25, 20, 45)])
def test_folds_never_overlap_and_leave_a_gap(planting: ModuleType, lengths: tuple[int, ...]) -> None:
    given = recordings(*lengths)
    number_of = {row.tobytes(): number for number, row in enumerate(np.concatenate([one.values for one in given]))}
    n_rows = sum(lengths)
    assert len(number_of) == n_rows
    judged: set[int] = set()
    folds = list(planting.folds(given))
    assert [fold.number for fold in folds] == [0, 1, 2]
    for fold in folds:
        train, later = (
            {number_of[row.tobytes()] for one in part for row in one.values} for part in (fold.train, fold.later)
        )
        assert min(later) - max(train) > min(100, n_rows // 20)
        assert len(later) <= planting.MOST_ROWS
        assert not later & judged
        judged |= later


def _planted(planting: ModuleType, kind: str) -> tuple[FloatArray, FloatArray, BoolArray, list[slice]]:
    """Return normal and faulty rows of the last fold, which rows are marked, and the runs of these."""
    fold = list(planting.folds(recordings(8_000)))[-1]
    changed, marked = planting.faulty(fold, kind)
    before, after = (np.concatenate([one.values for one in part]) for part in (fold.later, changed))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(int)))
    return before, after, marked, [slice(*pair) for pair in edges.reshape(-1, 2).tolist()]


SHORT = ("spike", "level-shift", "drift", "stuck", "noise-burst", "broken-coupling")
LONG = ("several", "slow-drift", "gain", "delay", "speed", "order", "common")


@pytest.mark.parametrize("kind", [*SHORT, *LONG])
def test_only_marked_rows_change_and_the_same_seed_plants_the_same(planting: ModuleType, kind: str) -> None:
    before, after, marked, runs = _planted(planting, kind)
    np.testing.assert_array_equal(after[~marked], before[~marked])
    assert all((after[run] != before[run]).any() for run in runs)
    np.testing.assert_array_equal(after[:, CONSTANT], 7.0)
    np.testing.assert_array_equal(_planted(planting, kind)[1], after)
    fold = list(planting.folds(recordings(8_000)))[-1]
    other, _ = planting.faulty(fold, kind, seed=1)
    assert not np.array_equal(np.concatenate([one.values for one in other]), after)
    if kind in LONG:
        # One in each slot of 600 rows; two of them may meet.
        assert len(before) // 600 - 1 <= len(runs) <= len(before) // 600
        assert all(60 <= run.stop - run.start <= 600 for run in runs)
    if kind not in ("several", "speed", "order", "common"):
        assert all((after[run] != before[run]).any(axis=0).sum() == 1 for run in runs)


def test_all_kinds_are_tested(planting: ModuleType) -> None:
    assert (*SHORT, *LONG) == planting.ALL_KINDS


def _scale() -> FloatArray:
    fold_rows = 8_000 * 4 // 5 - 100
    return np.asarray(np.hstack([series(8_000), np.full((8_000, 1), 7.0)])[:fold_rows].std(axis=0))


@pytest.mark.parametrize("kind", LONG)
def test_a_long_fault_does_what_its_name_says(planting: ModuleType, kind: str) -> None:
    before, after, _, runs = _planted(planting, kind)
    train = np.hstack([series(8_000), np.full((8_000, 1), 7.0)])[: 8_000 * 4 // 5 - 100]
    scale = _scale()
    for run in runs:
        change = after[run] - before[run]
        (moved,) = np.nonzero((change != 0).any(axis=0))
        sensor = moved[0]
        match kind:
            case "several":
                assert 2 <= len(moved) <= 4
                sizes = np.abs(change[:, moved]) / scale[moved]
                np.testing.assert_allclose(sizes, sizes[:1].repeat(len(sizes), axis=0), rtol=1e-9)
                assert 0.5 <= sizes.min() <= sizes.max() <= 2.0
            case "slow-drift":
                ramp = change[:, sensor] / scale[sensor]
                np.testing.assert_allclose(np.diff(ramp), ramp[0], rtol=1e-6)
                assert 1.0 <= abs(ramp[-1]) <= 4.0
            case "gain":
                middle = before[:, sensor].mean()
                factors = (after[run, sensor] - middle) / (before[run, sensor] - middle)
                np.testing.assert_allclose(factors, factors[0], rtol=1e-6)
                assert 0.2 <= factors[0] <= 0.6 or 1.6 <= factors[0] <= 3.0
            case "delay":
                delays = [
                    delay
                    for delay in range(5, 31)
                    if run.start >= delay
                    and np.array_equal(after[run, sensor], before[run.start - delay : run.stop - delay, sensor])
                ]
                assert len(delays) == 1
            case "speed":
                length = run.stop - run.start
                slow = np.array_equal(after[run], before[run.start + np.arange(length) // 2])
                fast = 2 * np.arange(length)
                assert slow or np.array_equal(after[run], before[run.start + fast])
            case "order":
                assert sorted(map(tuple, after[run])) == sorted(map(tuple, before[run]))
            case _:
                np.testing.assert_allclose(change, change[:1].repeat(len(change), axis=0), atol=1e-9)
                z = ((train - train.mean(axis=0))[:, :CONSTANT]) / scale[:CONSTANT]
                along = change[0, :CONSTANT] / scale[:CONSTANT]
                size = np.linalg.norm(along)
                # So many standard deviations of what normal rows do along this direction, one of the leading three.
                assert 2.0 <= size / (z @ along / size).std() <= 5.0
                variances, directions = np.linalg.eigh(np.cov(z, rowvar=False, ddof=0))
                assert np.abs(directions[:, -3:].T @ along / size).max() == pytest.approx(1.0, abs=1e-6)
                assert variances[-1] > 1
