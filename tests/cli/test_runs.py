"""`tsadbench runs` and `tsadbench judge` on a store that runs have written."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.helpers.plans import make_plan
from tests.helpers.stored import stored
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store

PUMPLOOP = "pumploop"
DISTANCE, NOISY, EVERYTHING = (f"tests.helpers.tiny:{name}" for name in ("Distance", "Noisy", "Everything"))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A store with three trials on pumploop."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    detectors = [DISTANCE, EVERYTHING, NOISY]
    plan = make_plan(detectors, dataset=PUMPLOOP, floors=False, seeds=1, timeout=60)
    records = run_plan(plan, Store.create(folder), jobs=2)
    assert {record.status for record in records} == {"ok"}
    return folder


@pytest.fixture
def runs(made, tmp_path) -> Path:
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


def name_of(runs: Path, label: str) -> str:
    return next(record.trial for record in Store.open(runs).records() if record.label == label)


class TestRuns:
    def test_list(self, runs, tsadbench):
        found = tsadbench("runs", "list", runs)
        assert found.code == 0
        assert "3 trials" in found.err
        (line,) = [line for line in found.out.splitlines() if DISTANCE in line]
        assert line.split()[:7] == [name_of(runs, DISTANCE), "pumploop", "strict", DISTANCE, "0", "1", "ok"]
        listed = json.loads(tsadbench("runs", "list", runs, "--format", "json").out)["trials"]
        assert {one["label"] for one in listed} >= {DISTANCE, NOISY}
        (one,) = json.loads(tsadbench("runs", "list", runs, "--detector", DISTANCE, "--format", "json").out)["trials"]
        assert one["label"] == DISTANCE
        assert tsadbench("runs", "list", runs, "--status", "error").out == ""

    def test_show(self, runs, tsadbench):
        name = name_of(runs, DISTANCE)
        found = tsadbench("runs", "show", runs, name[:10])
        assert json.loads(found.out)["trial"] == name

    def test_remove(self, runs, tsadbench):
        assert tsadbench("runs", "remove", runs, name_of(runs, DISTANCE)).code == 0
        assert DISTANCE not in {record.label for record in Store.open(runs).records()}
        assert tsadbench("runs", "remove", runs, "--detector", NOISY).code == 0
        assert {record.label for record in Store.open(runs).records()} == {EVERYTHING}

    def test_wrong_usage(self, runs, tsadbench):
        for arguments, named in (
            (["show", runs, "nonsense"], "nonsense"),
            (["show", runs, ""], "''"),
            (["remove", runs], "--detector"),
            (["remove", runs, ""], "''"),
            (["list", runs.parent], str(runs.parent)),
            (["list", runs, "--status", "eror"], "eror"),
        ):
            found = tsadbench("runs", *arguments)
            assert found.code == 2
            assert named in found.err

    @pytest.mark.parametrize(
        "arguments",
        [
            ("verify", "--dataset", "nowhere"),
            ("judge", "--dataset", "nowhere"),
            ("judge", "--split", "overall"),
            ("judge", "--format", "json"),
            ("leaderboard", "--columns", "auroc", "--format", "csv"),
            ("leaderboard", "--write", "tables", "--diagnostics", "vus"),
        ],
    )
    def test_options_that_would_be_ignored_are_refused(self, runs, tsadbench, arguments):
        command, option, *_ = arguments
        found = tsadbench(command, runs, *arguments[1:])
        assert (found.code, found.out) == (2, "")
        assert option in found.err


class TestJudge:
    def test_results_of_todays_rules_are_written(self, runs, tsadbench):
        found = tsadbench("judge", runs)
        assert (found.code, bool(re.search(r"^3 \D*3 \D*0 ", found.out, re.M))) == (0, True)
        name = name_of(runs, DISTANCE)
        file = stored(runs, name).record
        before = json.loads(file.read_text())
        edited = json.loads(file.read_text())
        edited["splits"]["leak"]["metrics"].update(mcc=0.5)
        file.write_text(json.dumps(edited))
        assert tsadbench("verify", runs).code == 1
        found = tsadbench("judge", runs)
        assert found.code == 0
        assert f"changed: {name}" in found.out
        assert re.search(r"^3 \D*2 \D*1 ", found.out, re.M)
        assert json.loads(file.read_text())["splits"] == before["splits"]
        assert tsadbench("verify", runs).code == 0

    def test_rules_that_have_changed_since_are_applied_by_verify_and_leaderboard(self, runs, tsadbench):
        file = stored(runs, name_of(runs, DISTANCE)).record
        recorded = json.loads(file.read_text())
        for command in ("verify", "leaderboard"):
            old = {**recorded, "judging": "of other rules"}
            old["splits"] = {**recorded["splits"], "leak": {**recorded["splits"]["leak"], "coverage": 0.5}}
            file.write_text(json.dumps(old))
            found = tsadbench(command, runs)
            assert found.code == 0, found.out
            assert json.loads(file.read_text())["splits"] == recorded["splits"]

    def test_what_cannot_be_judged_is_reported(self, runs, tsadbench):
        for file in runs.glob("records/*.json"):
            text = file.read_text().replace('"dataset": "pumploop"', '"dataset": "elsewhere"')
            file.write_text(text.replace('"judging": "', '"judging": "0'))
        found = tsadbench("judge", runs)
        assert found.code == 1
        assert "3 cannot be judged" in found.out
        shown = tsadbench("leaderboard", runs)
        assert (shown.code, "3 of 3 trials" in shown.err) == (0, True)
