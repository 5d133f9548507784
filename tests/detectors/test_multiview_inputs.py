"""The detector of several views on few rows, odd sensors and moved plants; and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.planted import autoregressive as process
from tsadbench.errors import DataError, UsageError
from tsadbench_detectors.multiview import MultiView


def test_the_adaptive_variant_takes_a_recordings_beginning_for_normal() -> None:
    train = [process(2_000, seed) for seed in range(3)]
    plain, adaptive = MultiView().fit(train), MultiView(adaptive=True).fit(train)
    moved = process(400, 9) + 25.0
    assert np.median(plain.score(moved)) > 3
    assert np.median(adaptive.score(moved)) < 1
    assert np.mean(adaptive.score(moved) > 3) < 0.02
    moved[250:300, 2] += 25.0  # and still finds what happens later
    assert adaptive.score(moved)[250:300].min() > 3


def test_the_adaptive_variant_learns_from_stretches_that_begin_anew() -> None:
    """A plant that drifts slowly is far from its beginning after 4,000 rows; within 1,000 it is not."""
    drift = np.linspace(0.0, 40.0, 4_000)[:, None]
    train = process(4_000, 0) + drift
    whole, parts = (MultiView(adaptive=True).fit(given) for given in (train, list(train.reshape(4, 1_000, 4))))
    rows = process(500, 1)
    np.testing.assert_array_equal(whole.score(rows), parts.score(rows))
    scores = np.concatenate(parts.training_scores(list(train.reshape(4, 1_000, 4))))
    np.testing.assert_array_equal(whole.training_scores(train)[0], scores)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("n_sensors", [1, 3])
@pytest.mark.parametrize("n_rows", [3, 50, 99, 100, 101])
def test_few_rows_give_finite_scores(n_rows: int, n_sensors: int, adaptive: bool) -> None:
    rows = np.random.default_rng(0).normal(size=(n_rows, n_sensors))
    detector = MultiView(adaptive=adaptive).fit(rows)
    assert len(detector.judges_) == (5 if n_rows >= 100 else 1)
    (training,) = detector.training_scores(rows)
    for found in (training, detector.score(rows), detector.score(rows[:1]), detector.score(10 * rows)):
        assert np.isfinite(found).all()
        assert found.min() >= 0


def test_as_many_blocks_as_rows_are_possible() -> None:
    rows = process(100, 0)
    detector = MultiView(blocks=100).fit(rows)
    assert len(detector.judges_) == 100
    assert np.isfinite([*detector.training_scores(rows), detector.score(rows)]).all()


def test_a_single_row_is_refused_in_one_line() -> None:
    with pytest.raises(DataError, match=r"^MultiView: expected a training recording of at least 2 rows, found 1; "):
        MultiView().fit(np.ones((1, 2)))
    with pytest.raises(DataError, match=r"^MultiView: expected training rows in which at least one sensor varies"):
        MultiView().fit(np.ones((200, 2)))


@pytest.mark.parametrize("length", [3, 12, 40])
def test_many_short_recordings(length: int) -> None:
    recordings = list(process(40 * length, 0).reshape(-1, length, 4))
    detector = MultiView().fit(recordings)
    scores = detector.training_scores(recordings)
    assert [len(one) for one in scores] == [length] * 40
    assert np.isfinite(np.concatenate(scores)).all()
    fresh = np.concatenate([detector.score(rows) for rows in process(200 * length, 1).reshape(-1, length, 4)])
    assert np.mean(fresh > 3) < 0.02


def test_collinear_sensors() -> None:
    rows = process(1_500, 0)
    collinear = np.hstack([rows, rows[:, :1], 2 * rows[:, 1:2] + 1])
    detector = MultiView().fit(collinear)
    fresh = np.hstack([process(1_500, 1), process(1_500, 1)[:, :1], 2 * process(1_500, 1)[:, 1:2] + 1])
    assert np.mean(detector.score(fresh) > 3) < 0.02
    fresh[700:720, 4] += 2.0
    assert detector.score(fresh)[700:720].min() > 3


def test_the_first_rows_of_a_recording_are_as_rare_as_later_ones() -> None:
    detector = MultiView().fit(process(12_000, 0))
    scores = np.array([detector.score(process(40, seed)) for seed in range(1, 201)])
    assert np.mean(scores[:, 1:11] > 2) < 0.03


@pytest.mark.parametrize(
    ("n_rows", "first", "n_moved"),
    [
        (500, 250, 1),
        (2_000, 1_995, 3),
        (500, 0, 1),
        (2_000, 0, 3),
    ],
)
def test_a_sensor_that_moved_once_in_training_does_not_flag_all_rows(n_rows: int, first: int, n_moved: int) -> None:
    train = np.hstack([np.random.default_rng(0).normal(size=(n_rows, 3)), np.zeros((n_rows, 1))])
    train[first : first + n_moved, 3] = 1.0
    fresh = np.hstack([np.random.default_rng(1).normal(size=(3_000, 3)), np.zeros((3_000, 1))])
    assert np.mean(MultiView().fit(train).score(fresh) > 3) < 0.01


def test_the_adaptive_variant_knows_a_constant_sensor() -> None:
    detector = MultiView(adaptive=True).fit(np.hstack([process(500, 0), np.full((500, 1), 0.1)]))
    assert detector.panel_.standardiser.varies.tolist() == [True] * 4 + [False]


@pytest.mark.parametrize("n_recordings", [1, 60])
def test_recordings_of_two_rows_are_enough_as_the_message_says(n_recordings: int) -> None:
    recordings = list(np.random.default_rng(0).normal(size=(n_recordings, 2, 3)))
    assert np.isfinite(MultiView().fit(recordings).score(recordings[0])).all()


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"views": "level+nonsense"}, "views must be different ones of level, range, relation, forecast, movement"),
        ({"views": "level+level"}, "views must be different ones of"),
        ({"views": ""}, "views must be different ones of"),
        ({"views": "level+graph"}, "views must be different ones of"),
        ({"views": ["level"]}, "views must be different ones of"),
        ({"truncation": 0.0}, "truncation must be a number above 0 and at most 1, found 0.0"),
        ({"truncation": -0.1}, "truncation must be a number above 0 and at most 1, found -0.1"),
        ({"truncation": 1.5}, "truncation must be a number above 0 and at most 1, found 1.5"),
        ({"truncation": float("nan")}, "truncation must be a number above 0 and at most 1, found nan"),
        ({"truncation": "a"}, "truncation must be a number above 0 and at most 1, found 'a'"),
        ({"accumulation": 3}, "accumulation must be a power of two from 1 to 1024, found 3"),
        ({"accumulation": 0}, "accumulation must be a power of two from 1 to 1024, found 0"),
        ({"accumulation": 2048}, "accumulation must be a power of two from 1 to 1024, found 2048"),
        ({"accumulation": 4.0}, "accumulation must be a power of two from 1 to 1024, found 4.0"),
        ({"accumulation": "a"}, "accumulation must be a power of two from 1 to 1024, found 'a'"),
        ({"least_shape": 1.0}, "least_shape must be a number from 0 to below 1, found 1.0"),
        ({"least_shape": -0.1}, "least_shape must be a number from 0 to below 1, found -0.1"),
        ({"least_shape": float("nan")}, "least_shape must be a number from 0 to below 1, found nan"),
        ({"blocks": 0}, "blocks must be an integer from 1 to 100, found 0"),
        ({"blocks": 2.5}, "blocks must be an integer from 1 to 100, found 2.5"),
        ({"blocks": 10**9}, "blocks must be an integer from 1 to 100, found 1000000000"),
        ({"adaptive": "no"}, "adaptive must be True or False, found 'no'"),
    ],
)
def test_wrong_parameters_are_named_in_one_line(wrong: dict[str, object], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        MultiView(**wrong).fit(process(200, 0))  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"MultiView: {expected}")
    assert "\n" not in str(caught.value)
