from __future__ import annotations

import numpy as np
import pytest

import tsadbench
from tsadbench.execution.plan import floor_labels
from tsadbench.execution.run_store import Store

pytestmark = pytest.mark.usefixtures("tiny_plugin")


def test_run_gives_a_leaderboard_with_the_floors_and_keeps_the_trials_where_told(small_data, tmp_path):
    board = tsadbench.run(["distance", "noisy"], small_data, seeds=2, splits=["overall"], out=tmp_path / "runs")
    frame = board.to_frame()
    assert set(frame["detector"]) == {"distance", "noisy", *floor_labels()}
    assert frame.set_index("detector").loc["distance", "auroc_mean"] > 0.9
    assert len(Store.open(tmp_path / "runs").records()) == 2 + 1 + len(floor_labels()) + 1
    assert "<table>" in board._repr_html_()


def test_one_name_needs_no_list(small_data):
    assert {row.label for row in tsadbench.run("distance", small_data, floors=False).rows} == {"distance"}


def test_wrong_names_raise_before_anything_runs(small_data, tmp_path):
    with pytest.raises(tsadbench.UsageError, match="did you mean 'distance'"):
        tsadbench.run("distanc", small_data, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_no_detector_runs_the_floors_alone_and_numpys_integers_are_integers(small_data):
    board = tsadbench.run([], small_data, seeds=np.int64(1), splits=["overall"])
    assert {row.label for row in board.rows} == set(floor_labels())
