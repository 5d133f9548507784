"""``tsadbench run --config``: whole plans from a file, and the file of the documentation."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from pathlib import Path

import pytest

from tests.helpers.cards import write_plant
from tsadbench.execution.store import Store

pytestmark = pytest.mark.usefixtures("tiny_plugin")

PAGE = Path(__file__).parents[2] / "docs/configuration.md"
CONFIG = """
detectors = ["distance", "noisy"]
datasets = ["plant/card.toml", "mill/card.toml"]
protocols = ["strict", "published"]
seeds = 2
floors = false
splits = ["overall"]
out = "store"
[set]
noisy.power = 5
strict.q = 0.002
[tuned]
study = "night"
trials = 7
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with the cards of two data sets below it."""
    for name, seed in (("plant", 0), ("mill", 2)):
        write_plant(tmp_path / name, 90, name=name, seed=seed)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_leaderboard_per_data_set_and_protocol_and_the_files_hash_in_every_manifest(tsadbench, folder):
    (folder / "run.toml").write_text(CONFIG)
    done = tsadbench("run", "--config", "run.toml", "--format", "json")
    assert (done.code, "12 trials" in done.err) == (0, True)
    assert "[12/12] mill, published: noisy[power=5.0], seed 1: ok" in done.err
    content = json.loads(done.out)
    assert content["schema"] == 2
    places = [(dataset, protocol) for dataset in ("plant", "mill") for protocol in ("strict[q=0.002]", "published")]
    assert list(dict.fromkeys((row["dataset"], row["protocol"]) for row in content["rows"])) == places
    for place in places:
        rows = [row for row in content["rows"] if (row["dataset"], row["protocol"]) == place]
        assert {row["label"]: row["seeds"] for row in rows} == {"distance": [0], "noisy[power=5.0]": [0, 1]}
        scores = [row["metrics"]["auprc"]["mean"] for row in rows]
        assert scores == sorted(scores, reverse=True)
    sha256 = hashlib.sha256((folder / "run.toml").read_bytes()).hexdigest()
    records = Store.open(folder / "store").records()
    assert len(records) == 12
    for record in records:
        assert record.manifest["config_hash"] == sha256
        assert record.manifest["tuning"] == {"study": "night", "trials": 7}

    fewer = tsadbench("run", "--config", "run.toml", "-d", "distance", "--protocol", "strict", "--format", "csv")
    assert (fewer.code, bool(re.search(r"^2 trials .* store, 2 ", fewer.err, re.M))) == (0, True)
    rows = list(csv.DictReader(io.StringIO(fewer.out)))
    assert [(row["dataset"], row["detector"]) for row in rows] == [("plant", "distance"), ("mill", "distance")]


def test_a_detector_that_fails_on_one_data_set_says_which(tsadbench, folder):
    (folder / "mine.py").write_text(
        "import numpy as np\nfrom tsadbench import Detector\n"
        "class Mine(Detector):\n"
        "    '''Cannot score long recordings.'''\n"
        "    def _fit(self, recordings): pass\n"
        "    def _score(self, recording):\n"
        "        if recording.n_rows > 100: raise RuntimeError('too long')\n"
        "        return recording.values[:, 0]\n"
    )
    (folder / "run.toml").write_text(
        'detectors = ["mine.py:Mine"]\ndatasets = ["plant/card.toml", "pumploop"]\nfloors = false\n'
    )
    done = tsadbench("run", "--config", "run.toml")
    assert done.code == 1
    (line,) = (line for line in done.out.splitlines() if "RuntimeError: too long" in line)
    assert re.match(r"pumploop, .*mine\.py:Mine: RuntimeError: too long", line)


@pytest.mark.long  # detectors that ship, on two data sets
def test_the_pages_example_runs_as_it_says(tsadbench, folder):
    (folder / "run.toml").write_text(re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)[0])
    done = tsadbench("run", "--config", "run.toml", "--format", "json")
    assert done.code == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert {(row["dataset"], row["protocol"]) for row in rows} == {
        (dataset, protocol)
        for dataset in ("pumploop", "plant")
        for protocol in ("strict[q=0.002]", "published[level=0.97]")
    }
    assert {"t2", "t2[smoothing=5]", "isolation-forest[n_estimators=20]"} <= {row["label"] for row in rows}
