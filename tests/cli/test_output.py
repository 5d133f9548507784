"""What commands print of stores that somebody sent, and of wrong names."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.helpers.records import record
from tsadbench.execution.store import Store
from tsadbench.execution.trial import Outcome


def test_control_characters_of_a_record_are_escaped(tsadbench, tmp_path):
    evil = "a\x1b[2J\u202e\x9bb \u00b0C"
    store = Store.create(tmp_path / "runs")
    kept = record("broken", status="error", reason="no")
    kept = replace(kept, manifest={**kept.manifest, "started": evil})
    store.add(Outcome(kept, {}))
    shown = tsadbench("runs", "show", tmp_path / "runs", kept.trial)
    assert json.loads(shown.out)["manifest"]["started"] == evil
    listed = tsadbench("runs", "list", tmp_path / "runs")
    assert r"a\x1b[2J\u202e\x9bb" in listed.out
    for printed in (shown.out, listed.out):
        assert all(line.isprintable() for line in printed.splitlines())


def test_files_in_a_store_forge_no_lines(tsadbench, tmp_path):
    store = Store.create(tmp_path / "runs")
    (store.path / "records" / "a\n9 trials: 9 as recorded\u202e\x1b[2J.json").touch()
    for command in ("verify", "judge"):
        found = tsadbench(command, store.path)
        assert found.code == 1
        assert not any(line.startswith("9 trials") or not line.isprintable() for line in found.out.splitlines())


def test_a_detector_without_its_option_is_pointed_to_the_option(tsadbench):
    done = tsadbench("run", "t2")
    assert (done.code, " -d" in done.err) == (2, True)


def test_a_file_without_a_class_is_one_line(tsadbench, tmp_path):
    file = tmp_path / "idea.py"
    file.write_text("from tsadbench import Detector\nclass Mine(Detector): ...\nclass Other(Mine): ...\nprint(1 / 0)\n")
    done = tsadbench("run", "-d", file)
    assert (done.code, len(done.err.splitlines()), f"{file}:" in done.err) == (2, 1, True)
    file.write_text("class:\n")
    assert str(file) in tsadbench("check", file).err


def test_a_failed_trial_names_the_command_that_shows_its_log(tsadbench, tmp_path):
    file = tmp_path / "idea.py"
    file.write_text(
        "from tsadbench import Detector\n"
        "class Mine(Detector):\n"
        "    def _fit(self, recordings): print('something to read'); raise ValueError('boom')\n"
        "    def _score(self, recording): ...\n"
    )
    runs = tmp_path / "runs"
    done = tsadbench("run", "-d", f"{file}:Mine", "--dataset", "pumploop", "--no-floors", "--out", runs)
    assert done.code == 1
    (line,) = [line for line in done.err.splitlines() if line.startswith("log of ")]
    _, _, command = line.partition("seed 0: tsadbench ")
    log = tsadbench(*command.split())
    assert (log.code, "something to read" in log.err) == (0, True)
