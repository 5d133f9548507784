"""The diagnostics of a trial with hand-written flags (`conftest`), counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.flags import FLAGGED, make_dataset, rows
from tsadbench.analysis.diagnostics import of_result, of_splits
from tsadbench.analysis.diagnostics.measures import affiliation, vus_pr, zones_of
from tsadbench.leaderboard.table import DIAGNOSTICS as GROUPS
from tsadbench.results.trial_result import TrialResult


@pytest.fixture
def result(add, store) -> TrialResult:
    data = make_dataset()
    return TrialResult(add(data), store, data)


def test_operational_numbers_are_pooled_over_recordings(result):
    found = of_result(result, "overall")
    assert found["n_events"] == 3
    assert found["found"] == pytest.approx(2 / 3)
    # The onsets of a's event and of b's second one were seen; when b's began, row 7 was flagged.
    assert found["already_on"] == 1 / 2
    # a's event begins at row 5, row 6 is flagged and known two rows later.
    assert (found["delay_rows"], found["delay_seconds"]) == (3, 180)
    # a: rows 3, 8 and 11; b: rows 5 to 7. Normal: 7 + 4 + 6 rows of a minute; b's gap of 44 minutes is no time.
    assert found["false_alarms_per_hour"] == pytest.approx(4 / (17 / 60))
    assert found["false_alarms_per_1000_rows"] == pytest.approx(4000 / 17)
    assert found["false_alarm_share"] == pytest.approx(6 / 17)
    assert not {"vus_pr", "affiliation_f1"} & set(found)


def test_each_split_has_its_own(result):
    found = of_splits(result, ["a", "b", "c"])
    assert [one["n_events"] for one in found.values()] == [1, 2, 0]
    assert [one["found"] for one in found.values()] == [1.0, 0.5, None]
    assert [one["already_on"] for one in found.values()] == [0.0, 1.0, None]
    assert [one["delay_rows"] for one in found.values()] == [3, None, None]
    assert [one["delay_seconds"] for one in found.values()] == [180, None, None]
    assert [one["false_alarms_per_hour"] for one in found.values()] == pytest.approx([3 / 7 * 60, 1 / 4 * 60, 0])
    assert [one["false_alarm_share"] for one in found.values()] == pytest.approx([3 / 7, 3 / 4, 0])


def test_an_evaluated_row_without_a_score_leaves_its_splits_empty(add, store):
    data = make_dataset()
    complete = of_splits(TrialResult(add(data), store, data), ["overall", "a", "b"], GROUPS)
    warm_up = of_splits(
        TrialResult(add(data, {**FLAGGED, "b": "??" + FLAGGED["b"][2:]}), store, data), ["overall", "a", "b"], GROUPS
    )
    assert warm_up == complete  # rows 0 and 1 are not evaluated
    found = of_splits(
        TrialResult(add(data, {**FLAGGED, "b": "???" + FLAGGED["b"][3:]}), store, data), ["overall", "a", "b"], GROUPS
    )
    assert found["a"] == complete["a"]
    for split, n_events in {"overall": 3, "b": 2}.items():
        assert found[split]["n_events"] == n_events
        defined = {name for name, value in found[split].items() if value is not None}
        assert defined == {"n_events", "n_causes"}


def test_vus_is_the_mean_over_recordings_and_affiliation_is_over_events(result):
    found = of_result(result, "overall", GROUPS)
    parts = {name: result.recordings[name] for name in "ab"}
    counted = {name: (one.scores[2:], one.anomalous[2:]) for name, one in parts.items()}
    each = [vus_pr(scores, anomalous) for scores, anomalous in counted.values()]
    assert found["vus_pr"] == pytest.approx(np.mean(each))
    # a has one event, b two; c has none and does not count.
    of_a, of_b = (affiliation(zones_of(rows(FLAGGED[name])[2:], anomalous)) for name, (_, anomalous) in counted.items())
    assert found["affiliation_precision"] == pytest.approx((of_a[0] + 2 * of_b[0]) / 3)
    assert found["affiliation_recall"] == pytest.approx((of_a[1] + 2 * of_b[1]) / 3)
    both = found["affiliation_precision"] + found["affiliation_recall"]
    assert found["affiliation_f1"] == pytest.approx(
        2 * found["affiliation_precision"] * found["affiliation_recall"] / both
    )
