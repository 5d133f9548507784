"""Compares drawn densities, thresholds, seeds and graphs with independent computations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import genpareto

from tests.helpers.trials import DISTANCE, SENSORS, WARM_UP, drawn
from tsadbench.analysis.sensor_graph import SensorGraph
from tsadbench.base.protocol import Threshold
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.reporting.figures import density, graph, seeds, threshold, trial_frame
from tsadbench.results.trial_result import TrialResult

GROUPS = ("threshold's normal rows", "normal test rows", "anomalous test rows")


def heights(axes):
    """The corners of each group's bins, by its name."""
    return {patch.get_label(): patch.get_xy() for patch in axes.patches}


class TestDensities:
    def test_each_group_is_a_share_of_its_rows(self, plant, figure):
        axes = density(plant.of(DISTANCE)[0], ax=figure.add_subplot())
        arrays = plant.arrays(DISTANCE)
        limit = plant.threshold(DISTANCE)
        (line,) = (one for one in axes.lines if one.get_label() == "threshold")
        assert set(line.get_xdata()) == {limit}
        assert set(heights(axes)) == set(GROUPS)
        fault = slice(100, 140)
        tests = [arrays[f"test/all/{name}"] for name in ("f1", "f2")]
        groups = (
            [arrays[f"train/all/{name}"][WARM_UP:] for name in ("a", "b")],
            [arrays["test/all/h1"][WARM_UP:], *(np.delete(one, fault)[WARM_UP:] for one in tests)],
            [one[fault] for one in tests],
        )
        for name, rows in zip(GROUPS, map(np.concatenate, groups), strict=True):
            # A step outline: the height over each bin, the bins' borders on the x axis.
            xs, ys = heights(axes)[name].T
            tops = {(xs[i], xs[i + 1]): ys[i] for i in range(len(xs) - 1) if ys[i] == ys[i + 1] and xs[i] < xs[i + 1]}
            edges = [xs[0], *(right for _, right in tops)]
            found, _ = np.histogram(np.clip(rows, edges[0], edges[-1]), edges)
            np.testing.assert_allclose([*tops.values()], found / len(rows), err_msg=name)
        flagged = np.concatenate([arrays[f"test/all/{name}"][fault] > limit for name in ("f1", "f2")])
        assert f"{flagged.mean():.1%} of anomalous" in axes.get_title("left")
        assert 0 < flagged.mean() < 1

    def test_fits_that_share_no_scale_are_not_drawn_on_one_axis(self, many_fits, figure):
        record = many_fits.of(DISTANCE)[0].record
        first, *others = record.thresholds
        negative = replace(first, threshold=replace(first.threshold, value=-1.0))
        result = TrialResult(replace(record, thresholds=(negative, *others)), many_fits.store, many_fits.data)
        axes = density(result, ax=figure.add_subplot())
        assert "share no scale" in axes.texts[0].get_text()


class TestThreshold:
    def test_points_and_tail_are_those_of_the_training_scores(self, plant, figure):
        ((scores, levels),) = threshold(plant.of(DISTANCE), figure)
        arrays = plant.arrays(DISTANCE)
        training = np.concatenate([arrays[f"train/all/{name}"][WARM_UP:] for name in ("a", "b")])
        found = plant.of(DISTANCE)[0].record.thresholds[0].threshold
        over = np.sort(training[training > found.t]) - found.t
        assert found.status in ("ok", "clamped")
        periods, shown = levels.lines[0].get_xydata()[-len(over) :].T
        np.testing.assert_allclose(shown - found.t, over)
        np.testing.assert_allclose(periods[-1], 2 * len(training), err_msg="the largest is exceeded once in 2n rows")
        (star,) = (line for line in levels.lines if line.get_marker() == "*")
        np.testing.assert_allclose(star.get_xydata(), [[1 / found.q, found.value]])
        tail_line = next(line for line in levels.lines if len(line.get_xdata()) == 200)
        rows, level = tail_line.get_xydata().T
        tail = genpareto(found.gamma, scale=found.sigma)
        share = len(over) / len(training)
        np.testing.assert_allclose(tail.sf(level - found.t) * share, 1 / rows)
        assert np.interp(np.log(1 / found.q), np.log(rows), level) == pytest.approx(found.value, rel=1e-3)
        assert {float(line.get_xdata()[0]) for line in scores.lines} == {found.value}
        assert found.t in {float(line.get_ydata()[0]) for line in levels.lines if len(line.get_ydata()) == 2}
        title = figure.subfigs[0].get_suptitle()
        assert f"{len(over)} of {len(training)} training scores" in title
        assert drawn(figure).std() > 0

    @pytest.mark.parametrize(
        "found",
        [
            Threshold(value=0.0, method="fixed", status="fixed"),
            Threshold(value=9e9, method="pot", status="degenerate", t=9e9, level=0.9, q=1e-3, n=420, excesses=0),
            Threshold(value=3.0, method="pot", status="quantile", t=2.0, level=0.9, q=1e-3, n=420, excesses=9),
        ],
        ids=["fixed", "degenerate", "quantile"],
    )
    def test_without_a_tail_the_title_says_why(self, plant, figure, found):
        result = plant.altered(DISTANCE, found)
        ((_, levels),) = threshold([result], figure)
        assert len(levels.texts) == (found.method == "fixed")
        assert found.status in figure.subfigs[0].get_suptitle()
        assert drawn(figure).std() > 0


class TestSeeds:
    @pytest.mark.parametrize(("lower", "best_of"), [([], max), (["auroc"], min)])
    def test_dots_are_the_records(self, plant, figure, lower, best_of):
        board = Leaderboard.from_records(plant.records, ["overall"])
        trials = trial_frame(board)
        trials.attrs["lower"] += lower
        ax = seeds(trials, figure.add_subplot(), "auroc")
        by_label = {label: [] for label in board.frame["detector"]}
        for record in plant.records:
            by_label[record.label].append(record.splits["overall"].metrics["auroc"])
        dots = {int(line.get_ydata()[0]): line.get_xdata() for line in ax.lines if line.get_marker() == "o"}
        for place, values in enumerate(by_label.values()):
            np.testing.assert_allclose(dots[place], values)
        (best,) = (line for line in ax.lines if line.get_label() == "best floor")
        floors = board.frame.query("floor and sound")["detector"]
        assert set(best.get_xdata()) == {best_of(np.mean(by_label[label]) for label in floors)}
        assert [text.get_text() for text in ax.get_yticklabels()] == list(by_label)


def test_a_graph_shows_its_matrix_and_its_weights(plant, figure):
    matrix, weights = np.array([[0.0, 0.9, 0.0], [0.0, 0.0, 0.4], [0.0, 0.0, 0.0]]), np.array([0.5, 0.3, 0.2])
    found = SensorGraph("dprgm", "dprgm", SENSORS, plant.data.dataset.prior, matrix, weights)
    _, shown, bars = graph(found, figure)
    np.testing.assert_allclose(np.ma.filled(shown.images[0].get_array(), 0.0), matrix)
    np.testing.assert_allclose([bar.get_width() for bar in bars.patches], weights)
    assert drawn(figure).std() > 0
