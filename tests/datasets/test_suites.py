"""Suites: data sets that are run together by one name."""

from __future__ import annotations

import pytest

import tsadbench as package
from tests.helpers.packages import write_package
from tsadbench import UsageError
from tsadbench.datasets.suites import SUITES, Suite
from tsadbench.execution.config import requested
from tsadbench.execution.plan import make_plans
from tsadbench.execution.request import RunRequest
from tsadbench.execution.run_store import Store
from tsadbench.registry import entries

CODE = """
from dataclasses import replace

from tests.helpers.data import make_data
from tsadbench.errors import DataNotFoundError


def first(options):
    return _named("first", 1)


def second(options):
    return _named("second", 2)


def gone(options):
    raise DataNotFoundError(f"gone: not in {options.directory}; run  tsadbench data fetch gone")


def lost(options):
    raise DataNotFoundError(f"lost: not in {options.directory}; run  tsadbench data fetch lost")


def _named(name, seed):
    data = make_data(seed)
    return data._replace(dataset=replace(data.dataset, name=name))
"""


@pytest.fixture
def suites(tmp_path, monkeypatch):
    """A suite of two small data sets, and one of which two of three are missing."""
    points = [f"{name} = pair_plugin:{name}" for name in ("first", "second", "gone", "lost")]
    write_package(tmp_path / "plugin", "pair_plugin", "\n".join(["[tsadbench.datasets]", *points]), CODE)
    monkeypatch.syspath_prepend(tmp_path / "plugin")
    monkeypatch.setitem(SUITES, "pair", Suite("pair", 3, ("first", "second")))
    monkeypatch.setitem(SUITES, "torn", Suite("torn", 1, ("gone", "first", "lost")))


def test_what_the_suites_are():
    plants, servers, both = (SUITES[name] for name in ("plants", "servers", "all"))
    assert plants.datasets == ("skab", "tep", "pumploop", "cranfield", "gecco2018", "causrca")
    assert servers.datasets == ("asd", "smd")
    assert both.datasets == plants.datasets + servers.datasets
    assert [str(suite) for suite in SUITES.values()] == ["plants 1", "servers 1", "all 1"]


def test_their_data_sets_are_registered_and_say_where_their_files_come_from(tsadbench, tmp_path):
    assert set(SUITES["all"].datasets) <= {entry.name for entry in entries("datasets")}
    done = tsadbench("run", "--suite", "all", "-d", "t2", "--data", tmp_path, "--out", tmp_path / "runs")
    assert (done.code, done.out) == (2, "")
    missing = [name for name in SUITES["all"].datasets if name != "pumploop"]  # it is simulated
    assert "the files of 7 data sets are missing:" in done.err
    for name in missing:
        assert f"tsadbench data fetch {name}" in done.err


@pytest.mark.usefixtures("suites")
def test_one_plan_runs_all_of_a_suite_and_every_record_keeps_its_version(tsadbench, tmp_path):
    done = tsadbench(
        "run", "--suite", "pair", "-d", "t2", "--no-floors", "--out", tmp_path / "runs", "--format", "json"
    )
    assert done.code == 0, done.err
    records = Store.open(tmp_path / "runs").records()
    assert {(record.dataset, record.manifest["suite"]) for record in records} == {
        ("first", "pair 3"),
        ("second", "pair 3"),
    }
    # A suite is no part of a trial's identity.
    again = tsadbench("run", "--dataset", "first", "-d", "t2", "--no-floors", "--out", tmp_path / "runs")
    assert "1 trial is kept" in again.err
    assert "1 of them from an earlier run" in again.err


@pytest.mark.usefixtures("suites")
def test_python_runs_a_suite_into_one_leaderboard(tmp_path):
    board = package.run("t2", suite="pair", floors=False, splits=["overall"], out=tmp_path / "runs")
    assert [(row.dataset, row.label) for row in board.rows] == [("first", "t2"), ("second", "t2")]


@pytest.mark.usefixtures("suites")
def test_all_missing_data_sets_are_named_before_anything_starts(tsadbench, tmp_path):
    done = tsadbench("run", "--suite", "torn", "-d", "t2", "--data", tmp_path, "--out", tmp_path / "runs")
    assert (done.code, done.out) == (2, "")
    assert "the files of 2 data sets are missing:" in done.err
    assert f"\n  gone: not in {tmp_path}; run  tsadbench data fetch gone\n" in done.err
    assert f"\n  lost: not in {tmp_path}; run  tsadbench data fetch lost\n" in done.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("suites")
def test_a_configuration_file_may_name_a_suite_and_options_override_it(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('detectors = ["t2"]\nsuite = "pair"\n')
    assert requested(file, {}).datasets == ["first", "second"]
    assert [plan.suite for plan in make_plans(requested(file, {"floors": False}))] == ["pair 3", "pair 3"]
    found = requested(file, {"datasets": ["second"]})
    assert (found.datasets, found.suite) == (["second"], None)
    file.write_text('detectors = ["t2"]\ndatasets = ["first"]\n')
    assert requested(file, {"suite": "pair"}).datasets == ["first", "second"]
    file.write_text('detectors = ["t2"]\ndatasets = ["first"]\nsuite = "piar"\n')
    with pytest.raises(UsageError) as caught:
        requested(file, {})
    message = str(caught.value)
    assert "run.toml, line 3: suite: there is no suite 'piar'; did you mean 'pair'?" in message
    assert "run.toml, line 3: suite: a suite says which data sets are run" in message


def test_wrong_suites_are_one_line(tsadbench):
    unknown = tsadbench("run", "--suite", "plant", "-d", "t2")
    assert (unknown.code, unknown.err) == (2, "tsadbench: there is no suite 'plant'; did you mean 'plants'?\n")
    both = tsadbench("run", "--suite", "plants", "--dataset", "skab", "-d", "t2")
    assert both.code == 2
    assert "give either --suite or --dataset" in both.err
    with pytest.raises(UsageError, match="suite: expected a string, found 3"):
        RunRequest(suite=3)


def test_list_shows_suites_with_version_and_data_sets(tsadbench):
    out = tsadbench("list").out
    assert "suites:" in out
    assert "version 1: asd, smd\n" in out
