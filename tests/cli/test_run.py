from __future__ import annotations

import json
import shutil

import pytest

from tests.helpers.packages import write_package
from tsadbench import registry
from tsadbench.execution import plan

pytestmark = pytest.mark.skab


@pytest.fixture
def skab(skab_directory, monkeypatch):
    monkeypatch.setenv("TSADBENCH_DATA", str(skab_directory))
    return skab_directory / "skab"


@pytest.fixture
def few_floors(monkeypatch):
    monkeypatch.setattr(plan, "floor_labels", lambda: ("all-positive", "max-z"))


def test_contributions_that_were_not_kept_can_be_asked_for_later(tsadbench, tmp_path):
    (tmp_path / "run.toml").write_text("contributions = false")
    command = ("run", "-d", "t2", "--dataset", "pumploop", "--no-floors", "--out", tmp_path / "runs")
    assert tsadbench(*command, "--config", tmp_path / "run.toml").code == 0
    assert "earlier run" in tsadbench(*command).err
    assert not list((tmp_path / "runs").glob("contributions/*.npz"))
    assert "earlier run" not in tsadbench(*command, "--rerun", "no-contributions").err
    assert len(list((tmp_path / "runs").glob("contributions/*.npz"))) == 1
    both = tsadbench(*command, "--config", tmp_path / "run.toml", "--rerun", "no-contributions")
    assert (both.code, "--rerun" in both.err) == (2, True)


@pytest.fixture
def defaults(monkeypatch, tmp_path):
    """Default detectors that cost nothing, one of which lacks its packages."""
    code = """
from tsadbench.base import extra
RUN = ("t2", "deep-one")
def __getattr__(name):
    with extra("deep-one", "deep"):
        import no_such_package
"""
    points = (
        "[tsadbench.detectors]\ndeep-one = cheap_defaults:Deep\n\n[tsadbench.test_defaults]\nrun = cheap_defaults:RUN\n"
    )
    write_package(tmp_path / "site", "cheap_defaults", points, code)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(registry, "_DEFAULTS", "tsadbench.test_defaults")


def test_without_a_detector_the_defaults_run_with_one_seed_and_what_lacks_its_packages_is_named(
    defaults, skab, few_floors, tsadbench, tmp_path
):
    done = tsadbench("run", "--out", tmp_path / "runs", "--format", "json")
    assert done.code == 0
    rows = json.loads(done.out)["rows"]
    assert {(row["dataset"], row["split"]) for row in rows} == {("skab", "overall")}
    assert {row["label"] for row in rows} == {"t2", "all-positive", "max-z"}
    assert [line for line in done.err.splitlines() if "deep-one" in line and "tsadbench[deep]" in line]


def test_without_a_data_set_pumploop_runs_if_skab_cannot_be_had(defaults, tsadbench, tmp_path, monkeypatch):
    monkeypatch.setenv("TSADBENCH_DATA", str(tmp_path))
    done = tsadbench("run", "--no-floors", "--out", tmp_path / "runs", "--format", "json")
    assert {row["dataset"] for row in json.loads(done.out)["rows"]} == {"pumploop"}
    assert [line for line in done.err.splitlines() if "pumploop" in line and "skab" in line]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["-d", "dprgn"], "dprgm"),
        (["-d", "t2", "--split", "valve3"], "valve3"),
        (["-d", "t2", "--set", "strict.q=0.5"], "q"),
        (["-d", "t2", "--seeds", "0"], "seeds"),
        (["-d", "t2", "--rerun", "bad"], "bad"),
        (["-d", "dprgm[prior=none.json]"], "none.json"),
        (["-d", "t2", "--data", "nowhere"], "nowhere"),
        (["-d", "t2", "--format", "xml"], "xml"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_code_2_and_nothing_is_written(skab, tsadbench, tmp_path, arguments, name):
    done = tsadbench("run", *arguments, "--out", tmp_path / "runs")
    assert (done.code, done.out) == (2, "")
    assert name in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "runs").exists()


def test_changed_files_are_refused_and_noted_where_they_are_allowed(skab, tsadbench, tmp_path):
    shutil.copytree(skab, tmp_path / "data" / "skab")
    file = tmp_path / "data" / "skab" / "valve1" / "0.csv"
    file.chmod(0o644)
    text = file.read_text()
    file.write_text(text.replace("0.0265", "0.0266", 1))
    command = ("run", "-d", "t2", "--no-floors", "--data", tmp_path / "data", "--out", tmp_path / "runs")
    refused = tsadbench(*command)
    assert refused.code == 2
    assert "valve1/0.csv" in refused.err
    (tmp_path / "run.toml").write_text("allow_changed_data = true")
    allowed = tsadbench(*command, "--config", tmp_path / "run.toml")
    assert allowed.code == 0
    assert "valve1/0.csv" in allowed.out
