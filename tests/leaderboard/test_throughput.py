"""Seconds of a fit, rows per second and memory in every table: against numbers worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.helpers.records import record
from tsadbench import Leaderboard

SEEDS = (
    replace(record("x", 0), rows_scored=3_000_000, score_seconds=2.0, fit_seconds=40.0, peak_memory_mib=500.0),
    replace(record("x", 1), rows_scored=3_000_000, score_seconds=6.0, fit_seconds=60.0, peak_memory_mib=1500.5),
)


def test_rows_per_second_is_the_mean_over_seeds():
    (row,) = json.loads(Leaderboard.from_records(SEEDS).to_json())["rows"]
    assert row["rows_per_second"] == (1_500_000 + 500_000) / 2
    assert row["seconds"] == {"fit": 50.0, "score": 4.0}
    assert (row["peak_memory_mib"], row["threads"]) == (1500.5, [1])


@pytest.mark.parametrize(("n_rows", "seconds"), [(0, 1.0), (100, 0.0), (100, None), (None, 1.0)])
def test_without_rows_or_seconds_there_is_no_rate(n_rows, seconds):
    assert replace(record("x"), rows_scored=n_rows, score_seconds=seconds).rows_per_second is None


def test_a_failed_row_has_no_throughput_in_tables():
    costs = {"fit, s", "rows/s", "MiB"}
    (sound,) = Leaderboard.from_records(SEEDS).shown(wide=True)
    assert costs <= {*sound.header}
    (table,) = Leaderboard.from_records([SEEDS[0], record("x", 1, status="timeout")]).shown(wide=True)
    assert not costs & {*table.header}
