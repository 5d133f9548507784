from __future__ import annotations

import csv
import io
import json
import os
import shutil

import pytest

from tsadbench.execution.plan import floor_labels
from tsadbench.execution.record import Record

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


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A run store: what one test has run there under the published protocol, the next one need not."""
    return tmp_path_factory.mktemp("published") / "runs"


def test_json_goes_to_standard_output_alone_and_everything_else_to_standard_error(skab, tsadbench, published):
    done = tsadbench("run", "-d", "t2", "--protocol", "published", "--out", published, "--format", "json")
    assert done.code == 0
    content = json.loads(done.out)
    assert content["schema"] == 1
    overall = [row for row in content["rows"] if row["split"] == "overall"]
    assert overall[0]["detector"] == "t2"
    assert {row["label"] for row in overall} == {"t2", *floor_labels()}
    assert (overall[0]["n_rows"], overall[0]["n_anomalous"]) == (37362, 13067)
    assert {row["split"]: row["n_rows"] for row in content["rows"]} == {
        "overall": 37362, "valve1": 18130, "valve2": 4312, "other": 14920,
    }  # fmt: skip
    assert "trials are kept in" in done.err


def test_the_strict_protocol_is_the_default_and_has_its_row_count(skab, tsadbench, tmp_path):
    done = tsadbench("run", "-d", "t2", "--split", "overall", "--no-floors", "--out", tmp_path, "--format", "json")
    (row,) = json.loads(done.out)["rows"]
    assert (row["protocol"], row["n_rows"], row["below_floor"]) == ("strict", 36381, None)


def test_the_table_shows_floors_marks_and_shares(skab, tsadbench, published):
    done = tsadbench("run", "-d", "t2", "--split", "overall", "--protocol", "published", "--out", published)
    assert done.code == 0
    assert "37,362 rows, 35.0% anomalous" in done.out
    assert "the paper's: " in done.out
    shown = (
        "t2",
        "sensor-range[mean=10]",
        "all-positive",
        "AUROC",
        "Flagged",
        "look-ahead",
        "coverage",
        "does not beat",
    )
    assert [name for name in shown if name not in done.out] == []
    # Of the floors, only the best in a metric is in sight.
    assert "of 12 floors the best in each metric" in done.out
    assert "nearest-neighbour" not in done.out
    every = tsadbench("leaderboard", published, "--split", "overall", "--all-floors")
    assert [name for name in floor_labels() if name not in every.out] == []


def test_a_floor_that_is_asked_for_is_in_sight_and_a_mean_of_no_rows_is_refused(tsadbench, tmp_path):
    command = (
        "run",
        "-d",
        "t2",
        "-d",
        "l1-z[mean=3]",
        "--dataset",
        "pumploop",
        "--split",
        "overall",
        "--out",
        tmp_path,
    )
    assert "l1-z[mean=3]" in tsadbench(*command).out
    names = ("max-z", "l1-z", "l2-z", "sensor-range", "t2")
    for name in names:
        done = tsadbench("run", "-d", f"{name}[mean=0]", "--dataset", "pumploop", "--out", tmp_path)
        assert done.code == 2
        assert "mean must be an integer of at least 1, found 0" in done.err
        assert len(done.err.strip().splitlines()) == 1


def test_a_stored_run_gives_the_same_leaderboard_again(skab, tsadbench, tmp_path):
    run = tsadbench("run", "-d", "t2", "-d", "t2-q", "--out", tmp_path / "runs", "--format", "csv")
    again = tsadbench("leaderboard", tmp_path / "runs", "--format", "csv")
    assert again.out == run.out
    written = tsadbench("leaderboard", tmp_path / "runs", "--write", tmp_path / "tables")
    assert written.code == 0
    table = list(csv.DictReader(io.StringIO((tmp_path / "tables/skab/strict/valve1.csv").read_text())))
    assert {row["detector"] for row in table} >= {"t2", "t2-q", "max-z"}


def test_the_same_run_again_does_only_what_is_missing_and_writes_the_same_tables(skab, tsadbench, tmp_path):
    options = ("--no-floors", "--out", tmp_path / "runs", "--write", tmp_path / "tables", "--format", "csv")
    first = tsadbench("run", "-d", "t2", *options)
    table = (tmp_path / "tables/skab/strict/overall.csv").read_text()
    again = tsadbench("run", "-d", "t2", *options)
    assert again.out == first.out  # the seconds of the earlier run too: nothing was done again
    assert "1 trial is kept" in first.err
    assert "earlier run" not in first.err
    assert "1 of them from an earlier run" in again.err
    assert (tmp_path / "tables/skab/strict/overall.csv").read_text() == table
    assert (tmp_path / "tables/skab/strict/records.jsonl").read_text().count("\n") == 1
    redone = tsadbench("run", "-d", "t2", "--rerun", "ok", *options)
    assert "earlier run" not in redone.err
    wrong = tsadbench("run", "-d", "t2", "--rerun", "bad", *options)
    assert wrong.code == 2


def test_contributions_that_were_not_kept_can_be_asked_for_later(tsadbench, tmp_path):
    command = ("run", "-d", "t2", "--dataset", "pumploop", "--no-floors", "--out", tmp_path / "runs")
    assert tsadbench(*command, "--no-contributions").code == 0
    assert "earlier run" in tsadbench(*command).err
    assert not list((tmp_path / "runs").glob("*/contributions.npz"))
    assert "earlier run" not in tsadbench(*command, "--rerun", "no-contributions").err
    assert len(list((tmp_path / "runs").glob("*/contributions.npz"))) == 1
    assert "earlier run" in tsadbench(*command, "--rerun", "no-contributions").err
    both = tsadbench(*command, "--no-contributions", "--rerun", "no-contributions")
    assert (both.code, "give one of them" in both.err) == (2, True)


def test_the_skab_protocol_shows_its_own_metrics_and_says_what_other_2_trains_on(skab, tsadbench, tmp_path):
    done = tsadbench(
        "run", "-d", "t2", "--no-floors", "--protocol", "skab", "--split", "overall", "--out", tmp_path / "runs",
        "--format", "markdown",
    )  # fmt: skip
    assert done.code == 0
    for text in ("| F1 |", "FAR", "MAR", "23,801 rows", "other/2 trains on anomalous rows: 296 of its first 400"):
        assert text in done.out.replace("| detector ", "|"), text


def test_parameters_reach_label_and_record(skab, tsadbench, tmp_path):
    done = tsadbench(
        "run", "-d", "t2[smoothing=5]", "--set", "strict.q=0.01", "--no-floors", "--out", tmp_path, "--format", "json"
    )  # fmt: skip
    row = json.loads(done.out)["rows"][0]
    assert (row["label"], row["protocol"]) == ("t2[smoothing=5]", "strict[q=0.01]")
    assert row["parameters"]["smoothing"] == 5
    (folder,) = (one for one in tmp_path.iterdir() if one.is_dir())
    assert Record.from_json((folder / "record.json").read_text(), "here").label == "t2[smoothing=5]"


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
    ("arguments", "message"),
    [
        (["-d", "dprgn"], "did you mean 'dprgm'"),
        (["-d", "t2", "--split", "valve3"], "did you mean 'valve2' or 'valve1'"),
        (["-d", "t2", "--protocol", "publish"], "did you mean 'published'"),
        (["-d", "t2", "--dataset", "skap"], "did you mean 'skab'"),
        (["-d", "t2[smoothin=2]"], "did you mean 'smoothing'"),
        (["-d", "t2[smoothing=two]"], "'smoothing' cannot be 'two'"),
        (["-d", "t2[smoothing=0]"], "smoothing must be"),
        (["-d", "t2", "--set", "strict.q=0.5"], "q"),
        (["-d", "t2", "--set", "nonsense"], "--set expects NAME.key=value"),
        (["-d", "t2", "--seeds", "0"], "seeds: expected a number greater than or equal to 1, found 0"),
        (["-d", "dprgm[device=cuda:99]"], "device"),
        (["-d", "dprgm[window=0]"], "window"),
        (["-d", "dprgm[prior=none.json]"], "cannot be read"),
        (["-d", "t2", "--data", "nowhere"], "nowhere"),
        (["-d", "t2", "--format", "xml"], "xml"),
        ([], "--detector"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_code_2_and_nothing_is_written(
    skab, tsadbench, tmp_path, arguments, message
):
    done = tsadbench("run", *arguments, "--out", tmp_path / "runs")
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    assert not (tmp_path / "runs").exists()


def test_a_prior_that_names_unknown_sensors_says_how_to_get_one(skab, tsadbench, tmp_path):
    (tmp_path / "p.json").write_text('[{"source": "Voltage", "target": "Torque"}]')
    done = tsadbench("run", "-d", f"dprgm[prior={tmp_path}/p.json]", "--out", tmp_path / "runs")
    assert done.code == 2
    assert "Torque" in done.err
    assert "docs/priors.md" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_out_that_may_not_be_written(skab, tsadbench, tmp_path):
    tmp_path.chmod(0o500)
    done = tsadbench("run", "-d", "t2", "--out", tmp_path / "runs")
    assert (done.code, "cannot be written" in done.err) == (2, True)


def test_an_out_below_a_file_cannot_be_written(skab, tsadbench, tmp_path):
    (tmp_path / "file").write_text("x")
    done = tsadbench("run", "-d", "t2", "--out", tmp_path / "file" / "runs")
    assert (done.code, "cannot be written" in done.err) == (2, True)


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
    allowed = tsadbench(*command, "--allow-changed-data")
    assert allowed.code == 0
    assert "valve1/0.csv" in allowed.out


def test_a_store_that_is_none(tsadbench, tmp_path):
    done = tsadbench("leaderboard", tmp_path)
    assert (done.code, "is not a run store" in done.err) == (2, True)


def test_rows_of_a_committed_table_count_as_done(tsadbench, tmp_path):
    arguments = ("run", "-d", "max-z", "--dataset", "pumploop", "--no-floors", "--write", tmp_path / "tables")
    assert "1 trial is kept in" in tsadbench(*arguments, "--out", tmp_path / "first").err
    again = tsadbench(*arguments, "--out", tmp_path / "second")
    assert again.code == 0
    assert f"0 trials are kept in {tmp_path / 'second'}; 1 in {tmp_path / 'tables'} counted as done" in again.err
