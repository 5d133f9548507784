"""Suites: data sets that are run together by one name."""

from __future__ import annotations

import pytest

from tests.helpers.packages import write_package
from tsadbench import UsageError
from tsadbench.datasets.loading import SUITES, Suite
from tsadbench.execution.plan import make_plans
from tsadbench.execution.request import requested
from tsadbench.execution.store import Store
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
    raise DataNotFoundError("gone is not here")


def lost(options):
    raise DataNotFoundError("lost is not here")


def _named(name, seed):
    data = make_data(seed)
    return data._replace(dataset=replace(data.dataset, name=name))
"""


@pytest.fixture(autouse=True)
def suites(tmp_path, monkeypatch, tiny_plugin):
    """A suite of two small data sets, and a suite of three of which two are missing."""
    points = [f"{name} = pair_plugin:{name}" for name in ("first", "second", "gone", "lost")]
    write_package(tmp_path / "plugin", "pair_plugin", "\n".join(["[tsadbench.datasets]", *points]), CODE)
    monkeypatch.syspath_prepend(tmp_path / "plugin")
    monkeypatch.setitem(SUITES, "pair", Suite("pair", 3, ("first", "second")))
    monkeypatch.setitem(SUITES, "torn", Suite("torn", 1, ("gone", "first", "lost")))


def test_what_the_suites_are():
    assert SUITES["plants"].datasets == ["skab", "tep", "pumploop", "cranfield", "gecco2018", "causrca"]
    assert SUITES["servers"].datasets == ["asd", "smd"]
    assert SUITES["all"].datasets == SUITES["plants"].datasets + SUITES["servers"].datasets
    assert set(SUITES["all"].datasets) <= {entry.name for entry in entries("datasets")}


def test_one_plan_runs_all_of_a_suite_and_every_record_keeps_its_version(tsadbench, tmp_path):
    common = ("-d", "distance", "--no-floors", "--out", tmp_path / "runs")
    done = tsadbench("run", "--suite", "pair", *common)
    assert done.code == 0, done.err
    before = {(one.dataset, one.manifest["suite"]): one.trial for one in Store.open(tmp_path / "runs").records()}
    assert set(before) == {("first", "pair 3"), ("second", "pair 3")}
    assert tsadbench("run", "--dataset", "first", *common).code == 0  # a suite is not part of a trial's identity
    assert {one.trial for one in Store.open(tmp_path / "runs").records()} == set(before.values())


def test_all_missing_data_sets_are_named_before_anything_starts(tsadbench, tmp_path):
    done = tsadbench("run", "--suite", "torn", "-d", "distance", "--out", tmp_path / "runs")
    assert (done.code, done.out) == (2, "")
    assert "gone is not here" in done.err
    assert "lost is not here" in done.err
    assert not (tmp_path / "runs").exists()


def test_a_configuration_file_may_name_a_suite_and_options_override_it(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('detectors = ["distance"]\nsuite = "pair"\n')
    assert [plan.asked_by["suite"] for plan in make_plans(requested(file, {"floors": False}))] == ["pair 3", "pair 3"]
    found = requested(file, {"datasets": ["second"]})
    assert (found.datasets, found.suite) == (["second"], None)
    file.write_text('detectors = ["distance"]\ndatasets = ["first"]\n')
    assert requested(file, {"suite": "pair"}).datasets == ["first", "second"]
    file.write_text('detectors = ["distance"]\nsuite = "piar"\n')
    with pytest.raises(UsageError, match=r"run\.toml, line 2: suite: .*piar"):
        requested(file, {})


@pytest.mark.parametrize("options", [("--suite", "plant"), ("--suite", "plants", "--dataset", "skab")])
def test_wrong_suites(tsadbench, options):
    done = tsadbench("run", *options, "-d", "distance")
    assert (done.code, done.out) == (2, "")
    assert "suite" in done.err
