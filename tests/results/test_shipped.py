"""Rows that ship with the package: found, refused where the data differ, shown with a new detector's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tsadbench
from tests.helpers import tiny
from tests.helpers.data import make_data
from tests.helpers.packages import write_package
from tests.helpers.plans import make_plan
from tsadbench import Leaderboard, UsageError
from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.execution.record import committed_records
from tsadbench.execution.runner import run_plan
from tsadbench.results.shipped import require_shipped
from tsadbench.utils.files import LEADERBOARDS

pytestmark = pytest.mark.usefixtures("tiny_plugin")
FLOORS = ("all-positive", "max-z")


@pytest.fixture(scope="module")
def leaderboard(tmp_path_factory) -> Path:
    """The folder of a leaderboard of the small data, with floors; the plugin is installed while it is made."""
    folder = tmp_path_factory.mktemp("shipped")
    with pytest.MonkeyPatch.context() as patch:
        write_package(folder / "plugin", "tiny_plugin", tiny.ENTRY_POINTS, "")
        patch.syspath_prepend(folder / "plugin")
        records = run_plan(make_plan(["distance", *FLOORS], dataset=make_data(), floors=False, seeds=2), None)
    Leaderboard.from_records(records).write(folder / "tables")
    return folder / "tables"


@pytest.fixture
def shipped(leaderboard, monkeypatch) -> Path:
    """Let that leaderboard ship with the package."""
    for module in ("results.shipped", "leaderboard.board"):
        monkeypatch.setattr(f"tsadbench.{module}.LEADERBOARDS", leaderboard)
    return leaderboard


def test_a_new_detector_is_shown_among_stored_rows(small_data, shipped):
    board = tsadbench.run("noisy", small_data, against="strict")
    rows = next(iter(board.frames().values())).set_index("detector")
    assert {"distance", *FLOORS} == {*rows.index[rows["stored"]]} == {*rows.index} - {"noisy"}
    assert rows["below_floor"]["noisy"] is not None


def test_the_detector_itself_is_run_again(small_data, shipped):
    frame = tsadbench.run("distance", small_data, against="strict").frame
    assert frame.loc[frame["detector"] == "distance", "stored"].tolist() == [False] * frame["split"].nunique()


def test_rows_of_other_data_are_refused(small_data, shipped):
    given = small_data.dataset
    other = LabelledDataset(Dataset(given.name, given.train[:1], given.test, given.splits), small_data.labels)
    with pytest.raises(UsageError, match="small"):
        require_shipped(other, "strict")


def test_a_protocol_without_a_leaderboard_is_refused_and_those_that_ship_are_named(small_data, shipped):
    with pytest.raises(UsageError, match=r"strikt.*\bstrict\b"):
        require_shipped(small_data, "strikt")


@pytest.mark.parametrize("protocol", ["published", "strict", "skab"])
def test_skabs_leaderboards_ship(protocol):
    # Names without parameters: under skab, the slowest networks are limited to fewer steps.
    detectors = {record.detector for record in committed_records(LEADERBOARDS, "skab", protocol)}
    assert {"dprgm", "gdn", "mtad-gat", "grelen", "mscred", "mset", "max-z", "random"} <= detectors


@pytest.mark.skab
def test_the_command_line_shows_stored_rows(skab_directory, monkeypatch, tsadbench, tmp_path):
    monkeypatch.setenv("TSADBENCH_DATA", str(skab_directory))
    done = tsadbench(
        "run", "-d", "distance[power=3.0]", "--against", "published", "--split", "overall", "--out", tmp_path / "runs",
        "--format", "json",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = {row["label"]: row for row in json.loads(done.out)["rows"]}
    assert rows["distance[power=3.0]"]["stored"] is False
    assert rows["dprgm"]["stored"] is True
    assert rows["distance[power=3.0]"]["protocol"] == "published"
