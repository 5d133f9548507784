"""Checks that it has learned something, and that higher scores mean more anomalous."""

from __future__ import annotations

import numpy as np

from tsadbench.base.agreement import difference
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Group, Skipped
from tsadbench.testing.detector_under_test import DetectorUnderTest
from tsadbench.utils.arrays import FloatArray

group = Group("learning")

# The fault is six standard deviations in every sensor: any model of normal rows is far above this.
_LEAST_AUROC = 0.7
_START, _STOP = 120, 160


@group.check("not-constant", "Scores differ from row to row.")
def not_constant(subject: DetectorUnderTest) -> None:
    """Score a recording with a fault in it."""
    if subject.constant:
        raise Failed("every row gets the same score")


@group.check("fault", "Scores rise when all sensors leave their normal range.")
def fault(subject: DetectorUnderTest) -> None:
    """Rank the rows of a recording with a level shift of six standard deviations."""
    _skip_constant(subject)
    faulty, labels = synthetic.with_fault(subject.test(), _START, _STOP)
    auroc = synthetic.auroc(subject.score(faulty), labels)
    if auroc < _LEAST_AUROC:
        raise Failed(f"AUROC {auroc:.3f} at a fault of six standard deviations, expected {_LEAST_AUROC}", auroc=auroc)


@group.check("spike", "A few extreme rows get, within their reach, a higher score than all rows before them.")
def spike(subject: DetectorUnderTest) -> None:
    """Move rows by a thousand standard deviations, just enough of them for a median over the memory to change."""
    _skip_constant(subject)
    traits, first, reach = subject.traits, 140, subject.reach
    last = first + min(40, reach // 2 + 1)

    def extreme(values: FloatArray) -> None:
        values[first : last + 1] += 1e3 * synthetic.SCALE

    scores = subject.score(synthetic.changed(subject.test(), extreme))
    near = scores[max(0, first - traits.look_ahead) : last + reach + 1]
    before = scores[: max(1, first - traits.look_ahead)]
    if not np.nanmax(near) > np.nanmax(before):
        raise Failed(
            "rows a thousand standard deviations out are not above all rows before them",
            at_spike=float(np.nanmax(near)),
            before=float(np.nanmax(before)),
        )


@group.check("other-data", "Fitted on other data, it gives other scores.", "fits")
def other_data(subject: DetectorUnderTest) -> None:
    """Fit on rows of another operating point."""
    _skip_constant(subject)
    elsewhere = [
        synthetic.changed(recording, lambda values: 2.0 * values + 3.0 * synthetic.SCALE)
        for recording in subject.train(seed=41)
    ]
    row, _ = difference(subject.make().fit(elsewhere).score(subject.test()), subject.score(subject.test()))
    if row is None:
        raise Failed("it gives the same scores whatever it was fitted on: it has learned nothing")


@group.check("training-scores", "Scores of the training rows are like those of fresh normal rows: thresholds hold.")
def training_scores(subject: DetectorUnderTest) -> None:
    """Count new normal rows above all training scores; a detector that remembers its rows scores those too low."""
    detector = subject.make().fit(subject.train())
    seen = np.concatenate(detector.training_scores(subject.train()))
    fresh = detector.score(subject.test())
    above = float(np.mean(fresh[np.isfinite(fresh)] > np.nanmax(seen)))
    if above > 0.5:
        raise Failed(
            f"{above:.0%} of fresh normal rows score above every training row; override _training_scores so that "
            f"training rows are scored as if they were new",
            share_above=above,
        )


def _skip_constant(subject: DetectorUnderTest) -> None:
    if subject.constant:
        raise Skipped("its scores are constant: the check `not-constant` reports it")
