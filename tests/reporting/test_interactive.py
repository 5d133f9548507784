"""Compares the traces of the interactive recording with the stored scores, complete and reduced."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.trials import DISTANCE, LARGEST_Z, WARM_UP
from tsadbench.reporting.figures.interactive import interactive
from tsadbench.utils.arrays import mask_runs


@pytest.fixture
def scored(plant):
    return {label: plant.of(label)[0].recordings["f1"] for label in (DISTANCE, LARGEST_Z)}


def traces(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def test_the_traces_are_the_stored_scores_and_the_threshold(plant, scored):
    figure = interactive(scored)
    for place, (label, trace) in enumerate(zip(scored, traces(figure, "score"), strict=True)):
        np.testing.assert_allclose(trace.y, plant.arrays(label)["test/all/f1"], rtol=1e-6)
        assert (trace.meta, trace.visible) == (place, place == 0)
    limits = [set(trace.y) for trace in traces(figure, "threshold")]
    assert limits == [{plant.threshold(label)} for label in scored]
    minutes = traces(figure, "score")[0].x
    np.testing.assert_allclose(minutes, np.arange(240) * 10 / 60, rtol=1e-6)


def test_flags_are_the_evaluated_rows_above_the_threshold(plant, scored):
    figure = interactive(scored)
    flagged = (plant.arrays(DISTANCE)["test/all/f1"] > plant.threshold(DISTANCE)) & (np.arange(240) >= WARM_UP)
    fault = (np.arange(240) >= 100) & (np.arange(240) < 140)
    np.testing.assert_array_equal(traces(figure, "flagged rightly")[0].y, flagged & fault)
    np.testing.assert_array_equal(traces(figure, "flagged wrongly")[0].y, flagged & ~fault)


def test_label_and_rows_that_do_not_count_are_shaded(scored):
    shaded = [(box.x0, box.x1) for box in interactive(scored).layout.shapes]
    assert shaded == [pytest.approx((1000 / 60, 1400 / 60)), pytest.approx((0, WARM_UP * 10 / 60))]


def test_no_peak_and_no_flag_is_lost_where_rows_are_drawn_together(scored):
    figure = interactive(scored, n_points=40)
    values = scored[DISTANCE].scores
    shown = traces(figure, "score")[0]
    assert len(shown.y) == len(shown.x) <= 40
    assert (np.nanmin(shown.y), np.nanmax(shown.y)) == pytest.approx((np.nanmin(values), np.nanmax(values)))
    assert (np.diff(shown.x) >= 0).all()
    flags = np.asarray(traces(figure, "flagged rightly")[0].y, dtype=bool)
    counted = scored[DISTANCE].flagged & scored[DISTANCE].evaluated & scored[DISTANCE].anomalous
    assert all(flags[2 * (start // 12) : 2 * (-(-stop // 12))].any() for start, stop in mask_runs(counted)), (
        "240 rows are 20 buckets of 12"
    )


def test_many_sensors_are_a_heat_map_in_a_bytes_range():
    from tests.reporting.figures.test_recording import scored as by_hand

    values = np.linspace(0.0, 1.0, 50)[:, None] * np.arange(1, 21)
    (heat,) = (trace for trace in interactive({"a": by_hand(values)}).data if trace.type == "heatmap")
    shown = np.asarray(heat.z)
    assert shown.shape == (20, 50)
    np.testing.assert_array_equal(shown[3], np.round(np.linspace(0, 255, 50)))
