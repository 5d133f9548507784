"""The detector of several views: calibrated on rows it has not seen, causal, and able to name the sensor."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.planted import auroc, planted, series
from tests.helpers.planted import autoregressive as process
from tsadbench import Prior, Recording
from tsadbench.base import Episode, FloatArray, Scored
from tsadbench.base.prior import Edge
from tsadbench.errors import DataError, UsageError
from tsadbench.execution.plan import make_protocol
from tsadbench.serving import fit_model, load_model
from tsadbench.serving.stream import Stream
from tsadbench_detectors.max_z import MaxZ
from tsadbench_detectors.multiview import MultiView, MultiViewGraph
from tsadbench_detectors.multiview.views import VIEWS

CARD = """
schema = 1
name = "plant"

[train]
files = ["train.csv"]

[columns]
"""

OWN = [name for name in VIEWS if name != "graph"]
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


def test_training_scores_come_back_recording_by_recording(detector: MultiView) -> None:
    rows = process(900, 5)
    recordings = [rows[:300], rows[300:310], rows[310:]]
    for adaptive in (False, True):
        scores = MultiView(adaptive=adaptive).fit(recordings).training_scores(recordings)
        assert [len(one) for one in scores] == [300, 10, 590]
    with pytest.raises(DataError, match=r"training_scores: expected the recordings that fit was given, 12000 rows"):
        detector.training_scores(rows)


@ADAPTIVE
def test_all_at_once_in_blocks_and_row_by_row_are_equal_to_the_bit(adaptive: bool) -> None:
    detector = MultiView(adaptive=adaptive).fit(process(1_000, 0))
    rows = process(8_300, 1)  # more than the 8,192 rows that are scored at once
    scores = detector.score(rows)
    contributions = detector.contributions(rows)
    for end in (1, 2, 17, 59, 60, 61, 513, 8_192, 8_193):
        np.testing.assert_array_equal(detector.score(rows[:end]), scores[:end])
        np.testing.assert_array_equal(detector.contributions(rows[:end]), contributions[:end])
    reach = detector.declared_traits().memory
    if adaptive:
        assert reach is None
        return
    assert reach == 16 + 3
    for row in (reach, 100, 511, 512, 8_191, 8_192, 8_193, 8_200, 8_299):
        assert detector.score(rows[row - reach : row + 1])[-1] == scores[row]


def test_contributions_take_little_more_memory_than_they_have_themselves(detector: MultiView) -> None:
    rows = process(60_000, 1)
    tracemalloc.start()
    try:
        contributions = detector.contributions(rows)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * contributions.nbytes


@pytest.mark.parametrize(
    ("views", "accumulation"), [("level", 1), ("range+relation", 4), ("forecast", 8), ("movement", 1)]
)
def test_memory_is_what_the_longest_view_and_the_accumulation_reach_back(views: str, accumulation: int) -> None:
    rows = process(600, 1)
    detector = MultiView(views=views, accumulation=accumulation).fit(process(1_000, 0))
    reach = max(VIEWS[name].memory for name in views.split("+")) + accumulation - 1
    traits = detector.declared_traits()
    assert (traits.memory, traits.look_ahead, traits.stochastic, traits.adaptive) == (reach, 0, False, False)
    scores = detector.score(rows)
    changed = rows.copy()
    changed[300] += 30.0
    after = detector.score(changed)
    differ = np.flatnonzero(after != scores)
    assert differ.min() == 300
    assert differ.max() <= 300 + reach
    assert reach == 0 or differ.max() > 300


@pytest.mark.parametrize("n_sensors", [1, 3])
def test_a_stream_is_scored_as_the_whole_is_to_the_bit(n_sensors: int, tmp_path: Path) -> None:
    train, card = tmp_path / "train.csv", tmp_path / "card.toml"
    names = [f"x{number}" for number in range(n_sensors)]

    def write(file: Path, rows: FloatArray) -> None:
        lines = [",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]
        file.write_text("\n".join(lines) + "\n")

    write(train, process(700, 0)[:, :n_sensors])
    card.write_text(CARD)
    written = fit_model("multiview", str(card), tmp_path / "multiview.model")
    model = load_model(tmp_path / "multiview.model")
    rows = process(130, 1)[:, :n_sensors]
    expected = model.score(rows, contributions=True)
    np.testing.assert_array_equal(written.score(rows).scores, expected.scores)
    in_process = MultiView().fit(process(700, 0)[:, :n_sensors])
    np.testing.assert_array_equal(in_process.score(rows), expected.scores)
    stream = Stream(model, contributions=True)
    answers = [stream.push(rows[row : row + 1]) for row in range(len(rows))]
    np.testing.assert_array_equal(np.concatenate([one.scores for one in answers]), expected.scores)
    split = [one.contributions for one in answers if one.contributions is not None]
    np.testing.assert_array_equal(np.concatenate(split), expected.contributions)
    assert not stream.keeps_all


def _fault(kind: str, rows: FloatArray, sensor: int) -> FloatArray:
    """Return rows in which something happens to a sensor from row 200 to row 299."""
    broken = rows.copy()
    match kind:
        case "shift":
            broken[200:300, sensor] += 1.5
        case "stuck":
            broken[200:300, sensor] = broken[199, sensor]
        case "coupling":
            broken[200:300, sensor] = series(600, 77)[200:300, sensor]
    return broken


@pytest.mark.parametrize("kind", ["shift", "stuck", "coupling"])
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


def test_a_sensor_that_has_never_moved_is_named_when_it_moves() -> None:
    train = np.hstack([series(2_000)[:, :4], np.full((2_000, 2), 7.0)])
    detector = MultiView().fit(train)
    rows = np.hstack([series(400, 3)[:, :4], np.full((400, 2), 7.0)])
    calm = detector.contributions(rows)
    rows[200:, 4] = 7.5
    moved = detector.contributions(rows)
    assert detector.score(rows)[200:].min() > 2 > 5 * np.median(detector.score(rows)[:200])
    assert (moved[200:].argmax(axis=1) == 4).all()
    np.testing.assert_array_equal(moved[:200], calm[:200])


def test_a_sensor_that_has_never_moved_contributes_nothing() -> None:
    train = np.hstack([series(2_000)[:, :4], np.full((2_000, 2), 7.0)])
    rows = np.hstack([series(400, 3)[:, :4], np.full((400, 2), 7.0)])
    contributions = MultiView().fit(train).contributions(rows)
    assert contributions[:, 4:].sum() < 0.1 * contributions.sum()


def test_a_sensor_that_moves_for_the_first_time_stands_out_from_normal_rows() -> None:
    train = np.hstack([process(10_000, 0), np.full((10_000, 1), 7.0)])
    rows = np.hstack([process(4_000, 1), np.full((4_000, 1), 7.0)])
    rows[3_900:, 4] = 8.0
    scores = MultiView().fit(train).score(rows)
    assert np.median(scores[3_910:]) > 3
    assert np.mean(scores[:3_900] > np.median(scores[3_910:])) < 2e-3


@pytest.mark.parametrize("fault", ["coupling", "rhythm", "order"])
def test_finds_faults_that_no_single_value_shows(fault: str) -> None:
    train = series(3_000)
    rows, labels = planted(fault)  # type: ignore[arg-type]  # a parametrised string
    assert auroc(MultiView().fit(train).score(rows), labels) > 0.9
    assert auroc(MaxZ().fit(train).score(rows), labels) < 0.65


@pytest.mark.parametrize("left_out", OWN)
def test_each_view_can_be_left_out(left_out: str) -> None:
    views = [name for name in OWN if name != left_out]
    detector = MultiView(views="+".join(views)).fit(process(500, 0))
    assert list(detector.panel_.views) == views
    assert np.isfinite(detector.score(process(100, 1))).all()


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
    with pytest.raises(UsageError, match=r"prior must be a Prior"):
        MultiViewGraph().fit(train)
