"""Compares every drawn point of curves with scikit-learn, from the stored scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from tests.helpers.trials import DISTANCE, WARM_UP, drawn
from tsadbench.reporting.figures import precision_recall, roc

FAULT = (np.arange(240) >= 100) & (np.arange(240) < 140)


def pooled(plant, label, seed=0):
    """The evaluated rows of `overall`: all but the first 30 of each recording."""
    arrays = plant.arrays(label, seed)
    scores = np.concatenate([arrays[f"test/all/{name}"][WARM_UP:] for name in ("f1", "f2", "h1")])
    truth = np.concatenate([FAULT[WARM_UP:], FAULT[WARM_UP:], np.zeros(240 - WARM_UP, dtype=bool)])
    return scores, truth, plant.threshold(label, seed)


def line(axes, label):
    (found,) = (one for one in axes.lines if one.get_label().endswith(f"  {label}"))
    return found


def markers(axes):
    return [one for one in axes.lines if one.get_label() == "_threshold"]


def test_roc_of_one_seed_is_scikit_learns(plant, figure):
    axes = roc(plant.of(DISTANCE), ax=figure.add_subplot())
    scores, truth, threshold = pooled(plant, DISTANCE)
    false_alarms, recall, _ = roc_curve(truth, scores, drop_intermediate=False)
    np.testing.assert_allclose(line(axes, DISTANCE).get_xydata(), np.stack([false_alarms, recall], axis=1))
    assert line(axes, DISTANCE).get_linestyle() == "-"
    (marker,) = markers(axes)
    flagged = scores > threshold
    np.testing.assert_allclose(marker.get_xydata(), [[flagged[~truth].mean(), flagged[truth].mean()]])
    assert 0 < flagged[truth].mean() < 1
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend[0] == f"{roc_auc_score(truth, scores):.3f}".lstrip("0") + f"  {DISTANCE}"
    assert drawn(figure).std() > 0


def test_precision_recall_steps_enclose_the_average_precision(plant, figure):
    axes = precision_recall(plant.of(DISTANCE), ax=figure.add_subplot())
    scores, truth, threshold = pooled(plant, DISTANCE)
    shown = line(axes, DISTANCE)
    assert shown.get_drawstyle() == "steps-pre"
    recall, precision = shown.get_xydata().T
    assert np.sum(np.diff(recall) * precision[1:]) == pytest.approx(average_precision_score(truth, scores))
    flagged = scores > threshold
    (marker,) = markers(axes)
    np.testing.assert_allclose(marker.get_xydata(), [[flagged[truth].mean(), truth[flagged].mean()]])
    chance = next(one for one in axes.lines if one.get_label() == "_chance")
    assert set(chance.get_ydata()) == {truth.mean()}


@pytest.mark.parametrize(
    ("draw", "metric"), [(roc, roc_auc_score), (precision_recall, average_precision_score)], ids=["roc", "pr"]
)
def test_several_seeds_are_a_mean_and_a_band(plant, figure, draw, metric):
    axes = draw(plant.of("random"), ax=figure.add_subplot())
    shown = line(axes, "random")
    assert shown.get_linestyle() == "--", "floors are dashed"
    areas = [metric(truth, scores) for scores, truth, _ in (pooled(plant, "random", seed) for seed in range(3))]
    assert trapezoid(shown.get_ydata(), shown.get_xdata()) == pytest.approx(np.mean(areas), abs=4e-3)
    (band,) = axes.collections
    edges = band.get_paths()[0].vertices
    halfway = []
    for seed in range(3):
        scores, truth, _ = pooled(plant, "random", seed)
        if draw is roc:
            false_alarms, recall, _ = roc_curve(truth, scores, drop_intermediate=False)
            halfway.append(np.interp(0.5, false_alarms, recall))
        else:
            hits = truth[np.argsort(-scores)]
            halfway.append(hits[: 1 + np.flatnonzero(hits.cumsum() >= hits.sum() / 2)[0]].mean())
    at = edges[np.isclose(edges[:, 0], 0.5), 1]
    assert (at.min(), at.max()) == pytest.approx((min(halfway), max(halfway)))
    assert len(markers(axes)) == 3


def test_with_a_fit_per_recording_the_area_is_the_protocols(many_fits, figure):
    axes = roc(many_fits.of(DISTANCE), ax=figure.add_subplot())
    shown = line(axes, DISTANCE)
    recorded = many_fits.of(DISTANCE)[0].record.splits["overall"].metrics["auroc"]
    arrays = many_fits.arrays(DISTANCE)
    by_hand = [roc_auc_score(FAULT[90:], arrays[f"test/{name}/{name}"][90:]) for name in ("f1", "f2")]
    assert recorded == pytest.approx(np.mean(by_hand))
    assert trapezoid(shown.get_ydata(), shown.get_xdata()) == pytest.approx(recorded, abs=4e-3)
    assert "mean of 3 fits" in axes.get_legend().get_title().get_text()
