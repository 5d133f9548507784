from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score

from tsadbench.base.scores import flagged_rows, worst_case

SCORES = hnp.arrays(
    np.float64, st.integers(0, 20), elements=st.one_of(st.just(np.nan), st.floats(-1e300, 1e300, allow_nan=False))
)


@given(SCORES, st.data())
def test_missing_scores_rank_worst_for_their_label_and_nothing_else_changes(scores, data):
    anomalous = data.draw(hnp.arrays(np.bool_, len(scores)))
    missing = np.isnan(scores)
    worst = worst_case(scores, anomalous)
    np.testing.assert_array_equal(worst[~missing], scores[~missing])
    assert np.isfinite(worst).all()
    lowest, highest = worst[missing & anomalous], worst[missing & ~anomalous]
    assert len(set(lowest.tolist())) <= 1
    assert len(set(highest.tolist())) <= 1
    assert (lowest[:, np.newaxis] < worst[~(missing & anomalous)]).all()
    assert (highest[:, np.newaxis] > worst[~(missing & ~anomalous)]).all()


@given(SCORES, st.data())
def test_missing_scores_are_misses_and_false_alarms_at_every_threshold(scores, data):
    anomalous = data.draw(hnp.arrays(np.bool_, len(scores)))
    threshold = data.draw(st.floats(allow_nan=False))
    for flagged, score, is_anomalous in zip(flagged_rows(scores, anomalous, threshold), scores, anomalous, strict=True):
        assert flagged == (not is_anomalous if np.isnan(score) else score > threshold)


@pytest.mark.parametrize("size", [1.0, 2.0**53, 1e300])
def test_a_missing_score_never_ties_with_scores_of_any_size(size):
    # Subtracting 1 would tie from 2**53 on; sklearn refuses an infinite score.
    scores = np.array([size, np.nan, np.nextafter(size, np.inf)])
    assert roc_auc_score([False, True, True], worst_case(scores, np.array([False, True, True]))) == 0.5
    assert roc_auc_score([True, False, True], worst_case(scores, np.array([True, False, True]))) == 0.0
