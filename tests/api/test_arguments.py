"""A wrong argument of `tsadbench.run` gives one line that names it as Python does, with what was expected and found."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import Pipeline

import tsadbench
from tests.helpers.data import make_data
from tests.helpers.tiny import Distance
from tsadbench.execution.plan import floor_labels

pytestmark = pytest.mark.usefixtures("tiny_plugin")

DATA = make_data()

# One value per kind of mistake, with text that the message must contain.
WRONG = [
    ({"detectors": 3}, "detectors", "3"),
    ({"detectors": PCA}, "detectors", "PCA()"),
    ({"detectors": Pipeline([("a", 3), ("b", IsolationForest())])}, "detectors", "'a'"),
    ({"detectors": "distanc"}, "detectors", "'distance'"),
    ({"detectors": "distance[powr=2]"}, "detectors", "'powr'"),
    ({"detectors": "distance[power=high]"}, "detectors", "'high'"),
    ({"detectors": Distance(power=0.5)}, "detectors", "0.5"),
    ({"detectors": "nowhere.py:Class"}, "detectors", "nowhere.py"),
    ({"dataset": None}, "dataset", "None"),
    ({"dataset": "skabb"}, "dataset", "'skab'"),
    ({"dataset": pd.DataFrame({"flow": [1.0]})}, "dataset", "dataset_from_frames"),
    ({"dataset": []}, "dataset", "[]"),
    ({"dataset": Path("a/folder")}, "dataset", "a/folder"),
    ({"protocol": "strickt"}, "protocol", "'strict'"),
    ({"protocol": 5}, "protocol", "5"),
    ({"splits": ["ovreall"]}, "splits", "'overall'"),
    ({"suite": "plants"}, "suite", "data sets"),
    ({"settings": "distance.power"}, "settings", "'distance.power'"),
    ({"settings": ["noisy.power=2"]}, "settings", "'noisy'"),
    ({"seeds": 0}, "seeds", "found 0"),
    ({"seeds": [0, -3]}, "seeds", "-3"),
    ({"seeds": [2**32]}, "seeds", "4294967296"),
    ({"seeds": [3, 3]}, "seeds", "[3, 3]"),
    ({"seeds": "5"}, "seeds", "'5'"),
    ({"jobs": 0}, "jobs", "0"),
    ({"timeout": math.nan}, "timeout", "nan"),
    ({"memory_mib": "2 GiB"}, "memory", "'2 GiB'"),
    ({"floors": "no"}, "floors", "'no'"),
    ({"data": "no/such/folder"}, "data", "no/such/folder"),
    ({"out": "a\0b"}, "out", "a\\x00b"),
    ({"out": Path(__file__).parent}, "out", "run store"),
    ({"cluster": "localhost:8786"}, "cluster", "'localhost:8786'"),
    ({"against": "strict"}, "against", "'small'"),
    ({"against": "strict", "protocol": "published"}, "against", "published"),
]


@pytest.mark.parametrize(("arguments", "name", "text"), WRONG)
def test_a_wrong_argument_is_one_line_that_names_it(arguments, name, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tsadbench.UsageError) as caught:
        tsadbench.run(**{"detectors": "distance", "dataset": DATA, "seeds": 1, "floors": False, **arguments})
    message = str(caught.value)
    assert message.startswith(name)
    assert text in message
    assert "\n" not in message
    assert "--" not in message, "Python's names, not the command line's"
    assert caught.value.__cause__ is None
    assert list(tmp_path.iterdir()) == []


def test_several_wrong_arguments_are_all_named():
    with pytest.raises(tsadbench.UsageError) as caught:
        tsadbench.run("distance", DATA, jobs=0, memory_mib=0)
    assert [part.partition(":")[0] for part in str(caught.value).split("; ")] == ["jobs", "memory"]


def test_floors_alone_and_with_detectors(tmp_path):
    board = tsadbench.run(["distance", "noisy"], DATA, seeds=2, splits=["overall"], out=tmp_path / "runs")
    frame = board.to_frame()
    assert set(frame["detector"]) == {"distance", "noisy", *floor_labels()}
    assert frame.set_index("detector").loc["distance", "auroc_mean"] > 0.9
    alone = tsadbench.run([], DATA, seeds=2, splits=["overall"], out=tmp_path / "runs")
    assert {*alone.frame["detector"]} == set(floor_labels())


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    tsadbench.run("distance", DATA, floors=False, out="~/runs")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert tsadbench.load_board("~/runs").frame["detector"][0] == "distance"


def test_common_forms_of_arguments_are_accepted():
    board = tsadbench.run(
        (Distance(power=3), "noisy"),  # an instance that is not fitted
        DATA,
        splits="f",
        settings="noisy.power=3",
        seeds=np.array([4, 1]),
        timeout=np.float32(600),
        memory_mib=np.int64(4000),
        threads=np.int64(1),
        floors=False,
    )
    frame = board.to_frame().set_index("detector")
    assert dict(frame["seeds"]) == {"distance[power=3.0]": 1, "noisy[power=3.0]": 2}
    assert set(frame["split"]) == {"f"}
    assert board.frame.set_index("detector")["seeds"]["noisy[power=3.0]"] == (1, 4)
