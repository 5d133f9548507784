"""Checks that a detector handles real data, has learned something, and gives anomalies higher scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.metrics import roc_auc_score

from tsadbench.base.recording import Recording
from tsadbench.base.scores import difference, worst_case
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Skipped, check
from tsadbench.testing.subject import Subject


def _require_scored(subject: Subject, change: Callable[[Recording], Recording], *, test: bool = True) -> None:
    """Raise `Failed` if rows lose their scores after a change of the training and test recordings."""
    changed = change(subject.test()) if test else subject.test()
    found = subject.make().fit([change(one) for one in subject.train()]).score(changed)
    missing = np.isnan(found) & ~np.isnan(subject.usual)
    if missing.any():
        raise Failed("rows lose their scores", first_row=int(missing.argmax()))


@check("robustness")
def large_numbers(subject: Subject) -> None:
    """Sensors with large offsets and tiny or huge spreads get finite scores."""
    factors, offsets = np.array([1e-3, 1.0, 1e4, 1e3]), np.array([1e6, -1e6, 0.0, 1e5])
    _require_scored(subject, lambda one: synthetic.recording(one.values * factors + offsets))


@check("robustness")
def constant_sensor(subject: Subject) -> None:
    """A sensor that is constant in training, but not in the test, does no harm."""
    still = [False, True, False, False]
    for test in (False, True):
        _require_scored(subject, lambda one: synthetic.recording(np.where(still, 7.0, one.values)), test=test)


@check("robustness")
def duplicate_sensor(subject: Subject) -> None:
    """Two identical sensors do no harm."""
    _require_scored(subject, lambda one: synthetic.recording(one.values[:, [0, 0, 2, 3]]))


@check("robustness")
def single_sensor(subject: Subject) -> None:
    """One sensor alone is enough."""
    if subject.traits.needs_prior:
        raise Skipped("it needs a prior: couplings between sensors")
    _require_scored(subject, lambda one: synthetic.recording(one.values[:, :1], sensors=one.sensors[:1]))


@check("robustness", varies=True)
def units(subject: Subject) -> None:
    """A fault is found equally well if all sensors are given in units a million times larger."""
    usual, small = _auroc(subject), _auroc(subject, 1e-6)
    if usual - small > 0.1:
        raise Failed("the fault is lost in other units", auroc=usual, auroc_in_other_units=small)


@check("robustness", "scores", varies=True)
def rounding(subject: Subject) -> None:
    """Values rounded to seven digits get nearly the same scores."""
    expected = subject.usual
    rounded = subject.score(subject.test(lambda values: values.astype(np.float32).astype(np.float64)))
    moved = float(np.nanmedian(np.abs(rounded - expected)))
    if moved > 0.05 * float(np.nanstd(expected)):
        raise Failed("scores depend on the last bits of values", typical_difference=moved)


@check("robustness")
def no_time(subject: Subject) -> None:
    """Recordings without times are scored, too."""
    _require_scored(subject, lambda one: Recording(one.id, one.values, one.sensors))


@check("robustness")
def short_recordings(subject: Subject) -> None:
    """Recordings shorter than a window are accepted, even if all scores are NaN."""
    detector = subject.fitted
    for n_rows in sorted({1, 2, max(1, subject.reach - 1), max(1, subject.reach), subject.reach + 1}):
        try:
            detector.score(subject.test(n_rows=n_rows))
        except Exception as error:
            raise Failed(f"a recording of {n_rows} rows: {type(error).__name__}: {error}", n_rows=n_rows) from error


@check("learning")
def not_constant(subject: Subject) -> None:
    """Scores differ from row to row."""
    if subject.constant:
        raise Failed("every row gets the same score")


@check("learning", varies=True)
def fault(subject: Subject) -> None:
    """Scores rise when all sensors leave their normal range."""
    auroc = _auroc(subject)
    if auroc < 0.7:  # any model of normal rows is far better
        raise Failed(f"AUROC {auroc:.3f} at a fault of six standard deviations, expected at least 0.7", auroc=auroc)


def _auroc(subject: Subject, factor: float = 1.0) -> float:
    """Return the AUROC of the fault with all values multiplied by a factor; a row without a score is the worst case."""
    faulty, labels = subject.faulty()
    detector = subject.make().fit(subject.train(lambda values: values * factor))
    scores = detector.score(synthetic.changed(faulty, lambda values: values * factor))
    return float(roc_auc_score(labels, worst_case(scores, labels)))


@check("learning", varies=True)
def spike(subject: Subject) -> None:
    """A few extreme rows get, within their reach, a higher score than all rows before them."""
    look_ahead, first, reach = subject.traits.look_ahead, 140, subject.reach
    last = first + min(40, reach // 2 + 1)  # just enough rows for a median over the memory to change
    scores = subject.score(subject.test(synthetic.raised(first, last + 1, 1e3)))
    at_spike = float(np.nanmax(scores[max(0, first - look_ahead) : last + reach + 1]))
    before = float(np.nanmax(scores[: max(1, first - look_ahead)]))
    if not at_spike > before:
        reason = "rows a thousand standard deviations out do not score above all earlier rows"
        raise Failed(reason, at_spike=at_spike, before=before)


@check("learning", "fits", varies=True)
def other_data(subject: Subject) -> None:
    """Fitting on other data changes the scores."""
    elsewhere = subject.train(lambda values: 2.0 * values + 3.0 * synthetic.SCALE, seed=41)
    if difference(subject.refit(elsewhere), subject.usual)[0] is None:
        raise Failed("its scores do not depend on the training data: it has learned nothing")


@check("learning")
def training_scores(subject: Subject) -> None:
    """Training scores are like those of fresh normal rows, so thresholds hold."""
    detector = subject.fit()
    seen = np.concatenate(detector.training_scores(subject.train()))
    fresh = detector.score(subject.test())
    above = float(np.mean(fresh[np.isfinite(fresh)] > np.nanmax(seen)))
    if above > 0.5:
        reason = f"{above:.0%} of fresh normal rows score above every training row; override _training_scores"
        raise Failed(reason, share_above=above)
