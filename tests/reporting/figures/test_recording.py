"""Compares the label, threshold, flags and heat maps in a recording's figure with the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.plans import make_plan
from tests.helpers.trials import DISTANCE, LARGEST_Z, WARM_UP, drawn
from tsadbench import Dataset, Labels, Recording
from tsadbench.analysis.explanation import explain
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.reporting.figures import alarms, contributions, explanation, recording
from tsadbench.results.trial_result import ScoredRecording, TrialResult


def spans(axes, gid):
    """Where the axes are shaded: [first, last] on the time axis."""
    boxes = [patch.get_bbox() for patch in axes.patches if patch.get_gid() == gid]
    return [(box.x0, box.x1) for box in boxes]


def strip_rows(axes, gid):
    """How much of the time axis a strip covers."""
    paths = [path for one in axes.collections if one.get_gid() == gid for path in one.get_paths()]
    return sum(np.ptp(path.vertices[:, 0]) for path in paths)


def scored(values, *, time=None, anomalous=None, scores=None, kept=None, threshold=1.0):
    values = np.asarray(values, dtype=float)
    n_rows, n_sensors = values.shape
    return ScoredRecording(
        recording=Recording("r", values, tuple(f"s{i}" for i in range(n_sensors)), time=time),
        anomalous=np.zeros(n_rows, dtype=bool) if anomalous is None else anomalous,
        scores=np.zeros(n_rows) if scores is None else np.asarray(scores, dtype=float),
        evaluated=np.ones(n_rows, dtype=bool),
        episode="all",
        limits=np.full(n_rows, threshold),
        contributions=None if kept is None else np.asarray(kept, dtype=np.float32),
    )


def test_label_threshold_and_flags_are_the_trials(plant, figure):
    every = recording([*plant.of(DISTANCE), *plant.of(LARGEST_Z)], "f1", figure=figure)
    assert len(every) == 5, "the sensors, then a score and contributions a detector"
    arrays = plant.arrays(DISTANCE)
    values, threshold = arrays["test/all/f1"], plant.threshold(DISTANCE)
    panel = every[1]
    # 240 rows, 10 s apart: minutes since the first row.
    assert every[-1].get_xlabel().startswith("minutes ")
    assert spans(panel, "label") == [pytest.approx((1000 / 60, 1400 / 60))]
    assert spans(panel, "not evaluated") == [pytest.approx((0, 300 / 60))]
    line, limit = panel.lines
    np.testing.assert_array_equal(line.get_ydata(), values)
    assert set(limit.get_ydata()) == {threshold}
    flagged = (values > threshold) & (np.arange(240) >= WARM_UP)
    inside = flagged & (np.arange(240) >= 100) & (np.arange(240) < 140)
    assert inside.sum() > 0
    assert strip_rows(panel, "alarms") == pytest.approx(inside.sum() / 6)
    assert strip_rows(panel, "false alarms") == pytest.approx((flagged & ~inside).sum() / 6)
    assert panel.get_title("left") == f"{DISTANCE}, seed 0"
    assert drawn(figure).std() > 0


def test_a_scored_day_has_the_sensors_that_contributed_most_flagged_rows_and_clock_times(figure):
    minute = np.arange(600)
    kept = np.ones((600, 12)) + 90.0 * np.outer(minute // 60 == 5, np.arange(12) == 7)
    values = np.where(minute < 6, np.nan, np.where(minute // 60 == 5, 9.0, 0.5))
    day = scored(np.random.default_rng(0).normal(size=(600, 12)), time=1.7e9 + 60 * minute, scores=values, kept=kept)
    every = alarms(replace(day, evaluated=minute >= 6), "t2", figure)
    shown = [text.get_text() for text in every[0].get_yticklabels()]
    assert (shown[0], len(shown)) == ("s7", 8)
    assert spans(every[1], "label") == [pytest.approx((5.0, 6.0))]
    assert spans(every[1], "not evaluated") == [pytest.approx((0.0, 0.1))]
    hours = 1.7e9 / 3600 + every[-1].get_xticks()
    assert hours == pytest.approx(np.round(hours)), "whole hours of the clock"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["score", "threshold", "flagged", "no score"]


def test_peaks_survive_the_narrowing_of_a_long_heat_map(figure):
    kept = np.full((50_000, 2), 0.01)
    kept[12_345, 1] = 400.0
    axes = contributions(scored(np.zeros((50_000, 2)), kept=kept), ax=figure.add_subplot())
    shown = np.asarray(axes.images[0].get_array())
    assert shown.shape[1] <= 1200
    assert shown.max() == pytest.approx(20.0)
    assert shown[1].argmax() == pytest.approx(12_345 / 50_000 * shown.shape[1], abs=1)


def test_an_explanation_marks_the_first_alarm_in_every_panel(plant, figure):
    (result,) = plant.of(DISTANCE)
    found = explain(result, "f1")
    every = explanation(result, found, figure=figure)
    row = next(
        row
        for row in range(100, 140)
        if plant.arrays(DISTANCE)["test/all/f1"][row] > result.record.thresholds[0].threshold.value
    )
    for axes in every:
        (line,) = (one for one in axes.lines if one.get_gid() == "first alarm")
        assert set(line.get_xdata()) == {row * 10 / 60}
    assert drawn(figure).std() > 0


def test_z_scores_use_the_machines_own_training_rows(tmp_path, figure):
    """Two machines of 20 sensors with very different levels: if pooled, no row would look unusual."""
    rng = np.random.default_rng(0)
    names, levels = tuple(f"s{i}" for i in range(20)), {"low": 0.0, "high": 1000.0}
    every = {
        f"{role}/{machine}": Recording(f"{role}/{machine}", rng.normal(level, 1.0, size=(200, 20)), names)
        for role in ("train", "test")
        for machine, level in levels.items()
    }
    test = [one for name, one in every.items() if name.startswith("test")]
    shifted = test[0].values.copy()
    shifted[100:150, 7] += 30.0
    test[0] = replace(test[0], values=shifted)
    train = [one for name, one in every.items() if name.startswith("train")]
    splits = {"overall": tuple(one.id for one in test)}
    dataset = Dataset("two", tuple(train), tuple(test), splits, entities={name: name.split("/")[1] for name in every})
    fault = np.arange(200) // 50 == 2
    data = LabelledDataset(dataset, Labels({"test/low": fault, "test/high": np.zeros(200, dtype=bool)}, splits))
    store = Store.create(tmp_path / "runs")
    (record,) = run_plan(make_plan([DISTANCE], dataset=data, floors=False), store)
    top, *_ = recording([TrialResult(record, store, data)], "test/low", figure=figure)
    shown = np.asarray(top.images[0].get_array())
    assert shown[7, 100:150].min() == 5.0  # saturated
    others = np.delete(shown, 7, axis=0)
    assert others.std() == pytest.approx(1.0, abs=0.1)
