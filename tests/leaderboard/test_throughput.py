"""Seconds of a fit, rows per second and memory in every table: against numbers worked out by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.records import record
from tsadbench import Leaderboard
from tsadbench.base.protocol import Metric
from tsadbench.leaderboard.cells import grids, legend
from tsadbench.leaderboard.throughput import compact, front_of, pareto_front


def row_of(*records):
    (row,) = Leaderboard.from_records(records).rows
    return row


def cells_of(row):
    (grid,) = grids([row])
    (cells,) = (cells for block in grid.blocks for cells in block)
    return {name: cell.text for name, cell in zip(grid.header, cells, strict=True)}


SEEDS = (
    replace(record("x", 0), rows_scored=3_000_000, score_seconds=2.0, fit_seconds=40.0, peak_memory_mib=500.0),
    replace(record("x", 1), rows_scored=3_000_000, score_seconds=6.0, fit_seconds=60.0, peak_memory_mib=1500.5),
)


def test_rows_per_second_is_the_mean_over_seeds():
    row = row_of(*SEEDS)
    assert row.rows_per_second == (1_500_000 + 500_000) / 2
    assert row.to_json()["throughput"] == {
        "fit_seconds": 50.0, "score_seconds": 4.0, "rows_per_second": 1e6, "peak_memory_mib": 1500.5, "threads": [1],
    }  # fmt: skip
    assert row.to_json()["seconds"] == {"fit": 50.0, "score": 4.0}


def test_another_number_of_threads_is_said_and_not_hidden():
    row = row_of(*(replace(one, threads=4) for one in SEEDS))
    assert cells_of(row)["Rows/s"] == "1M (4 threads)"
    assert row.to_json()["throughput"]["threads"] == [4]
    assert "one thread" not in legend([row])


@pytest.mark.parametrize(("n_rows", "seconds"), [(0, 1.0), (100, 0.0), (100, None), (None, 1.0)])
def test_without_rows_or_seconds_there_is_no_rate(n_rows, seconds):
    assert replace(record("x"), rows_scored=n_rows, score_seconds=seconds).rows_per_second is None


def test_a_failed_row_has_no_throughput_in_tables():
    shown = cells_of(row_of(SEEDS[0], record("x", 1, status="timeout")))
    assert (shown["Fit, s"], shown["Rows/s"], shown["MiB"]) == ("-", "-", "-")
    assert shown["seeds"] == "timeout in 1 of 2"


@settings(deadline=None)
@given(st.floats(1e-3, 1e13))
def test_a_short_number_is_within_five_percent_of_the_number(value):
    text = compact(value)
    size = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1.0)
    assert float(text.rstrip("kMG")) * size == pytest.approx(value, rel=0.0501)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=2), st.tuples(*[st.integers(0, 4).map(float)] * 2), max_size=8))
def test_the_front_is_what_no_other_point_beats(points):
    def beats(one, other):
        return one != other and all(a >= b for a, b in zip(one, other, strict=True))

    front = pareto_front(points)
    assert set(front) == {
        name for name, point in points.items() if not any(beats(other, point) for other in points.values())
    }
    firsts = [points[name][0] for name in front]
    assert all(a >= b for a, b in itertools.pairwise(firsts))


def test_rows_that_are_not_ranked_are_on_no_front():
    plain, leaky, silent = (record(label, auprc=auprc) for label, auprc in (("a", 0.5), ("b", 0.9), ("c", 0.8)))
    silent = replace(silent, splits={name: replace(one, coverage=0.9) for name, one in silent.splits.items()})
    board = Leaderboard.from_records([plain, replace(leaky, leaky="test rows"), silent])
    assert front_of(board.rows, Metric("auprc", "AUPRC"), "fit_seconds") == ["a"]
    whole = Leaderboard.from_records([plain, leaky])
    assert front_of(whole.rows, Metric("auprc", "AUPRC"), "fit_seconds") == ["b"]
