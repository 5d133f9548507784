"""Both objectives against values computed by hand, in real boxes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from tests.helpers.tunable import Guess
from tsadbench import Recording
from tsadbench.sandbox import BoxFailure, Construction, Limits
from tsadbench.tuning.faults import KINDS, Plant, with_faults
from tsadbench.tuning.folds import Reach, make_folds
from tsadbench.tuning.objective import HeldOut, Injection, auprc

REACH = Reach(before=4, after=2)


def rows(n_rows: int = 400) -> Recording:
    return Recording("rows", np.random.default_rng(0).normal(size=(n_rows, 3)), ("a", "b", "c"))


def test_the_held_out_loss_is_that_of_the_blocks_alone():
    recording = Recording("steps", np.repeat([1.0, 2.0, 4.0], 100)[:, None], ("a",))
    folds = make_folds([recording], 3, REACH)
    steps = list(HeldOut(folds).steps(Construction.of(Guess, {"guess": 3.0}), Limits()))
    assert [(step.name, step.fold, step.value) for step in steps] == [
        ("loss", 0, 4.0),
        ("loss", 1, 1.0),
        ("loss", 2, 1.0),
    ]


def test_injections_are_found_as_well_as_average_precision_says():
    recording = rows()
    folds = make_folds([recording], 2, REACH)
    objective = Injection(folds, seed=5)
    steps = list(objective.steps(Construction.of(Guess, {}), Limits()))
    assert len(steps) == objective.n_steps == 2 * len(KINDS)
    for step, (number, place) in zip(steps, [(n, k) for n in range(2) for k in range(len(KINDS))], strict=True):
        kind, fold = KINDS[place], folds[number]
        (held_out,) = fold.held_out
        faulty = with_faults(held_out, 4, kind, Plant.of(fold.train), np.random.default_rng([5, number, place, 0]))
        mean = np.concatenate([one.values for one in fold.train]).mean(axis=0)
        scores = np.abs(faulty.recording.values - mean).max(axis=1)
        assert (step.name, step.fold) == (kind.name, number)
        assert step.value == pytest.approx(average_precision_score(faulty.rows[4:], scores[4:]), abs=1e-12)


def test_a_detector_that_ranks_upside_down_is_worth_less():
    folds = make_folds([rows()], 2, REACH)
    objective = Injection(folds, seed=0)
    values = {
        sign: np.mean([step.value for step in objective.steps(Construction.of(Guess, {"sign": sign}), Limits())])
        for sign in (1, -1)
    }
    assert values[1] > 3 * values[-1]


def test_average_precision_by_hand_rows_without_a_score_are_the_worst_case():
    faulty = np.array([True, False, True, False])
    assert auprc(np.array([4.0, 3.0, 2.0, 1.0]), faulty) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert auprc(np.array([4.0, 3.0, np.nan, -1e300]), faulty) == pytest.approx((1 / 1 + 0) / 2)
    assert auprc(np.array([4.0, np.nan, 2.0, 1e300]), faulty) == pytest.approx((1 / 3 + 2 / 4) / 2)
    with pytest.raises(BoxFailure, match="score"):
        auprc(np.full(4, np.nan), faulty)


def test_a_loss_that_is_not_finite_is_a_failure():
    folds = make_folds([rows()], 2, REACH)
    with pytest.raises(BoxFailure, match="held_out_loss") as caught:
        list(HeldOut(folds).steps(Construction.of(Guess, {"guess": float("nan")}), Limits()))
    assert caught.value.status == "invalid"
