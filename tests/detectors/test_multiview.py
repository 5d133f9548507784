"""MultiView: views against scikit-learn, calibration on held-out rows, few training rows and constant sensors."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import PCA

from tests.helpers.planted import autoregressive as process
from tests.helpers.planted import in_deviations, series, stretches
from tsadbench import Recording
from tsadbench.base import Episode, FloatArray, Scored
from tsadbench.execution.plan import make_protocol
from tsadbench_detectors.multiview import VIEWS, MultiView, Panel

TRAIN, TEST = series(2_000), series(300, 5)


def _statistics(rows: FloatArray) -> dict[str, FloatArray]:
    """Return the views' statistics of single rows [n_rows], by scikit-learn and loops."""
    train, z = in_deviations(TRAIN, TRAIN), in_deviations(rows, TRAIN)
    pca = PCA(svd_solver="full").fit(train)
    k = int(np.searchsorted(np.cumsum(pca.explained_variance_ratio_), 0.85)) + 1
    major = pca.components_[:k]
    windows = LedoitWolf().fit(stretches(train, 4))
    n = train.shape[1]
    among, to_row = windows.covariance_[:-n, :-n], windows.covariance_[:-n, -n:]
    weights = np.linalg.lstsq(among, to_row, rcond=None)[0]
    variance = np.diag(windows.covariance_[-n:, -n:] - to_row.T @ weights)
    errors = []
    for row in range(len(z)):
        past = np.concatenate([z[max(0, row - back)] for back in (3, 2, 1)])
        errors.append(z[row] - windows.location_[-n:] - (past - windows.location_[:-n]) @ weights)
    return {
        "level": np.abs(z).max(axis=1),
        "distance": np.sqrt(LedoitWolf().fit(train).mahalanobis(z)),
        "residual": np.linalg.norm(z - z @ major.T @ major, axis=1),
        "forecast": np.linalg.norm(np.array(errors) / np.sqrt(variance), axis=1),
    }


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_scikit_learns_on_the_scale_of_held_out_rows(view: str) -> None:
    detector = MultiView(views=view, mean=4).fit(TRAIN)
    single = _statistics(TEST)[view]
    averaged = [np.sqrt(np.mean(single[max(0, row - 3) : row + 1] ** 2)) for row in range(len(single))]
    expected = np.log1p(single / detector.scale_[0]) + np.log1p(averaged / detector.scale_[1])
    np.testing.assert_allclose(detector.score(TEST), expected, rtol=1e-6)
    held_out = np.concatenate(detector._judged(detector.judges_, [TRAIN]))
    np.testing.assert_allclose(np.mean(held_out > detector.scale_, axis=0), 0.01, atol=1e-3)


def test_views_add_up() -> None:
    alone = sum(MultiView(views=view).fit(TRAIN).score(TEST) for view in VIEWS)
    np.testing.assert_allclose(MultiView().fit(TRAIN).score(TEST), alone, rtol=1e-12)


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_threshold_from_training_scores_holds_on_fresh_rows(adaptive: bool) -> None:
    strict, _ = make_protocol("strict", {})
    flagged = []
    for seed in range(3):
        train = Recording("train", process(12_000, seed), tuple(f"x{number}" for number in range(4)))
        detector = MultiView(adaptive=adaptive).fit(train)
        episode = Episode("all", (train,), ())
        threshold = strict.find_threshold(Scored(episode, tuple(detector.training_scores(train)), ())).value
        flagged += [np.mean(detector.score(process(5_000, 100 * seed + n)) > threshold) for n in (11, 12, 13)]
    assert 1e-3 / 3 < np.mean(flagged) < 3e-3


def test_contributions_sum_to_the_score_and_name_the_sensor() -> None:
    constant = np.full((2_000, 1), 0.1)
    detector = MultiView().fit(np.hstack([constant, TRAIN]))
    hits = 0
    for sensor in range(8):
        rows = np.hstack([constant[:300], TEST])
        rows[200:, 1 + sensor] = series(300, 77)[200:, sensor]  # no longer coupled to the others
        contributions = detector.contributions(rows)
        assert contributions.min() >= 0
        np.testing.assert_allclose(contributions.sum(axis=1), detector.score(rows), rtol=1e-9)
        hits += contributions[220:].sum(axis=0).argmax() == 1 + sensor
    assert hits >= 6  # the second group's four sensors hardly raise the score


def test_the_adaptive_variant_takes_a_recordings_beginning_for_normal() -> None:
    train = [process(2_000, seed) for seed in range(3)]
    plain, adaptive = MultiView().fit(train), MultiView(adaptive=True).fit(train)
    moved = process(400, 9) + 25.0
    usual = np.quantile(np.concatenate(adaptive.training_scores(train)), 0.99)
    assert np.median(plain.score(moved)) > 3 * np.median(plain.score(process(400, 9)))
    assert np.mean(adaptive.score(moved) > usual) < 0.05
    moved[250:300, 2] += 25.0  # and still finds what happens later
    assert adaptive.score(moved)[250:300].min() > usual


def test_the_first_move_of_a_constant_sensor_is_seen_whatever_its_unit() -> None:
    """Its z-score is 10 however small the step, also next to collinear sensors."""
    rows = np.random.default_rng(0).normal(size=(2_000, 2))
    train = np.hstack([rows, rows[:, :1] * 3.0, np.zeros((2_000, 1))])
    test = train[:100].copy()
    test[50:, 3] = 1e-6
    detector = MultiView().fit(train)
    assert detector.score(test)[50:].min() > detector.score(train[:50]).max()
    assert detector.contributions(test)[99].argmax() == 3
    once = train.copy()
    once[1_995:1_998, 3] = 1.0
    fitted = MultiView().fit(once)  # a constant sensor that moved once in training does not flag all rows
    assert fitted.score(train[:50]).max() < fitted.score(once)[1_995:1_998].min()


@pytest.mark.parametrize(
    "rows", [*(series(n)[:, :3] for n in (2, 4, 5)), np.repeat([[0.0] * 2, [1.0] * 2], 150, axis=0)]
)
def test_few_rows_and_equal_switches_are_enough(rows: FloatArray) -> None:
    assert np.isfinite(MultiView().fit(rows).score(rows + 0.5)).all()


@pytest.mark.parametrize("block", [0, 2])
def test_a_judge_has_not_seen_the_rows_that_it_judges(block: int) -> None:
    """Changing a block of training rows, and 30 rows on either side, leaves the block's judge bitwise the same."""
    rows = series(1_000)[:, :3]
    changed = rows.copy()
    unseen = slice(max(0, 200 * block - 30), min(1_000, 200 * (block + 1) + 30))
    changed[unseen] = 100 * np.random.default_rng(block).normal(size=changed[unseen].shape)

    def learned(panel: Panel) -> list[FloatArray]:
        own = [getattr(panel, field.name) for field in fields(panel) if field.name != "standardiser"]
        return [*own, panel.standardiser.mean, panel.standardiser.scale]

    before, after = MultiView().fit(rows).judges_, MultiView().fit(changed).judges_
    for number in range(5):
        alike = [np.array_equal(*pair) for pair in zip(learned(before[number]), learned(after[number]), strict=True)]
        assert all(alike) == (number == block)
