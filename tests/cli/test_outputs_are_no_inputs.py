"""No command overwrites what it reads, by whatever name it is given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.german_plant import write_german_plant
from tsadbench import fit_model


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    fit_model("t2", str(write_german_plant(folder)), folder / "t2.model")
    return folder


@pytest.fixture
def plant(made, tmp_path) -> Path:
    folder = tmp_path / "plant"
    shutil.copytree(made, folder)
    (folder / "linked").symlink_to("run.csv")
    os.link(folder / "run.csv", folder / "hard")
    return folder


@pytest.mark.parametrize("name", ["linked", "hard", "../plant/run.csv", "t2.model"])
def test_score_does_not_write_onto_its_input(tsadbench, plant, name):
    before = {file: file.read_bytes() for file in plant.iterdir()}
    done = tsadbench("score", plant / "t2.model", plant / "run.csv", "--out", plant / name)
    assert (done.code, done.out) == (2, "")
    assert name.rpartition("/")[2] in done.err
    assert {file: file.read_bytes() for file in plant.iterdir()} == before


@pytest.mark.processes
def test_score_is_not_redirected_onto_its_input(plant):
    before = (plant / "run.csv").read_bytes()
    command = f"{sys.executable} -m tsadbench score t2.model run.csv >> hard"
    done = subprocess.run(["sh", "-c", command], cwd=plant, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert (plant / "run.csv").read_bytes() == before


def test_other_files_devices_and_old_answers_are_written(tsadbench, plant):
    (plant / "answers.csv").write_text("old")
    for out in (plant / "answers.csv", plant / "new.csv", Path("/dev/null")):
        assert tsadbench("score", plant / "t2.model", plant / "run.csv", "--out", out).code == 0
    assert (plant / "answers.csv").read_bytes() == (plant / "new.csv").read_bytes()


@pytest.mark.parametrize("name", ["card.toml", "linked"])
def test_fit_overwrites_models_alone(tsadbench, plant, name):
    before = (plant / name).read_bytes()
    done = tsadbench("fit", "-d", "t2", "--dataset", plant / "card.toml", "--out", plant / name)
    assert (done.code, name in done.err) == (2, True)
    assert (plant / name).read_bytes() == before
    (plant / "empty").touch()
    for kept in ("t2.model", "empty"):
        assert tsadbench("fit", "-d", "t2", "--dataset", plant / "card.toml", "--out", plant / kept).code == 0
