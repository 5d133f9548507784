"""Folds train neither on held-out rows nor on rows within a gap of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsadbench import DataError, Recording
from tsadbench.tuning.objective import Reach, make_folds


def numbered(*lengths: int) -> list[Recording]:
    """Recordings whose values are their row numbers, plus 10,000 per earlier recording."""
    return [
        Recording(f"r{i}", 10_000.0 * i + np.arange(float(n))[:, None], ("row",), time=np.arange(float(n)))
        for i, n in enumerate(lengths)
    ]


def test_by_hand():
    (first, second) = make_folds(numbered(300), 2, Reach(before=40, after=5))
    assert [(one.id, one.n_rows) for one in first.held_out] == [("r0[0:150]", 150)]
    assert [one.id for one in first.train] == ["r0[195:300]"]  # 150 + a gap of 45
    assert [one.id for one in second.held_out] == ["r0[110:300]"]  # 40 rows of context, in the gap
    assert [one.id for one in second.train] == ["r0[0:105]"]
    assert first.context == second.context == 40


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(10, 900), min_size=1, max_size=4), st.integers(2, 5), st.integers(1, 60), st.integers(0, 20)
)
def test_no_row_trained_on_lies_within_a_gap_of_an_evaluated_one_and_every_row_is_evaluated_once(
    lengths, n_folds, before, after
):
    reach = Reach(before, after)
    recordings = numbered(*lengths)
    try:
        folds = make_folds(recordings, n_folds, reach)
    except DataError:
        return
    evaluated_in_all: list[float] = []
    for fold in folds:
        trained = np.concatenate([one.values[:, 0] for one in fold.train])
        evaluated = np.concatenate([one.values[fold.context :, 0] for one in fold.held_out])
        evaluated_in_all += evaluated.tolist()
        for one in fold.train:
            assert (np.diff(one.values[:, 0]) == 1).all()
        same = trained[:, None] // 10_000 == evaluated[None, :] // 10_000
        distance = np.where(same, np.abs(trained[:, None] - evaluated[None, :]), np.inf)
        assert distance.min() > reach.gap
        context = np.concatenate([one.values[: fold.context, 0] for one in fold.held_out])
        assert not np.isin(context, trained).any()
    assert len(set(evaluated_in_all)) == len(evaluated_in_all)
    long_enough = [n for n in lengths if n // n_folds >= before + 50]
    assert len(evaluated_in_all) == sum(n - before for n in long_enough)


def test_a_short_recording_is_trained_on_whole():
    folds = make_folds(numbered(400, 60), 2, Reach(10, 0))
    assert all("r1" in {one.id for one in fold.train} for fold in folds)
    assert all(len(fold.held_out) == 1 for fold in folds)


def test_too_short_recordings_are_refused():
    with pytest.raises(DataError, match="110.*300"):
        make_folds(numbered(300, 40), 3, Reach(60, 0))
    with pytest.raises(DataError, match="70"):
        make_folds(numbered(330), 3, Reach(60, 10))
