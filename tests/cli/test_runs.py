"""`tsadbench runs` and `tsadbench verify` on a store that runs have written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.plans import make_plan
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan

PUMPLOOP = "pumploop"
DISTANCE, NOISY, EVERYTHING = (f"tests.helpers.tiny:{name}" for name in ("Distance", "Noisy", "Everything"))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A store with four trials on pumploop, one of which failed."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    detectors = [DISTANCE, EVERYTHING, NOISY, "tests.helpers.cheats:Inverted"]
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
        assert len(found.out.splitlines()) == 4
        assert "4 trials" in found.err
        (line,) = tsadbench("runs", "list", runs, "--detector", DISTANCE).out.splitlines()
        assert line.split()[:7] == [name_of(runs, DISTANCE), "pumploop", "strict", DISTANCE, "0", "1", "ok"]
        lines = tsadbench("runs", "list", runs, "--json").out.splitlines()
        assert {json.loads(line)["label"] for line in lines} >= {DISTANCE, NOISY}
        assert tsadbench("runs", "list", runs, "--status", "error").out == ""

    def test_show(self, runs, tsadbench):
        name = name_of(runs, DISTANCE)
        found = tsadbench("runs", "show", runs, name[:10])
        assert json.loads(found.out)["trial"] == name

    def test_rm(self, runs, tsadbench):
        assert tsadbench("runs", "rm", runs, name_of(runs, DISTANCE)).code == 0
        assert DISTANCE not in {record.label for record in Store.open(runs).records()}
        assert tsadbench("runs", "rm", runs, "--detector", NOISY).code == 0
        (runs / name_of(runs, EVERYTHING) / "record.json").write_text("{")
        listed = tsadbench("runs", "list", runs)
        assert len(listed.out.splitlines()) == 1
        assert "broken: " in listed.err
        assert tsadbench("runs", "rm", runs, "--broken").code == 0
        assert len(Store.open(runs).records()) == 1

    @pytest.mark.parametrize("ending", [".zip", ".tar", ".tar.gz"])
    def test_what_is_exported_is_a_store_again(self, runs, tmp_path, tsadbench, ending):
        archive = tmp_path / f"for-you{ending}"
        assert tsadbench("runs", "export", runs, archive, "--detector", DISTANCE).code == 0
        shutil.unpack_archive(archive, tmp_path / "unpacked")
        store = Store.open(tmp_path / "unpacked/for-you")
        assert [record.label for record in store.records()] == [DISTANCE]
        assert tsadbench("verify", tmp_path / "unpacked/for-you").code == 0

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["show", "{runs}", "nonsense"], "has no trial 'nonsense'"),
            (["show", "{runs}", ""], "matches 4 trials"),
            (["rm", "{runs}"], "expected what to remove"),
            (["export", "{runs}", "x.rar"], "expected a name that ends in"),
            (["list", "{runs}/.."], "is not a run store"),
        ],
    )
    def test_wrong_usage(self, runs, tsadbench, arguments, message):
        found = tsadbench("runs", *[one.format(runs=runs) for one in arguments])
        assert found.code == 2
        assert message in found.err


class TestVerify:
    def test_what_is_as_recorded(self, runs, tsadbench):
        found = tsadbench("verify", runs)
        assert found.code == 0
        assert found.out.splitlines()[-2] == "4 trials: 4 as recorded, 0 differ, 0 cannot be checked"

    @pytest.mark.parametrize(
        ("edit", "told"),
        [
            (lambda record: record["splits"]["leak"]["metrics"].update(mcc=0.5), "mcc on leak: recorded 0.5, found"),
            (lambda record: record["splits"]["leak"].update(n_rows=1), "n_rows on leak: recorded 1, found"),
            (lambda record: record["splits"].pop("valve1"), "split valve1: not recorded"),
            (lambda record: record["thresholds"][0]["threshold"].update(value=9.0), "threshold of all: recorded 9.0"),
            (lambda record: record["thresholds"][0]["threshold"].update(t=None), "threshold of all, t: recorded None"),
            (
                lambda record: record["thresholds"][0]["threshold"].update(status="clamped"),
                "threshold of all, status: recorded clamped",
            ),
            (
                lambda record: record["thresholds"][0]["threshold"].update(gamma=9.0),
                "threshold of all, gamma: recorded 9.0",
            ),
            (lambda record: record["manifest"].update(data_hash="0" * 64), "the data here are not those"),
            (lambda record: record["manifest"].update(labels_hash="0" * 64), "the labels here are not those"),
            (lambda record: record.update(status="timeout"), "its status is timeout, yet it has metrics"),
            (lambda record: record.update(protocol="published"), "expected"),
        ],
    )
    def test_every_edit_of_a_record_is_found(self, runs, tsadbench, edit, told):
        name = name_of(runs, DISTANCE)
        file = runs / name / "record.json"
        record = json.loads(file.read_text())
        edit(record)
        file.write_text(json.dumps(record))
        found = tsadbench("verify", runs)
        assert found.code == 1
        assert any(line.startswith(f"differs: {name}") and told in line for line in found.out.splitlines()), found.out
        assert "3 as recorded, 1 differ" in found.out

    def test_edited_scores_are_found(self, runs, tsadbench):
        file = runs / name_of(runs, DISTANCE) / "scores.npz"
        with np.load(file) as arrays:
            scores = {name: arrays[name].copy() for name in arrays.files}
        tested = next(name for name in scores if name.startswith("test/"))
        scores[tested][40:400] += 100.0
        np.savez(file, **scores)
        assert tsadbench("verify", runs).code == 1
        scores.pop(tested)
        np.savez(file, **scores)
        assert f"scores {tested}: expected" in tsadbench("verify", runs).out

    @pytest.mark.parametrize("damage", ["cut", "gone", "a folder"])
    def test_a_record_that_cannot_be_read_does_not_hide_the_others(self, runs, tsadbench, damage):
        name = name_of(runs, DISTANCE)
        file = runs / name / "record.json"
        text = file.read_text()
        file.unlink()
        if damage == "cut":
            file.write_text(text[:100])
        elif damage == "a folder":
            file.mkdir()
        for command, told in (("verify", "checked"), ("judge", "judged")):
            found = tsadbench(command, runs)
            assert found.code == 1
            assert f"cannot be {told}: {name}: {file}: " in found.out
            counts = {"verify": f"0 differ, 1 cannot be {told}", "judge": f"0 changed, 1 cannot be {told}"}
            assert f"4 trials: 3 as recorded, {counts[command]}" in found.out.splitlines()[-2:]

    def test_other_code_is_a_remark(self, runs, tsadbench):
        file = runs / name_of(runs, DISTANCE) / "record.json"
        record = json.loads(file.read_text().replace('"code_hash": "', '"code_hash": "0'))
        manifest = {key: value for key, value in record["manifest"].items() if key != "checksum"}
        older = {key: value for key, value in record.items() if key not in ("scoring", "judging")}
        file.write_text(json.dumps({**older, "manifest": manifest}))
        found = tsadbench("verify", runs, "--trust-code")
        assert found.code == 0
        assert f"note: the code of {DISTANCE} here is not what made it (1 trials)" in found.out
        untrusted = tsadbench("verify", runs).out
        assert f"note: the detector {DISTANCE} is not registered here, and --trust-code is not given" in untrusted

    def test_data_that_are_not_here(self, runs, tsadbench):
        for file in runs.glob("*/record.json"):
            file.write_text(file.read_text().replace('"dataset": "pumploop"', '"dataset": "elsewhere"'))
        found = tsadbench("verify", runs)
        assert found.code == 1
        assert "4 cannot be checked" in found.out


class TestJudge:
    def test_what_today_s_rules_give_is_written(self, runs, tsadbench):
        found = tsadbench("judge", runs)
        assert (found.code, found.out.splitlines()) == (0, ["4 trials: 4 as recorded, 0 changed, 0 cannot be judged"])
        name = name_of(runs, DISTANCE)
        file = runs / name / "record.json"
        before = json.loads(file.read_text())
        edited = json.loads(file.read_text())
        edited["splits"]["leak"]["metrics"].update(mcc=0.5)
        file.write_text(json.dumps(edited))
        assert tsadbench("verify", runs).code == 1
        found = tsadbench("judge", runs)
        assert found.code == 0
        assert found.out.startswith(
            f"changed: {name} ({DISTANCE}, seed 0, pumploop, strict)\n4 trials: 3 as recorded, 1 changed"
        )
        assert json.loads(file.read_text())["splits"] == before["splits"]
        assert tsadbench("verify", runs).code == 0

    def test_rules_that_have_changed_since_are_applied_by_verify_and_leaderboard(self, runs, tsadbench):
        file = runs / name_of(runs, DISTANCE) / "record.json"
        recorded = json.loads(file.read_text())
        for command in ("verify", "leaderboard"):
            old = {**recorded, "judging": "of other rules"}
            old["splits"] = {**recorded["splits"], "leak": {**recorded["splits"]["leak"], "coverage": 0.5}}
            file.write_text(json.dumps(old))
            found = tsadbench(command, runs)
            assert found.code == 0, found.out
            assert json.loads(file.read_text())["splits"] == recorded["splits"]

    def test_what_cannot_be_judged_is_reported(self, runs, tsadbench):
        for file in runs.glob("*/record.json"):
            text = file.read_text().replace('"dataset": "pumploop"', '"dataset": "elsewhere"')
            file.write_text(text.replace('"judging": "', '"judging": "0'))
        found = tsadbench("judge", runs)
        assert found.code == 1
        assert "4 cannot be judged" in found.out
        shown = tsadbench("leaderboard", runs)
        assert shown.code == 0
        assert "note: 4 trials were judged by other rules than today's" in shown.err
