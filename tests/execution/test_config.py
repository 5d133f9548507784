"""Configuration files: what they may contain, how errors are reported, and what options override."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.helpers.cards import write_plant
from tsadbench.errors import UsageError
from tsadbench.execution.plan import make_plans
from tsadbench.execution.request import RunRequest, requested

pytestmark = pytest.mark.usefixtures("tiny_plugin")

MINE = """
from pathlib import Path
import numpy as np
from tsadbench import Detector

class Mine(Detector):
    '''Reads a file, or none.'''
    def __init__(self, *, table: Path | None = None, factor: float = 1.0, on: bool = False):
        self.table = table
        self.factor = factor
        self.on = on
    def _fit(self, recordings): pass
    def _score(self, recording): return self.factor * np.abs(recording.values).max(axis=1)
"""


@pytest.fixture
def write(tmp_path):
    """Writes a configuration next to a plant's card and a detector's file."""

    def write(text: str) -> Path:
        folder = tmp_path / "here"
        write_plant(folder)
        (folder / "mine.py").write_text(MINE)
        (folder / "run.toml").write_text(text)
        return folder / "run.toml"

    return write


def problems(path: Path, **given: object) -> list[str]:
    with pytest.raises(UsageError) as caught:
        requested(path, given)
    first, *others = str(caught.value).splitlines()
    assert str(path) in first
    return [line.strip() for line in others]


def test_every_key_arrives_and_paths_are_relative_to_the_file(write):
    path = write(
        """
        detectors = ["distance[power=3]", "mine.py:Mine[table=rows.csv]"]
        datasets = ["pumploop", "card.toml"]
        seeds = 2
        floors = false
        memory = 512.5
        data = "data"
        out = "../store"
        """
    )
    here = path.parent
    (here / "data").mkdir()
    given = {
        "detectors": ["distance[power=3]", f"{here}/mine.py:Mine[table={here}/rows.csv]"],
        "datasets": ["pumploop", str(here / "card.toml")],
        "seeds": 2,
        "floors": False,
        "memory": 512.5,
        "data": here / "data",
        "out": here / "../store",
        "config_hash": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    assert requested(path, {}).model_dump() == {**RunRequest().model_dump(), **given}


def test_settings_in_every_form(write):
    path = write(
        """
        detectors = ["distance", "mine.py:Mine", "noisy"]
        [set]
        "distance.power" = 3
        strict.q = 0.002
        "noisy" = { power = 7 }
        "random.seed" = 4
        [set."mine.py:Mine"]
        table = "rows.csv"
        factor = 2
        on = true
        """
    )
    mine = f"{path.parent}/mine.py:Mine"
    assert requested(path, {}).settings == {
        "distance.power": "3",
        "strict.q": "0.002",
        "noisy.power": "7",
        "random.seed": "4",
        f"{mine}.table": f"{path.parent}/rows.csv",
        f"{mine}.factor": "2",
        f"{mine}.on": "on",
    }


def test_options_override_the_file_and_drop_settings_of_what_they_leave_out(write):
    path = write(
        'detectors = ["distance", "broken"]\nseeds = 3\n[set]\ndistance.power = 3\nnoisy.power = 4\nstrict.q = 0.01'
    )
    found = requested(path, {"detectors": ["noisy"], "seeds": 1, "settings": ["noisy.power=9"]})
    assert (found.detectors, found.seeds) == (["noisy"], 1)
    assert found.settings == {"noisy.power": "9", "strict.q": "0.01"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seeds = 'five'", ["line 1", "seeds", "five"]),
        ("timeout = -1", ["line 1", "timeout", "-1"]),
        ("floors = 1", ["line 1", "floors"]),
        ("detectors = []", ["line 1", "detectors"]),
        ("\ndetectors = ['distanc']", ["line 2", "'distanc'", "'distance'"]),
        ("detectors = ['distance[powr=3]']", ["line 1", "'powr'", "'power'"]),
        ("detectors = ['gone.py:Mine']", ["detectors", "gone.py"]),
        ("protocols = ['stict']", ["line 1", "'stict'", "'strict'"]),
        ("datasets = ['gone/card.toml']", ["line 1", "gone/card.toml"]),
        ("seed = 3", ["line 1", "seed", "'seeds'"]),
        ("detectors = ['distance']\n[set]\n'distance.power' = 'x'", ["line 3", "set.distance.power"]),
        ("detectors = ['distance']\n[set.distance]\n# x\npower = [1]", ["line 4", "set.distance.power"]),
        ("detectors = ['distance']\n[set]\ndistanc.power = 3", ["'distanc'", "'distance'"]),
        ("detectors = ['distance'", ["TOML"]),
    ],
)
def test_an_error_names_line_key_value_and_a_similar_name(write, text, expected):
    (found,) = problems(write(text))
    assert [part for part in expected if part not in found] == []


def test_what_cannot_be_planned_names_the_data_set(write):
    text = "detectors = ['tests.helpers.tiny:Guided']\ndatasets = ['pumploop', 'card.toml']\nseeds = 1"
    with pytest.raises(UsageError, match=r"card\.toml.*prior"):
        make_plans(requested(write(text), {}))
    same = "detectors = ['distance']\ndatasets = ['card.toml', './../here/card.toml']"
    with pytest.raises(UsageError, match="plant"):
        make_plans(requested(write(same), {}))
