"""Both objectives against values computed by hand, in real boxes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from tests.helpers.tunable import Guess
from tsadbench import Recording
from tsadbench.sandbox import BoxFailure, Construction, Limits
from tsadbench.tuning.faults import KINDS, Plant, with_faults
from tsadbench.tuning.objective import Objective, Reach, auprc, make_folds

REACH = Reach(before=4, after=2)


def measured(name: str, folds, parameters: dict[str, object], seed: int = 0) -> list[dict[str, float]]:
    objective, limits = Objective(name, folds, seed=seed), Limits()
    return [objective.fold(number, Construction.of(Guess, parameters), limits) for number in range(objective.n_folds)]


def rows(n_rows: int = 400) -> Recording:
    return Recording("rows", np.random.default_rng(0).normal(size=(n_rows, 3)), ("a", "b", "c"))


def test_the_held_out_loss_is_that_of_the_blocks_alone():
    recording = Recording("steps", np.repeat([1.0, 2.0, 4.0], 100)[:, None], ("a",))
    folds = make_folds([recording], 3, REACH)
    assert measured("heldout", folds, {"guess": 3.0}) == [{"loss": 4.0}, {"loss": 1.0}, {"loss": 1.0}]


def test_injections_are_found_as_well_as_average_precision_says():
    recording = rows()
    folds = make_folds([recording], 2, REACH)
    for number, (fold, found) in enumerate(zip(folds, measured("injection", folds, {}, seed=5), strict=True)):
        (held_out,) = fold.held_out
        mean = np.concatenate([one.values for one in fold.train]).mean(axis=0)
        assert list(found) == [kind.name for kind in KINDS]
        for place, kind in enumerate(KINDS):
            generator = np.random.default_rng([5, number, place, 0])
            recording, faulty = with_faults(held_out, 4, kind, Plant.of(fold.train), generator)
            scores = np.abs(recording.values - mean).max(axis=1)
            assert found[kind.name] == pytest.approx(average_precision_score(faulty[4:], scores[4:]), abs=1e-12)


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
        measured("heldout", folds, {"guess": float("nan")})
    assert caught.value.status == "invalid"
