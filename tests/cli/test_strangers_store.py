"""A run store that somebody sent: reading it runs none of its code, opens no other file, and leaves no folder."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.helpers.broken_store import RECORDING, copy, sound_store
from tests.helpers.servers import lean_server
from tests.helpers.trials import DISTANCE
from tsadbench.execution.store import Store

CODE = """
import contextlib
from pathlib import Path

import numpy as np
from tsadbench import Detector

with contextlib.suppress(OSError):  # a sealed box would let nobody write
    Path({witness!r}).write_text("it ran")

class Mine(Detector):
    def _fit(self, recordings):
        pass

    def _score(self, recording):
        return np.abs(recording.values).max(axis=1)
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Store:
    return sound_store(tmp_path_factory.mktemp("sound") / "runs")


@pytest.fixture
def store(sound, tmp_path) -> Store:
    shutil.copytree(sound.path, tmp_path / "runs")
    return Store.open(tmp_path / "runs")


@pytest.fixture
def unsealed(monkeypatch):
    """Boxes in which a detector can write files."""
    with lean_server(seal=False) as server:
        for module in ("box", "description"):
            monkeypatch.setattr(f"tsadbench.sandbox.{module}.default_server", lambda: server)
        yield


READERS = [
    ["verify", "{runs}"],
    ["judge", "{runs}"],
    ["leaderboard", "{runs}", "--diagnostics", "operational"],
    ["report", "{runs}", "--out", "{out}"],
    ["compare", "{runs}", "{label}", "max-z"],
    ["explain", "{runs}", "{label}", "--recording", RECORDING],
    ["plot", "graph", "{runs}", "--out", "{out}/a.svg", "--detector", "max-z"],
    ["runs", "show", "{runs}", "{trial}"],
]


@pytest.mark.parametrize(("kind", "floor"), [("file", True), pytest.param("module", False, marks=pytest.mark.long)])
@pytest.mark.usefixtures("unsealed")
def test_code_that_a_record_names_runs_only_if_the_user_names_it(store, tmp_path, tsadbench, monkeypatch, kind, floor):
    witness = tmp_path / "witness"
    module = f"strangers_{floor}_module"
    file = store.path / f"{module}.py"
    file.write_text(CODE.format(witness=str(witness)))
    monkeypatch.syspath_prepend(store.path)
    name = f"{file}:Mine" if kind == "file" else f"{module}:Mine"
    source = next(record for record in store.records() if record.label == DISTANCE)
    trial = "ab" * 12
    copy(store, source, trial, name, detector=name, floor=floor)
    store.remove([source.trial])
    for command in READERS if kind == "module" else READERS[:3]:
        done = tsadbench(*[one.format(runs=store.path, out=tmp_path, label=name, trial=trial) for one in command])
        assert not witness.exists(), command
        assert done.code == 0 or command[0] == "verify", (command, done.err)
    told = tsadbench("verify", store.path).out
    assert any(name in line and "--detector" in line for line in told.splitlines())
    trusted = tsadbench("verify", store.path, "--detector", name).out
    assert f"the code of {name} here" in trusted, "a box has loaded it"
    assert witness.exists()


@pytest.mark.long
def test_a_prior_that_a_label_names_is_not_opened(store, tmp_path, tsadbench):
    source = next(record for record in store.records() if record.label == "max-z")
    label = f"dprgm[prior={tmp_path / 'missing.json'}]"
    copy(store, source, "cd" * 12, label, detector="dprgm", floor=False)
    assert tsadbench("explain", store.path, label, "--recording", RECORDING).code == 0
    assert tsadbench("report", store.path, "--out", tmp_path / "report").code == 0


@pytest.mark.parametrize("name", ["../victim", "x" * 300, "a\nb"])
def test_names_that_are_paths_lead_nowhere(store, tmp_path, tsadbench, name):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "mine.json").write_text("mine")
    source = next(record for record in store.records() if record.label == "max-z")
    for place, field in enumerate(("trial", "dataset", "protocol")):
        file = copy(store, source, f"{place:024x}", "max-z[mean=4]")
        file.write_text(json.dumps({**json.loads(file.read_text()), field: name}))
    before = sorted(tmp_path.rglob("*"))
    listed = tsadbench("runs", "list", store.path)
    assert listed.code == 1
    assert listed.err.count("broken: ") == 3
    removed = tsadbench("runs", "remove", store.path, "--detector", "max-z[mean=4]")
    assert "0 trials removed" in removed.err
    written = tsadbench("leaderboard", store.path, "--write", tmp_path / "tables")
    assert written.code == 1
    tables = sorted(path for path in tmp_path.rglob("*") if path not in before)
    assert tables
    assert all(path.is_relative_to(tmp_path / "tables" / "pumploop") for path in tables if path.name != "tables")
    assert (victim / "mine.json").read_text() == "mine"


def test_a_split_that_is_a_path_is_not_written(store, tmp_path, tsadbench):
    source = next(record for record in store.records() if record.label == "max-z")
    store.remove(one.trial for one in store.records() if one.trial != source.trial)
    file = store.path / "records" / f"{source.trial}.json"
    content = json.loads(file.read_text())
    content["splits"]["../../out"] = content["splits"]["overall"]
    file.write_text(json.dumps(content))
    assert tsadbench("leaderboard", store.path, "--format", "csv").code == 0
    written = tsadbench("leaderboard", store.path, "--write", tmp_path / "deep" / "tables")
    assert written.code == 2
    assert "../../out.csv" in written.err
    assert not list(tmp_path.rglob("out.*"))


def test_tables_are_not_written_through_a_link(store, tmp_path, tsadbench):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "pumploop").symlink_to(elsewhere)
    written = tsadbench("leaderboard", store.path, "--write", tmp_path / "tables")
    assert written.code == 2
    assert "link" in written.err
    assert not list(elsewhere.iterdir())
