"""Diagnostics as columns of a leaderboard."""

from __future__ import annotations

import math
import statistics

import pandas as pd
import pytest

from tests.helpers.flags import ANOMALOUS, make_dataset
from tsadbench import Leaderboard
from tsadbench.analysis.diagnostics import of_result, with_diagnostics
from tsadbench.leaderboard.table import DIAGNOSTICS
from tsadbench.results.trial_result import TrialResult

ROOT_CAUSE = DIAGNOSTICS["root-cause"]


@pytest.fixture
def data():
    return make_dataset()


@pytest.fixture
def board(add, store, data):
    """Two seeds of one detector and a failed one, with the diagnostics of all groups."""
    records = [add(data, seed=0), add(data, ANOMALOUS, seed=1), add(data, label="broken", status="error")]
    return with_diagnostics(Leaderboard.from_records(records), store, lambda _: data, DIAGNOSTICS)


def test_they_are_means_and_deviations_over_seeds(board, store, data):
    row = next(row for _, row in board.frame.iterrows() if row["split"] == "a")
    each = [of_result(TrialResult(record, store, data), "a", DIAGNOSTICS) for record in row["records"]]
    for name in (one for group in DIAGNOSTICS.values() for one in group):
        values = [one[name] for one in each]
        if name in ROOT_CAUSE:  # the events' sensors are not known
            assert values == [None, None]
            assert math.isnan(row[f"diagnostic_{name}_mean"])
            continue
        assert row[f"diagnostic_{name}_mean"] == pytest.approx(statistics.fmean(values))
        assert row[f"diagnostic_{name}_std"] == pytest.approx(statistics.stdev(values))
    assert row["diagnostic_delay_rows_mean"] == (3 + 2) / 2
    assert row["diagnostic_false_alarms_per_hour_mean"] == pytest.approx((3 / 7 * 60 + 0) / 2)


def test_metrics_and_order_do_not_change_and_failures_have_no_diagnostics(board):
    plain = Leaderboard.from_records(board.records)
    shared = ["split", "detector", *(name for name in plain.frame if name.endswith(("_mean", "_std")))]
    pd.testing.assert_frame_equal(board.frame[shared], plain.frame[shared])
    of_failed = board.frame.loc[~board.frame["ok"], [name for name in board.frame if name.startswith("diagnostic_")]]
    assert of_failed.size
    assert of_failed.isna().all(axis=None)
