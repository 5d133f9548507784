"""``tsadbench fit`` and ``tsadbench score`` as a user has them, and what each wrong input is told."""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io

from tests.helpers.data import make_data
from tests.helpers.german_plant import HEADER, lines
from tests.helpers.plans import make_plan
from tests.helpers.trials import DISTANCE
from tsadbench import UsageError, fit_model, load_model
from tsadbench.base.serialization.parts import to_parts
from tsadbench.datasets.cards.reader import load_card
from tsadbench.execution.trial import run_trial
from tsadbench.serving.model import model_bytes

BROKEN = """
import numpy as np
from tsadbench import Detector, Traits

LEARNED = {}

class Lambda(Detector):
    def _fit(self, recordings): self.f_ = lambda x: x
    def _score(self, recording): return recording.values.sum(axis=1)

class Elsewhere(Detector):
    def _fit(self, recordings): LEARNED["mean"] = 1.0 + recordings[0].values.mean()
    def _score(self, recording): return recording.values.sum(axis=1) - LEARNED.get("mean", 0.0)

class Crash(Detector):
    def _fit(self, recordings): raise RuntimeError("no")
    def _score(self, recording): return recording.values.sum(axis=1)

class Good(Detector):
    traits = Traits(memory=0)
    def _fit(self, recordings): self.mean_ = recordings[0].values.mean(axis=0)
    def _score(self, recording): return np.abs(recording.values - self.mean_).sum(axis=1)
"""


@pytest.fixture(scope="module")
def model_file(plant, t2_model) -> Path:
    return plant / "t2.model"


def test_it_is_the_benchmarks_fit_with_its_threshold_and_scores(plant, t2_model):
    data = load_card(plant / "card.toml")
    plan = make_plan(["t2[smoothing=3]"], dataset=data, floors=False)
    outcome = run_trial(plan.trials[0], plan)
    assert t2_model.card.threshold == outcome.record.thresholds[0].threshold
    (recording,) = data.dataset.test
    np.testing.assert_array_equal(t2_model.score(recording).scores, outcome.scores["test/all/run"])
    assert t2_model.card.layout == data.dataset.layout


def test_its_threshold_comes_from_held_out_rows_if_the_protocol_says_so(tmp_path):
    data, setting = make_data(n_rows=3000), ["strict.calibration=held-out"]
    plan = make_plan(["t2"], dataset=data, floors=False, settings=setting)
    outcome = run_trial(plan.trials[0], plan)
    model = fit_model("t2", data, tmp_path / "t2.model", settings=setting)
    assert outcome.record.thresholds[0].threshold.n == 1200 - 30
    assert model.card.threshold == outcome.record.thresholds[0].threshold
    assert (model.card.protocol, model.card.n_rows) == ("strict[calibration=held-out]", 6000 - 1200 - 100)


def test_without_a_detector_it_is_multiview(tsadbench, plant, default_model, tmp_path):
    card, out = plant / "card.toml", tmp_path / "x.model"
    (recording,) = load_card(card).dataset.test
    expected = fit_model("multiview", str(card), out).score(recording).scores
    np.testing.assert_array_equal(default_model.score(recording).scores, expected)
    done = tsadbench("fit", "--dataset", card, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{out}: multiview, fitted on 200 rows of little, 2 sensors\n")
    assert "a row's score uses 0 later rows, and 19 rows before it" in done.out
    np.testing.assert_array_equal(load_model(out).score(recording).scores, expected)
    assert default_model.score(recording).flagged[40:50].all()


def test_settings_are_those_of_the_default(tsadbench, plant, default_model, tmp_path):
    card, out = plant / "card.toml", tmp_path / "x.model"
    done = tsadbench("fit", "--dataset", card, "--out", out, "--set", "multiview.accumulation=1")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{out}: multiview[accumulation=1], fitted on")
    found = fit_model(dataset=str(card), out=tmp_path / "y.model", settings=["multiview.accumulation=1"])
    assert found.card.label == "multiview[accumulation=1]"
    assert found.card.threshold == load_model(out).card.threshold != default_model.card.threshold
    for setting, message in (("multiview.window=3", "window"), ("t2.mean=3", "t2"), ("multiview.blocks=0", "blocks")):
        refused = tsadbench("fit", "--dataset", card, "--out", tmp_path / "z.model", "--set", setting)
        assert (refused.code, refused.out) == (2, "")
        assert message in refused.err
        assert not (tmp_path / "z.model").exists()


def test_what_has_no_default_must_be_given(tsadbench, plant, tmp_path):
    assert "Missing option '--dataset'" in tsadbench("fit", "--out", tmp_path / "x.model").err
    told = tsadbench("fit", "t2", "--dataset", plant / "card.toml", "--out", tmp_path / "x.model")
    assert told.code == 2
    assert "a detector is named with -d: -d t2" in told.err
    with pytest.raises(UsageError, match="expected a data set, found none; write fit_model"):
        fit_model("t2", out=tmp_path / "x.model")
    with pytest.raises(UsageError, match="expected a file to write, found none"):
        fit_model(dataset="pumploop")
    told = tsadbench("fit", "--dataset", plant / "card.toml", "--out", tmp_path / "x.model", "--seed", "-1")
    assert told.code == 2
    assert "Invalid value for '--seed'" in told.err
    with pytest.raises(UsageError, match="seed: expected an integer of at least 0 and below 4294967296, found -1"):
        fit_model(dataset="pumploop", out=tmp_path / "x.model", seed=-1)


def test_a_whole_file(tsadbench, plant, model_file, t2_model):
    done = tsadbench("score", model_file, plant / "run.csv", "--contributions")
    assert (done.code, done.err) == (0, "")
    found = pd.read_csv(io.StringIO(done.out))
    expected = t2_model.score(load_card(plant / "card.toml").dataset.test[0], contributions=True)
    assert list(found) == ["time", "score", "flagged", "contribution_Pressure [bar]", "contribution_Flow"]
    np.testing.assert_array_equal(found["score"], expected.scores)
    np.testing.assert_array_equal(found["flagged"], expected.flagged)
    np.testing.assert_array_equal(found.iloc[:, 3:], expected.contributions)
    assert found["time"].iloc[59] == "2026-02-01T00:00:59"
    assert found["flagged"][42:50].all()
    assert not found["flagged"][:40].any()


def test_several_files_and_parquet(tsadbench, plant, model_file, tmp_path):
    run = plant / "run.csv"
    both = tsadbench("score", model_file, run, run)
    table = pd.read_csv(io.StringIO(both.out))
    assert table["file"].tolist() == [str(run)] * 120
    assert tsadbench("score", model_file, run, run, "--out", tmp_path / "x.parquet").code == 0
    stored = pd.read_parquet(tmp_path / "x.parquet")
    np.testing.assert_array_equal(stored["score"], table["score"])
    assert stored["time"].dt.strftime("%Y-%m-%dT%H:%M:%S").tolist() == table["time"].tolist()
    frame = pd.read_csv(run, sep=";", decimal=",").drop(columns=["operator", "fault"])
    frame["Datum"] = pd.to_datetime(frame["Datum"], format="%d.%m.%Y %H:%M:%S")
    frame.to_parquet(tmp_path / "run.parquet")
    again = tsadbench("score", model_file, tmp_path / "run.parquet")
    assert again.err == ""
    assert again.out == tsadbench("score", model_file, run).out


def test_a_file_with_an_array(tsadbench, plant, model_file, t2_model, tmp_path):
    """Its columns have no names: they are the sensors in the model's order."""
    table = pd.read_csv(plant / "run.csv", sep=";", decimal=",")
    sensors = t2_model.card.sensors
    rows = table[[f"PLC.{sensor}" for sensor in sensors]].to_numpy()
    (tmp_path / "run.pkl").write_bytes(pickle.dumps(rows))
    scipy.io.savemat(tmp_path / "run.mat", {"rows": rows})
    expected = pd.read_csv(io.StringIO(tsadbench("score", model_file, plant / "run.csv").out))
    for name in ("run.pkl", "run.mat"):
        done = tsadbench("score", model_file, tmp_path / name)
        assert done.code == 0, done.err
        found = pd.read_csv(io.StringIO(done.out))
        assert found["row"].tolist() == list(range(60))
        assert found["score"].tolist() == expected["score"].tolist()
    scipy.io.savemat(tmp_path / "two.mat", {"rows": rows, "others": rows})
    names = ", ".join(sensors)
    (tmp_path / "wide.pkl").write_bytes(pickle.dumps(np.ones((60, 3))))
    (tmp_path / "hostile.pkl").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    for name, message in (
        ("two.mat", "expected one array, found 2: ['rows', 'others']; write one to a file alone"),
        ("wide.pkl", f"its columns have no names: expected 2, the model's sensors in order ({names}), found 3"),
        ("hostile.pkl", "the pickle"),
    ):
        done = tsadbench("score", model_file, tmp_path / name)
        assert done.code == 2
        assert f"{tmp_path / name}: {message}" in done.err


def test_a_file_written_otherwise_is_read_by_options(tsadbench, plant, model_file, tmp_path):
    frame = pd.read_csv(plant / "run.csv", sep=";", decimal=",")[["PLC.Flow", "PLC.Pressure [bar]"]]
    frame.insert(0, "s", np.arange(60.0))
    frame.to_csv(tmp_path / "other.csv", index=False)
    other = (tmp_path / "other.csv", "--separator", ",", "--decimal", ".", "--time", "s", "--time-format", "seconds")
    done = tsadbench("score", model_file, *other)
    assert done.code == 0
    assert "another order" in done.err
    scores = [line.split(",")[1:] for line in done.out.splitlines()]
    assert scores == [
        line.split(",")[1:] for line in tsadbench("score", model_file, plant / "run.csv").out.splitlines()
    ]
    assert done.out.splitlines()[2].startswith("1970-01-01T00:00:01,")


def wait_for(path: Path, n_lines: int) -> list[str]:
    deadline = time.monotonic() + 60
    while len(found := path.read_text().splitlines()) < n_lines and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def start(out: Path, *arguments: object, **options) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tsadbench", "score", *map(str, arguments)]
    with out.open("wb") as stream:
        return subprocess.Popen(command, stdout=stream, stderr=subprocess.PIPE, **options)


@pytest.fixture(scope="module")
def ahead_model(plant, tmp_path_factory) -> Path:
    """DPR-GM: it looks three rows ahead."""
    out = tmp_path_factory.mktemp("ahead") / "dprgm.model"
    fit_model(
        "dprgm[graph=correlation,window=4,horizon=4,hidden_size=4,epochs=1,min_steps=1]", str(plant / "card.toml"), out
    )
    return out


def close(found: list[str], expected: list[str]) -> bool:
    one, other = (pd.read_csv(io.StringIO("\n".join(text))) for text in (found, expected))
    return one["time"].tolist() == other["time"].tolist() and np.allclose(one["score"], other["score"], equal_nan=True)


@pytest.mark.processes
@pytest.mark.slow(13)
def test_a_growing_file_is_followed_over_partial_lines_truncation_and_rotation(tsadbench, ahead_model, tmp_path):
    growing, out = tmp_path / "live.csv", tmp_path / "answers.csv"
    rows = [HEADER, *lines(3, 40)]
    text = [f"{line}\n" for line in rows]
    growing.write_text("".join(text[:11]) + text[11][:9])
    running = start(out, ahead_model, growing, "--follow", "--idle", 10)
    assert len(wait_for(out, 8)) == 1 + 10 - 3  # a row is answered once three more are there
    with growing.open("a") as stream:
        stream.write(text[11][9:] + "".join(text[12:21]))
    assert len(wait_for(out, 18)) == 1 + 20 - 3
    growing.write_text("".join(text[:6]))  # shorter: the first recording ends, and the next one begins
    assert len(wait_for(out, 23)) == 1 + 20 + 5 - 3
    os.rename(growing, tmp_path / "live.csv.1")
    growing.write_text("".join(text)[:-1])
    _, told = running.communicate(timeout=60)
    assert running.returncode == 0, told
    assert b"it has become shorter" in told
    assert b"another file has taken its name" in told
    found = out.read_text().splitlines()
    assert len(found) == 1 + 20 + 5 + 40
    for begin, count in ((1, 20), (21, 5), (26, 40)):
        (tmp_path / "whole.csv").write_text("\n".join(rows[: count + 1]) + "\n")
        expected = tsadbench("score", ahead_model, tmp_path / "whole.csv").out.splitlines()
        assert close([found[0], *found[begin : begin + count]], expected)


@pytest.mark.processes
def test_the_default_answers_each_row_before_the_next_one_is_there(tsadbench, plant, default_model, tmp_path):
    live, out, rows = tmp_path / "live.csv", tmp_path / "answers.csv", lines(5, 45, range(35, 45))
    live.write_text(HEADER + "\n")
    running = start(out, plant / "default.model", live, "--follow", "--contributions")
    for number, row in enumerate(rows, start=1):
        with live.open("a") as stream:
            stream.write(row + "\n")
        assert len(wait_for(out, 1 + number)) == 1 + number
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=60)[1] == b""
    assert len(rows) > 2 * default_model.detector.declared_traits().memory
    whole = tsadbench("score", plant / "default.model", live, "--contributions")
    assert out.read_text() == whole.out
    found = pd.read_csv(io.StringIO(whole.out))
    assert list(found)[3:] == ["contribution_Pressure [bar]", "contribution_Flow"]
    np.testing.assert_allclose(found.iloc[:, 3:].sum(axis=1), found["score"])
    assert found["flagged"][37:].all()
    assert (found["contribution_Pressure [bar]"][37:] > found["contribution_Flow"][37:]).all()


@pytest.mark.processes
def test_an_interrupt_ends_it_quietly(plant, model_file, tmp_path):
    running = start(tmp_path / "answers.csv", model_file, plant / "run.csv", "--follow")
    assert len(wait_for(tmp_path / "answers.csv", 61)) == 61
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert (running.returncode, told) == (130, b"")


@pytest.mark.processes
def test_standard_input_is_answered_row_by_row_to_its_end(tsadbench, ahead_model, tmp_path):
    text, out = [HEADER, *lines(4, 12)], tmp_path / "answers.csv"
    running = start(out, ahead_model, "-", "--contributions", stdin=subprocess.PIPE)
    running.stdin.write(("\n".join(text[:9]) + "\n").encode())
    running.stdin.flush()
    assert len(wait_for(out, 6)) == 1 + 8 - 3
    _, told = running.communicate("\n".join(text[9:]).encode(), timeout=60)
    assert (running.returncode, told) == (0, b"")
    (tmp_path / "whole.csv").write_text("\n".join(text))
    expected = tsadbench("score", ahead_model, tmp_path / "whole.csv", "--contributions").out.splitlines()
    assert close(out.read_text().splitlines(), expected)


def test_rows_before_a_wrong_line_are_answered_then_the_line_is_named(model_file, tmp_path):
    text = [HEADER, *lines(4, 5), "01.02.2026 00:00:09;oops;1;Ann;0", *lines(4, 2)]
    done = subprocess.run(
        [sys.executable, "-m", "tsadbench", "score", str(model_file), "-"],
        input="\n".join(text),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("tsadbench: standard input, line 7: column 'Pressure [bar]': expected a number")
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) == 1 + 5


def test_each_wrong_input_is_told_and_nothing_is_written(tsadbench, plant, model_file, tmp_path):
    run, card = plant / "run.csv", plant / "card.toml"
    (tmp_path / "units.csv").write_text(run.read_text().replace("[bar]", "[psi]"))
    (tmp_path / "empty.csv").write_text(HEADER + "\n")
    (tmp_path / "cut.model").write_bytes(model_file.read_bytes()[:-100])
    (tmp_path / "text.model").write_text("no model")
    (tmp_path / "no.parquet").write_text("no")
    out = tmp_path / "out.csv"
    for arguments, message in (
        ((model_file, tmp_path / "none.csv"), "there is no such file"),
        ((model_file, tmp_path), "cannot be read"),
        ((model_file, tmp_path / "units.csv"), "the units differ"),
        ((model_file, run, tmp_path / "units.csv"), "the units differ"),
        ((model_file, tmp_path / "empty.csv"), "it has no rows"),
        ((model_file, tmp_path / "no.parquet"), "not a Parquet file"),
        ((tmp_path / "cut.model", run), "cut off"),
        ((tmp_path / "text.model", run), "it is no model"),
        ((model_file, run, run, "--follow"), "take one input, found 2"),
        ((model_file, run, "--idle", "3"), "--idle is for --follow"),
        ((model_file, run, "--separator", "ab"), "takes one character"),
        ((model_file, run, "--decimal", "x"), "takes . or ,"),
        ((model_file, run, "--time", "Flow"), "one of the model's sensors"),
        ((model_file, run, "--device", "cuda"), "no parameter 'device'"),
        ((model_file, run, "--detector", DISTANCE), "found Distance"),
        ((model_file, tmp_path / "none.csv", "--follow"), "there is no such file"),
    ):
        done = tsadbench("score", *arguments, *([] if "--follow" in arguments else ["--out", out]))
        assert done.code == 2, arguments
        assert message in done.err, done.err
        assert done.out == ""
        assert not out.exists()
    for arguments, message in (
        (("score", model_file, run, "--format", "parquet"), "needs --out"),
        (("score", model_file, "-", "--out", tmp_path / "x.parquet"), "can only be written whole"),
        (("score", model_file, run, "--out", model_file / "x.csv"), "cannot be written"),
        (("fit", "-d", "t22", "--dataset", card, "--out", out), "did you mean"),
        (("fit", "-d", DISTANCE, "--dataset", card, "--out", tmp_path), "Is a directory"),
        (("fit", "-d", DISTANCE, "--dataset", card, "--out", model_file / "x"), "cannot be written"),
        (("fit", "-d", "isolation-forest", "--dataset", card, "--out", out, "--seed", "-1"), "seed"),
        (("fit", "-d", DISTANCE, "--dataset", "pumploop", "--protocol", "skab", "--out", out), "a model is one fit"),
    ):
        done = tsadbench(*arguments)
        assert done.code == 2, arguments
        assert message in done.err, done.err
        assert not out.exists()


def test_what_cannot_be_kept_or_fails_leaves_no_file(tsadbench, plant, tmp_path):
    file, out = tmp_path / "broken.py", tmp_path / "x.model"
    file.write_text(BROKEN)
    for name, code, message in (
        ("Lambda", 2, "attribute learned.f_ is a builtins.function"),
        ("Elsewhere", 2, "read back from it, it scores otherwise"),
        ("Crash", 1, "error: RuntimeError: no"),
    ):
        done = tsadbench("fit", "-d", f"{file}:{name}", "--dataset", plant / "card.toml", "--out", out)
        assert done.code == code, done.err
        assert message in done.err
        assert list(tmp_path.glob("*.model")) == []


@pytest.mark.processes
def test_a_model_does_not_choose_what_is_imported_and_tells_changed_code(tsadbench, plant, tmp_path):
    file, out, run = tmp_path / "mine.py", tmp_path / "x.model", plant / "run.csv"
    file.write_text(BROKEN)
    assert tsadbench("fit", "-d", f"{file}:Good", "--dataset", plant / "card.toml", "--out", out).code == 0
    file.write_text("raise SystemExit('this was executed')\n")
    command = [sys.executable, "-m", "tsadbench", "score", str(out), str(run)]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2
    assert f"name it yourself with --detector {file}:Good" in refused.stderr
    named = [*command, "--detector", f"{file}:Good"]
    file.write_text(BROKEN + "\n# The same but for a comment.\n")
    assert subprocess.run(named, capture_output=True, text=True).returncode == 0
    file.write_text(BROKEN.replace("np.abs(", "2 * np.abs("))
    changed = subprocess.run(named, capture_output=True, text=True)
    assert changed.returncode == 2
    assert "continue with --allow-changed-code" in changed.stderr
    allowed = subprocess.run([*named, "--allow-changed-code"], capture_output=True, text=True)
    assert allowed.returncode == 0
    assert "has changed since it was fitted" in allowed.stderr
    assert len(allowed.stdout.splitlines()) == 61


def test_what_differs_from_the_fit_is_told(tsadbench, t2_model, plant, tmp_path):
    parts, out = to_parts(t2_model.detector), tmp_path / "x.model"
    other = {**t2_model.card.manifest, "versions": {"numpy": "1.0"}}
    out.write_bytes(model_bytes(replace(t2_model.card, manifest=other), parts))
    assert "fitted with numpy 1.0" in load_model(out).notes[0]
    for changes, message in (
        ({"schema": 2}, "expected a model of schema 1, found 2"),
        ({"sensors": ("Flow", "Pressure [bar]")}, "fitted on other sensors than it says"),
        ({"parts": {**t2_model.card.parts, "learned.json": "0" * 64}}, "these parts are not those that were written"),
    ):
        out.write_bytes(model_bytes(replace(t2_model.card, **changes), parts))
        done = tsadbench("score", out, plant / "run.csv")
        assert done.code == 2
        assert message in done.err, done.err


def test_another_librarys_detector_is_kept_as_its_training_rows(tsadbench, plant, tmp_path, monkeypatch):
    out, run = tmp_path / "x.model", plant / "run.csv"
    assert tsadbench("fit", "-d", "pyod:KNN[window=2]", "--dataset", plant / "card.toml", "--out", out).code == 0
    answers = pd.read_csv(io.StringIO(tsadbench("score", out, run).out))
    recording = load_card(plant / "card.toml").dataset.test[0]
    np.testing.assert_array_equal(answers["score"], load_model(out).detector.score(recording))
    assert answers["flagged"][40:50].all()
    monkeypatch.setattr("tsadbench.serving.model.adapted_versions", lambda _: {"pyod": "99.0"})
    other = tsadbench("score", out, run)
    assert other.code == 2
    assert "(here 99.0)" in other.err
    assert tsadbench("score", out, run, "--allow-changed-code").code == 0


def test_a_network_that_is_fitted_again_says_nothing_of_it(tsadbench, plant, tmp_path):
    out, run = tmp_path / "x.model", plant / "run.csv"
    fitted = tsadbench("fit", "-d", "pyod:DeepSVDD[epochs=2]", "--dataset", plant / "card.toml", "--out", out)
    assert fitted.code == 0, fitted.err
    assert load_model(out).card.manifest["threads"] == 1
    done = tsadbench("score", out, run)
    assert (done.code, len(done.out.splitlines())) == (0, 61)
    assert "Epoch" not in fitted.err + done.err


@pytest.mark.parametrize("detector", ["t2", "pyod:ECOD"])
@pytest.mark.processes
@pytest.mark.slow(5)
def test_as_installed_with_no_import_path_of_these_tests(detector, plant, tmp_path):
    """Packages that are installed for editing lie on no path: the box must import them by their names all the same."""
    command = [sys.executable, "-P", "-m", "tsadbench"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    out, run = tmp_path / "x.model", plant / "run.csv"
    for arguments, lines_out in (
        (["fit", "-d", detector, "--dataset", str(plant / "card.toml"), "--out", str(out)], 4),
        (["score", str(out), str(run)], 61),
    ):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == lines_out
