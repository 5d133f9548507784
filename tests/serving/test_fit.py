"""`tsadbench fit` stores the benchmark's fit and threshold in a file that restores both; and what it refuses."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.helpers.german_plant import CARD
from tests.helpers.machines import DISTANCE, make_machines
from tests.helpers.plans import make_plan, run_trial
from tests.helpers.sealed import require_seal
from tsadbench import DataError, UsageError, fit_model, load_model
from tsadbench.base.serialization import to_parts
from tsadbench.datasets.reader import load_card
from tsadbench.serving.model import model_bytes

OWN = """
import numpy as np
from tsadbench import Detector, Traits

LEARNED = {}

class Lambda(Detector):
    def _fit(self, recordings): self.f_ = lambda x: x
    def _score(self, recording): return recording.values.sum(axis=1)

class Elsewhere(Detector):
    def _fit(self, recordings): LEARNED["mean"] = 1.0 + recordings[0].values.mean()
    def _score(self, recording): return recording.values.sum(axis=1) - LEARNED.get("mean", 0.0)

class Lost(Elsewhere):
    def _score(self, recording): return recording.values.sum(axis=1) - LEARNED["mean"]

class Crash(Detector):
    def _fit(self, recordings): raise RuntimeError("no")
    def _score(self, recording): return recording.values.sum(axis=1)

class Good(Detector):
    traits = Traits(memory=0)
    def _fit(self, recordings): self.mean_ = recordings[0].values.mean(axis=0)
    def _score(self, recording): return np.abs(recording.values - self.mean_).sum(axis=1)
"""


def test_it_is_the_benchmarks_fit_with_its_threshold_and_scores(plant, t2_model, model_file):
    data = load_card(plant / "card.toml")
    plan = make_plan(["t2[smoothing=3]"], dataset=data, floors=False)
    outcome = run_trial(plan.trials[0], plan)
    (recording,) = data.dataset.test
    for model in (t2_model, load_model(model_file)):
        assert model.card.threshold == outcome.record.thresholds[0].threshold
        np.testing.assert_array_equal(model.score(recording)["score"], outcome.scores["test/all/run"])
        assert model.card.layout == data.dataset.layout
        assert (model.card.n_rows, model.card.sensors) == (200, data.dataset.sensors)
    assert outcome.scores["test/all/run"][42:50].min() > t2_model.card.threshold.value


def test_without_a_detector_it_is_multiview_with_its_settings(tsadbench, plant, tmp_path):
    card, out = plant / "card.toml", tmp_path / "x.model"
    assert tsadbench("fit", "--dataset", card, "--out", out).code == 0
    default = load_model(out)
    assert default.card.label == "multiview"
    (recording,) = load_card(card).dataset.test
    expected = fit_model("multiview", str(card), tmp_path / "y.model").score(recording)
    pd.testing.assert_frame_equal(default.score(recording), expected)
    assert expected["flagged"][40:50].all()
    assert tsadbench("fit", "--dataset", card, "--out", out, "--set", "multiview.mean=1").code == 0
    assert load_model(out).card.label == "multiview[mean=1]"
    assert load_model(out).card.threshold != default.card.threshold


def test_an_unlabelled_plant_gives_the_same_model(plant, tmp_path, t2_model, tsadbench):
    for name in ("normal.csv", "run.csv"):
        (tmp_path / name).write_text((plant / name).read_text())
    text = CARD.replace('ignore = ["operator"]', 'ignore = ["operator", "fault"]')
    text = text.replace('[labels]\nkind = "column"\ncolumn = "fault"\n', "")
    for part in (text, text.replace('[test]\nfiles = ["run.csv"]\n', "")):
        (tmp_path / "card.toml").write_text(part)
        found = fit_model("t2[smoothing=3]", str(tmp_path / "card.toml"), tmp_path / "t2.model")
        assert found.card.threshold == t2_model.card.threshold
        recording = load_card(plant / "card.toml").dataset.test[0]
        pd.testing.assert_frame_equal(found.score(recording), t2_model.score(recording))
        refused = tsadbench("run", "--dataset", tmp_path / "card.toml", "-d", "t2", "--out", tmp_path / "runs")
        assert (refused.code, refused.out) == (2, "")
        assert "card.toml" in refused.err
        assert not (tmp_path / "runs").exists()
    with pytest.raises(DataError):  # it trains on test recordings
        fit_model("t2", str(tmp_path / "card.toml"), tmp_path / "x.model", protocol="skab")


class TestEntities:
    def test_the_model_is_fitted_on_the_named_entity(self, tmp_path):
        data = make_machines()
        model = fit_model(DISTANCE, data, tmp_path / "beta.model", entity="beta")
        plan = make_plan([DISTANCE], dataset=data, floors=False)
        outcome = run_trial(plan.trials[0], plan)
        (threshold,) = (entry.threshold for entry in outcome.record.thresholds if entry.episode == "beta")
        assert model.card.threshold == threshold
        assert (model.card.n_rows, model.card.manifest["entity"]) == (480, "beta")
        (recording,) = (one for one in data.dataset.test if one.id == "beta/1")
        np.testing.assert_allclose(model.score(recording)["score"], outcome.scores["test/beta/beta/1"])

    def test_the_entity_must_be_named(self, tmp_path):
        for options, name in (({}, "^entity: "), ({"entity": "beat"}, "beta")):
            with pytest.raises(UsageError, match=name):
                fit_model(DISTANCE, make_machines(), tmp_path / "x.model", **options)
        assert not list(tmp_path.iterdir())


REFUSED = (
    (("-d", DISTANCE, "--dataset", "card.toml", "--out", "x.model", "--seed", "-1"), "seed"),
    (("-d", DISTANCE, "--dataset", "card.toml", "--out", "x.model", "--timeout", "0"), "--timeout"),
    (("-d", DISTANCE, "--dataset", "pumploop", "--protocol", "skab", "--out", "x.model"), "skab"),
    (("-d", DISTANCE, "--dataset", "card.toml", "--out", "run.csv"), "run.csv"),
    (("-d", DISTANCE, "--dataset", "card.toml", "--out", "run.zip"), "run.zip"),
    (("-d", DISTANCE, "--dataset", "run.csv", "--out", "x.model"), "run.csv"),
    (("--dataset", "card.toml", "--out", "x.model", "--set", "multiview.window=3"), "window"),
    (("t2", "--dataset", "card.toml", "--out", "x.model"), " -d"),
)


@pytest.mark.parametrize(("arguments", "name"), REFUSED)
def test_wrong_arguments_write_no_file(tsadbench, model_file, monkeypatch, arguments, name):
    monkeypatch.chdir(model_file.parent)
    with zipfile.ZipFile("run.zip", "w") as archive:
        archive.write("run.csv")
    before = sorted(path.name for path in model_file.parent.iterdir())
    done = tsadbench("fit", *arguments)
    assert (done.code, done.out) == (2, "")
    assert name in done.err
    assert sorted(path.name for path in model_file.parent.iterdir()) == before


SCRIPT = """
import sys
import numpy as np
from tsadbench import Detector, Traits, fit_model

class Mine(Detector):
    traits = Traits(memory=0)
    def _fit(self, recordings): self.mean_ = recordings[0].values.mean(axis=0)
    def _score(self, recording): return np.abs(recording.values - self.mean_).sum(axis=1)

if __name__ == "__main__":
    print(fit_model(Mine, sys.argv[1], sys.argv[2]).detector.mean_.shape)
"""


def test_a_class_of_the_calling_program(plant, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "script.py", plant / "card.toml", tmp_path / "x.model"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "(2,)\n"


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [("Lambda", 2, "f_"), ("Elsewhere", 2, "scores"), ("Lost", 2, "restored"), ("Crash", 1, "RuntimeError")],
)
def test_a_detector_that_fails_or_cannot_be_stored_leaves_no_file(tsadbench, plant, tmp_path, name, code, told):
    (tmp_path / "own.py").write_text(OWN)
    done = tsadbench(
        "fit", "-d", f"{tmp_path}/own.py:{name}", "--dataset", plant / "card.toml", "--out", tmp_path / "x.model"
    )
    assert done.code == code, done.err
    assert told in done.err
    assert list(tmp_path.glob("*.model")) == []


@pytest.mark.long
@pytest.mark.processes
def test_a_model_does_not_choose_what_is_imported_and_changed_code_is_reported(tsadbench, plant, tmp_path):
    """In new processes, because each must import the changed file."""
    file, out, run = tmp_path / "mine.py", tmp_path / "x.model", plant / "run.csv"
    file.write_text(OWN)
    assert tsadbench("fit", "-d", f"{file}:Good", "--dataset", plant / "card.toml", "--out", out).code == 0
    command = [sys.executable, "-m", "tsadbench", "score", str(out), str(run)]
    named = [*command, "--detector", f"{file}:Good"]

    def score(arguments, text):
        file.write_text(text)
        return subprocess.run(arguments, capture_output=True, text=True)

    refused = score(command, "raise SystemExit('this was executed')\n")
    assert refused.returncode == 2
    assert "--detector: " in refused.stderr
    assert "executed" not in refused.stderr
    changed = OWN.replace("np.abs(", "2 * np.abs(")
    assert score(named, changed).returncode == 2
    allowed = score([*named, "--allow-changed-code"], changed)
    assert allowed.returncode == 0
    assert len(allowed.stdout.splitlines()) == 61


def test_differences_from_the_fit_are_reported(tsadbench, t2_model, plant, tmp_path):
    parts, out = to_parts(t2_model.detector), tmp_path / "x.model"
    other = {**t2_model.card.manifest, "versions": {"numpy": "1.0"}}
    out.write_bytes(model_bytes(replace(t2_model.card, manifest=other), parts))
    assert "numpy 1.0" in load_model(out).notes[0]
    for changes, name in (
        ({"schema": 2}, "schema"),
        ({"sensors": ("Flow", "Pressure [bar]")}, "sensors"),
    ):
        out.write_bytes(model_bytes(replace(t2_model.card, **changes), parts))
        done = tsadbench("score", out, plant / "run.csv")
        assert done.code == 2
        assert name in done.err


def test_another_librarys_detector_is_kept_as_its_training_rows(tsadbench, plant, tmp_path, monkeypatch):
    out, run = tmp_path / "x.model", plant / "run.csv"
    model = fit_model("pyod:KNN[window=2]", str(plant / "card.toml"), out)
    recording = load_card(plant / "card.toml").dataset.test[0]
    answers = load_model(out).score(recording)
    pd.testing.assert_frame_equal(answers, model.score(recording))
    assert answers["flagged"][40:50].all()
    monkeypatch.setattr("tsadbench.serving.model.library_versions", lambda *_: {"pyod": "99.0"})
    other = tsadbench("score", out, run)
    assert other.code == 2
    assert "99.0" in other.err
    assert tsadbench("score", out, run, "--allow-changed-code").code == 0


HOSTILE = """
import numpy as np
from tsadbench import Detector, Traits

class Hostile(Detector):
    traits = Traits(memory=0)
    def _fit(self, recordings): self.do_ = ""
    def _score(self, recording):
        if self.do_:
            open(self.do_).read()
        return np.zeros(len(recording.values))
"""


def test_a_strangers_model_reads_no_file(tsadbench, plant, tmp_path):
    require_seal()
    file, out, run = tmp_path / "hostile.py", tmp_path / "hostile.model", plant / "run.csv"
    file.write_text(HOSTILE)
    detector = f"{file}:Hostile"
    model = fit_model(detector, str(plant / "card.toml"), out)
    (tmp_path / "labels").write_text("no detector reads this")
    model.detector.do_ = str(tmp_path / "labels")
    out.write_bytes(model_bytes(model.card, to_parts(model.detector)))
    done = tsadbench("score", out, run, "--detector", detector)
    assert (done.code, done.out) == (1, "")
    assert len(done.err.splitlines()) == 1
    assert "PermissionError" in done.err
