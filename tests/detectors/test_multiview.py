"""MultiView: calibrated on rows it has not seen, on few rows and odd sensors; who judges which training rows."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from tests.helpers.planted import auroc, planted, series
from tests.helpers.planted import autoregressive as process
from tsadbench import Prior, Recording
from tsadbench.base import Episode, FloatArray, Scored
from tsadbench.base.prior import Edge
from tsadbench.errors import UsageError
from tsadbench.execution.plan import make_protocol
from tsadbench_detectors.multiview import MultiView, MultiViewGraph
from tsadbench_detectors.multiview.panel import Panel
from tsadbench_detectors.multiview.views import VIEWS

ADAPTIVE = pytest.mark.parametrize("adaptive", [False, True])


@pytest.fixture(scope="module")
def detector() -> MultiView:
    return MultiView().fit(process(12_000, 0))


@ADAPTIVE
def test_of_normal_rows_one_in_a_thousand_is_above_3(adaptive: bool) -> None:
    shares, thresholds = [], []
    strict, _ = make_protocol("strict", {})
    for seed in range(3):
        train = Recording("train", process(12_000, seed), tuple(f"x{number}" for number in range(4)))
        detector = MultiView(adaptive=adaptive).fit(train)
        scores = np.concatenate([detector.score(process(5_000, 100 * seed + number)) for number in (11, 12, 13)])
        shares.append([np.mean(scores > 3), np.mean(scores > 2), np.mean(scores > 1)])
        episode = Episode("all", (train,), ())
        thresholds.append(strict.threshold(Scored(episode, tuple(detector.training_scores(train)), ())).value)
    above_3, above_2, above_1 = np.mean(shares, axis=0)
    assert 1e-3 / 3 < above_3 < 3e-3
    assert above_2 == pytest.approx(1e-2, rel=0.4)
    assert above_1 == pytest.approx(1e-1, rel=0.2)
    assert np.mean(thresholds) == pytest.approx(3.0, abs=0.3)  # Peaks-over-Threshold at q = 1e-3


def test_training_scores_are_as_those_of_rows_that_it_has_not_seen() -> None:
    """Ten sensors and 600 rows: a linear model knows its training rows better than other rows."""
    held_out, seen, fresh = [], [], []
    mix = np.random.default_rng(3).normal(size=(10, 10))
    for seed in range(4):
        rows = np.random.default_rng(seed).normal(size=(3_600, 10)) @ mix
        detector = MultiView().fit(rows[:600])
        held_out.append(detector.training_scores(rows[:600])[0])
        seen.append(detector.score(rows[:600]))
        fresh.append(detector.score(rows[600:]))
    median = {name: float(np.median(np.concatenate(found))) for name, found in
              (("held-out", held_out), ("seen", seen), ("fresh", fresh))}  # fmt: skip
    assert abs(median["held-out"] - median["fresh"]) < abs(median["seen"] - median["fresh"])
    # Movement is a mean over 16 rows: 600 rows say too little of its tail.
    detector = MultiView(views="level+range+relation+forecast").fit(rows[:600])
    assert float(np.mean(detector.score(rows[600:]) > 2)) == pytest.approx(0.01, abs=0.01)


def _fault(kind: str, rows: FloatArray, sensor: int) -> FloatArray:
    """Return rows in which something happens to a sensor from row 200 to row 299."""
    broken = rows.copy()
    match kind:
        case "stuck":
            broken[200:300, sensor] = broken[199, sensor]
        case "coupling":
            broken[200:300, sensor] = series(600, 77)[200:300, sensor]
    return broken


@pytest.mark.parametrize("kind", ["stuck", "coupling"])
def test_contributions_sum_to_the_score_and_name_the_sensor(kind: str) -> None:
    constant = np.full((3_000, 1), 0.1)
    detector = MultiView().fit(np.hstack([constant, series(3_000)]))
    hits = []
    for sensor in range(8):
        rows = np.hstack([constant[:600], _fault(kind, series(600, 5), sensor)])
        contributions = detector.contributions(rows)
        assert contributions.shape == (600, 9)
        assert contributions.min() >= 0
        np.testing.assert_allclose(contributions.sum(axis=1), detector.score(rows), rtol=1e-9, atol=1e-12)
        hits.append(contributions[220:300].sum(axis=0).argmax() == 1 + sensor)
    assert sum(hits) >= 7


def test_with_a_prior_it_has_one_view_more() -> None:
    train = Recording("train", series(2_000), tuple("abcdefgh"))
    edges = [Edge(*pair) for pair in ("ab", "bc", "cd", "ef", "fg")]
    detector = MultiViewGraph(prior=Prior(tuple(edges))).fit(train)
    assert list(detector.panel_.views) == list(VIEWS)
    rows, labels = planted("coupling")
    test = Recording("test", rows, train.sensors)
    assert auroc(detector.score(test), labels) > 0.9
    np.testing.assert_allclose(detector.contributions(test).sum(axis=1), detector.score(test), rtol=1e-9)
    alone = MultiViewGraph(prior=Prior(tuple(edges)), views="graph").fit(train)
    moved = series(600, 3)
    moved[300:, 7] += 2.0  # a sensor that is coupled to nobody
    before = alone.score(Recording("test", series(600, 3), train.sensors))
    np.testing.assert_array_equal(alone.score(Recording("test", moved, train.sensors)), before)
    with pytest.raises(UsageError, match="prior"):
        MultiViewGraph().fit(train)


def test_the_adaptive_variant_takes_a_recordings_beginning_for_normal() -> None:
    train = [process(2_000, seed) for seed in range(3)]
    plain, adaptive = MultiView().fit(train), MultiView(adaptive=True).fit(train)
    moved = process(400, 9) + 25.0
    assert np.median(plain.score(moved)) > 3
    assert np.median(adaptive.score(moved)) < 1
    assert np.mean(adaptive.score(moved) > 3) < 0.02
    moved[250:300, 2] += 25.0  # and still finds what happens later
    assert adaptive.score(moved)[250:300].min() > 3


@pytest.mark.parametrize(
    ("n_rows", "first", "n_moved"),
    [
        (2_000, 1_995, 3),
        (500, 0, 1),
    ],
)
def test_a_sensor_that_moved_once_in_training_does_not_flag_all_rows(n_rows: int, first: int, n_moved: int) -> None:
    train = np.hstack([np.random.default_rng(0).normal(size=(n_rows, 3)), np.zeros((n_rows, 1))])
    train[first : first + n_moved, 3] = 1.0
    fresh = np.hstack([np.random.default_rng(1).normal(size=(3_000, 3)), np.zeros((3_000, 1))])
    assert np.mean(MultiView().fit(train).score(fresh) > 3) < 0.01


def _learned(panel: Panel) -> list[FloatArray]:
    views = [getattr(view, field.name) for view in panel.views.values() for field in fields(view)]
    return [*views, panel.standardiser.mean, panel.standardiser.scale]


@pytest.mark.parametrize("block", [0, 2])
def test_a_panel_has_not_seen_the_rows_that_it_judges(block: int) -> None:
    """Whatever happens in a block of the training rows, and 30 rows around it, its judge stays as it is, to the bit."""
    rows = series(1_000)[:, :3]
    changed = rows.copy()
    unseen = slice(max(0, 200 * block - 30), min(1_000, 200 * (block + 1) + 30))
    changed[unseen] = 100 * np.random.default_rng(block).normal(size=changed[unseen].shape)
    before, after = MultiView().fit(rows).judges_, MultiView().fit(changed).judges_
    for number in range(5):
        alike = [np.array_equal(*pair) for pair in zip(_learned(before[number]), _learned(after[number]), strict=True)]
        assert all(alike) == (number == block)
