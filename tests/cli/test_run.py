from __future__ import annotations

import csv
import io
import json
import re
import shutil

import pytest

from tests.helpers.packages import write_package
from tsadbench import registry
from tsadbench.execution import plan

pytestmark = pytest.mark.skab

BROKEN = """
import numpy as np
from tsadbench import Detector

class Broken(Detector):
    '''Returns too few scores.'''
    def _fit(self, recordings): pass
    def _score(self, recording): return np.zeros(3)
"""


@pytest.fixture
def skab(skab_directory, monkeypatch):
    monkeypatch.setenv("TSADBENCH_DATA", str(skab_directory))
    return skab_directory / "skab"


@pytest.fixture
def few_floors(monkeypatch):
    monkeypatch.setattr(plan, "floor_labels", lambda: ("all-positive", "max-z"))


@pytest.mark.usefixtures("few_floors")
def test_json_goes_to_standard_output_alone_and_everything_else_to_standard_error(skab, tsadbench, tmp_path):
    done = tsadbench("run", "-d", "t2", "--protocol", "published", "--out", tmp_path / "runs", "--format", "json")
    assert done.code == 0
    content = json.loads(done.out)
    assert content["schema"] == 2
    overall = [row for row in content["rows"] if row["split"] == "overall"]
    assert overall[0]["metrics"]["auprc"]["mean"] == max(row["metrics"]["auprc"]["mean"] for row in overall)
    assert {row["label"] for row in overall} == {"t2", "all-positive", "max-z"}
    assert (overall[0]["n_rows"], overall[0]["n_anomalous"]) == (37362, 13067)
    assert {row["split"]: row["n_rows"] for row in content["rows"]} == {
        "overall": 37362, "valve1": 18130, "valve2": 4312, "other": 14920,
    }  # fmt: skip
    assert "trials are kept in" in done.err


def test_a_stored_run_gives_the_same_leaderboard_again(skab, few_floors, tsadbench, tmp_path):
    run = tsadbench("run", "-d", "t2", "-d", "t2-q", "--out", tmp_path / "runs", "--format", "csv")
    again = tsadbench("leaderboard", tmp_path / "runs", "--format", "csv")
    assert again.out == run.out
    written = tsadbench("leaderboard", tmp_path / "runs", "--write", tmp_path / "tables")
    assert written.code == 0
    table = list(csv.DictReader(io.StringIO((tmp_path / "tables/skab/strict/valve1.csv").read_text())))
    assert {row["detector"] for row in table} >= {"t2", "t2-q", "max-z"}


def test_the_same_run_again_does_only_what_is_missing(skab, tsadbench, tmp_path):
    options = ("--no-floors", "--out", tmp_path / "runs", "--format", "csv")
    first = tsadbench("run", "-d", "t2", *options)
    again = tsadbench("run", "-d", "t2", *options)
    assert again.out == first.out  # the seconds of the earlier run too: nothing was done again
    out = re.escape(str(tmp_path / "runs"))
    assert re.search(rf"^1 .* {out}$", first.err, re.M)
    assert re.search(rf"^1 .* {out}, 1 ", again.err, re.M)
    redone = tsadbench("run", "-d", "t2", "--rerun", "ok", *options)
    assert re.search(rf"^1 .* {out}$", redone.err, re.M)
    wrong = tsadbench("run", "-d", "t2", "--rerun", "bad", *options)
    assert wrong.code == 2


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


def test_a_detector_that_breaks_its_contract_is_a_row_with_a_reason_and_the_others_go_on(skab, tsadbench, tmp_path):
    (tmp_path / "mine.py").write_text(BROKEN)
    done = tsadbench("run", "-d", f"{tmp_path}/mine.py:Broken", "-d", "t2", "--no-floors", "--out", tmp_path / "runs",
                     "--split", "overall", "--format", "json")  # fmt: skip
    assert done.code == 1
    good, bad = json.loads(done.out)["rows"]
    assert (good["label"], good["status"]) == ("t2", "ok")
    assert bad["status"] == "invalid"
    assert "expected shape" in bad["failed"][0]["reason"]
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["-d", "dprgn"], "dprgm"),
        (["-d", "t2", "--split", "valve3"], "valve3"),
        (["-d", "t2", "--set", "strict.q=0.5"], "q"),
        (["-d", "t2", "--seeds", "0"], "seeds"),
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
