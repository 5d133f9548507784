"""A recording's figure: label, threshold, flags and heat maps against what lies in the data."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.helpers.plans import make_plan
from tests.helpers.trials import DISTANCE, LARGEST_Z, SENSORS, WARM_UP, drawn
from tsadbench import Dataset, Labels, Recording, UsageError
from tsadbench.analysis.explanation.explain import explain
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.reporting.figures import contributions, explanation, recording, score, sensors
from tsadbench.reporting.figures.recording import time_axis
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
        threshold=threshold,
        contributions=None if kept is None else np.asarray(kept, dtype=np.float32),
    )


def test_label_threshold_and_flags_are_the_trials(plant, figure):
    every = recording([*plant.of(DISTANCE), *plant.of(LARGEST_Z)], "f1", figure=figure)
    assert len(every) == 5, "the sensors, then a score and contributions a detector"
    arrays = plant.arrays(DISTANCE)
    values, threshold = arrays["test/all/f1"], arrays["thresholds"][0]
    panel = every[1]
    # 240 rows, 10 s apart: minutes since the first row.
    assert every[-1].get_xlabel() == "minutes since the first row"
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


def test_names_are_shown_as_they_are(plant, figure):
    every = recording(plant.of(DISTANCE), "f1", figure=figure)
    drawn(figure)
    assert [text.get_text().strip() for text in every[0].get_yticklabels()] == [
        "flow",
        "_pressure",
        r"cost \$x\$",
    ]


def test_heat_map_shows_the_kept_contributions(plant, figure):
    (result,) = plant.of(DISTANCE)
    kept = result.recordings["f1"].contributions
    axes = contributions(result.recordings["f1"], axes=figure.add_subplot())
    shown = np.asarray(axes.images[0].get_array())
    np.testing.assert_allclose(shown, np.sqrt(np.maximum(kept, 0)).T.astype(float), rtol=1e-6)
    assert shown.shape == (len(SENSORS), 240)


def test_peaks_survive_the_narrowing_of_a_long_heat_map(figure):
    kept = np.full((50_000, 2), 0.01)
    kept[12_345, 1] = 400.0
    axes = contributions(scored(np.zeros((50_000, 2)), kept=kept), axes=figure.add_subplot())
    shown = np.asarray(axes.images[0].get_array())
    assert shown.shape[1] <= 1200
    assert shown.max() == pytest.approx(20.0)
    assert shown[1].argmax() == pytest.approx(12_345 / 50_000 * shown.shape[1], abs=1)


def test_columns_between_irregular_rows_show_the_row_before(figure):
    time = np.array([0.0, 1.0, 2.0, 30.0, 31.0])
    one = scored(np.zeros((5, 17)), time=time, kept=np.arange(5.0)[:, None] ** 2 * np.ones(17))
    shown = np.asarray(contributions(one, axes=figure.add_subplot()).images[0].get_array())
    assert not np.isnan(shown).any()
    assert shown[0].tolist() == [2.0, 2.0, 2.0, 2.0, 4.0], "the last row of a column that is farthest from 0"


def test_many_sensors_are_a_heat_map_of_z_scores(figure):
    rng = np.random.default_rng(0)
    training = rng.normal(5.0, 2.0, size=(500, 52))
    values = training[:100].copy()
    values[40, 7] = 5.0 + 400.0
    axes = sensors(scored(values), training, axes=figure.add_subplot())
    shown = np.asarray(axes.images[0].get_array())
    assert shown.shape == (52, 100)
    assert shown[7, 40] == 5.0, "saturated"
    expected = (values[3, 2] - training[:, 2].mean()) / training[:, 2].std()
    assert shown[2, 3] == pytest.approx(expected)
    assert len(axes.get_yticklabels()) == 52


def test_few_sensors_are_lines_each_in_its_own_band(figure):
    axes = sensors(scored(np.column_stack([np.arange(9.0), np.full(9, 7.0)])), axes=figure.add_subplot())
    first, constant = (line.get_ydata() for line in axes.lines)
    assert (first.min(), first.max()) == pytest.approx((1.08, 1.92))
    assert set(constant) == {0.5 * 0.84 + 0.08}


def test_scores_that_span_orders_have_a_logarithmic_axis(figure):
    wide = score(scored(np.zeros((100, 1)), scores=np.geomspace(0.01, 1e4, 100)), axes=figure.add_subplot())
    assert wide.get_yscale() == "log"
    low, high = wide.get_ylim()
    assert low < 1.0 < 1e4 < high
    figure.clear()
    narrow = score(scored(np.zeros((100, 1)), scores=np.linspace(0.5, 3, 100)), axes=figure.add_subplot())
    assert narrow.get_yscale() == "linear"
    figure.clear()
    far = score(scored(np.zeros((9, 1)), scores=np.full(9, 4000.0), threshold=4.0), axes=figure.add_subplot())
    assert far.get_yscale() == "log", "the threshold must not be lost at the bottom"


def test_flagged_rows_that_are_not_evaluated_are_in_no_strip(figure):
    truth = np.arange(20) % 2 == 0
    one = scored(np.zeros((20, 1)), anomalous=truth, scores=np.full(20, 9.0))
    axes = score(replace(one, evaluated=np.arange(20) >= 12), axes=figure.add_subplot())
    assert (strip_rows(axes, "alarms"), strip_rows(axes, "false alarms")) == (4, 4)


@pytest.mark.parametrize("scores", [[np.nan] * 40, [0.0] * 40, [-3.0] * 40, [np.nan] * 10 + [2.0] * 20 + [np.nan] * 10])
def test_odd_scores_are_drawn(figure, scores):
    axes = score(scored(np.zeros((40, 2)), scores=scores), axes=figure.add_subplot())
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), scores)
    assert drawn(figure).std() > 0


def test_a_single_row(figure):
    one = scored(np.ones((1, 2)), time=np.array([5.0]), anomalous=np.array([True]), scores=[3.0], kept=[[1.0, 2.0]])
    top, middle, bottom = figure.subplots(3, 1)
    sensors(one, axes=top)
    score(one, axes=middle)
    contributions(one, axes=bottom)
    assert strip_rows(middle, "alarms") == 1.0
    assert drawn(figure).std() > 0


def test_the_time_axis():
    assert time_axis(scored(np.zeros((3, 1))).recording)[1] == "row"
    values, unit = time_axis(scored(np.zeros((3, 1)), time=np.array([100.0, 101.0, 102.0])).recording)
    assert (values.tolist(), unit) == ([0.0, 1.0, 2.0], "seconds")
    values, unit = time_axis(scored(np.zeros((2, 1)), time=np.array([0.0, 4 * 86_400.0])).recording)
    assert (values.tolist(), unit) == ([0.0, 4.0], "days")
    backwards = scored(np.zeros((3, 1)), time=np.array([2.0, 1.0, 3.0]))
    assert time_axis(backwards.recording)[1] == "row"


def test_an_unknown_recording(plant, figure):
    with pytest.raises(UsageError, match="no test recording 'f3'; did you mean 'f"):
        recording(plant.of(DISTANCE), "f3", figure=figure)


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


def test_delays_of_many_events_are_not_written_over_one_another(plant, figure):
    (result,) = plant.of(DISTANCE, n_seeds=1)
    found = explain(result, "f1")
    (event,) = found.events
    rows = [0, 3, 5, 60, 62, 150, 151, 200]
    events = [replace(event, first_alarm=replace(event.first_alarm, row=row)) for row in rows]
    every = explanation(result, replace(found, events=tuple(events)), figure=figure)
    assert len([line for line in every[1].lines if line.get_gid() == "first alarm"]) == len(rows)
    drawn(figure)
    boxes = [text.get_window_extent() for text in every[0].texts]
    assert 3 <= len(boxes) < len(rows)
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_z_scores_are_those_of_the_machines_own_training_rows(tmp_path, figure):
    """Two machines of 20 sensors whose levels are far apart: laid together, no row would look unusual."""
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
