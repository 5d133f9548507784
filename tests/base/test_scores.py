from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score

from tsadbench.base.scores import comparable


@given(
    hnp.arrays(
        np.float64,
        st.integers(0, 20),
        elements=st.one_of(st.just(np.nan), st.floats(-1e300, 1e300, allow_nan=False)),
    )
)
def test_rows_without_a_score_rank_below_all_others_and_nothing_else_changes(scores):
    missing = np.isnan(scores)
    ranked = comparable(scores)
    np.testing.assert_array_equal(ranked[~missing], scores[~missing])
    assert len(set(ranked[missing].tolist())) <= 1
    if missing.any() and not missing.all():
        assert ranked[missing].max() < ranked[~missing].min()


@pytest.mark.parametrize("size", [1.0, 2.0**53, 1e300])
def test_scores_of_any_size_keep_a_missing_one_apart(size):
    # Subtracting 1 would tie from 2**53 on; sklearn refuses an infinite score.
    scores = np.array([np.nan, size, np.nextafter(size, np.inf)])
    assert roc_auc_score([False, True, True], comparable(scores)) == 1.0


def test_the_scores_given_are_not_changed():
    scores = np.array([1.0, np.nan])
    comparable(scores)
    assert np.isnan(scores[1])
