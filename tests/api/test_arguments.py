"""A wrong argument of `tsadbench.run` is one line that names it as Python does, with what was expected and found."""

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

pytestmark = pytest.mark.usefixtures("tiny_plugin")

DATA = make_data()

# The arguments, the one that the message begins with, and texts that it has.
WRONG = [
    ({"detectors": 3}, "detectors", "expected a name, a detector class, a detector or an estimator object", "3"),
    ({"detectors": [None]}, "detectors", "expected a name, a detector class", "None"),
    ({"detectors": [int]}, "detectors", "expected a name, a detector class", "int"),
    ({"detectors": PCA}, "detectors", "expected an estimator object, such as PCA()", "PCA"),
    ({"detectors": {"distance"}}, "detectors", "or a list of these", "{'distance'}"),
    ({"detectors": Pipeline([("a", 3), ("b", IsolationForest())])}, "detectors", "its step 'a' is no estimator", "3"),
    ({"detectors": "distanc"}, "detectors", "there is no detector 'distanc'", "did you mean 'distance'"),
    ({"detectors": "distance[power]"}, "detectors", "expected key=value", "'power'"),
    ({"detectors": "distance[powr=2]"}, "detectors", "no parameter 'powr'", "power"),
    ({"detectors": "distance[power=high]"}, "detectors", "'power' cannot be 'high'"),
    ({"detectors": Distance(power=0.5)}, "detectors", "at least 1", "0.5"),
    ({"detectors": "nowhere.py:Class"}, "detectors", "there is no file", "nowhere.py"),
    ({"dataset": None}, "dataset", "expected a name, the path of a card", "None"),
    ({"dataset": "skabb"}, "dataset", "there is no data set 'skabb'", "did you mean 'skab'"),
    ({"dataset": np.zeros((3, 2))}, "dataset", "dataset_from_frames", "array"),
    ({"dataset": pd.DataFrame({"flow": [1.0]})}, "dataset", "dataset_from_frames", "found DataFrame"),
    ({"dataset": DATA.dataset}, "dataset", "dataset_from_frames", "found Dataset"),
    ({"dataset": []}, "dataset", "expected at least 1 item", "[]"),
    ({"dataset": Path("a/folder")}, "dataset", "the path of a card, which ends in .toml", "a/folder"),
    ({"protocol": "strickt"}, "protocol", "there is no protocol 'strickt'", "did you mean 'strict'"),
    ({"protocol": 5}, "protocol", "expected a string", "5"),
    ({"protocol": None}, "protocol", "expected a string", "None"),
    ({"splits": ["ovreall"]}, "splits", "there is no split 'ovreall'", "did you mean 'overall'"),
    ({"splits": 7}, "splits", "expected a string", "7"),
    ({"suite": "plant", "dataset": "skab"}, "suite", "there is no suite 'plant'", "plants"),
    ({"suite": "plants"}, "suite", "give either suite or dataset"),
    ({"suite": 3, "dataset": "skab"}, "suite", "expected a string", "3"),
    ({"settings": "distance.power"}, "settings", "expects NAME.key=value", "'distance.power'"),
    ({"settings": ["distance.power=x"]}, "settings", "'power' cannot be 'x'"),
    ({"settings": ["noisy.power=2"]}, "settings", "this run has no 'noisy'"),
    ({"settings": ["strict.q=2"]}, "settings", "q"),
    ({"seeds": 0}, "seeds", "expected a number greater than or equal to 1", "0"),
    ({"seeds": 2.5}, "seeds", "expected an integer, or a list of integers", "2.5"),
    ({"seeds": True}, "seeds", "expected an integer", "True"),
    ({"seeds": []}, "seeds", "expected a list of at least one integer", "[]"),
    ({"seeds": [0, -3]}, "seeds", "of at least 0", "-3"),
    ({"seeds": 10**20}, "seeds", "expected a number less than or equal to 100000", "100000000000000000000"),
    ({"seeds": [2**32]}, "seeds", "expected a list of integers below 4294967296", "[4294967296]"),
    ({"seeds": [3, 3]}, "seeds", "different seeds", "[3, 3]"),
    ({"seeds": "5"}, "seeds", "expected an integer", "'5'"),
    ({"threads": "two"}, "threads", "expected an integer", "'two'"),
    ({"jobs": 0}, "jobs", "expected a number greater than or equal to 1", "0"),
    ({"timeout": math.nan}, "timeout", "expected a number greater than 0", "nan"),
    ({"timeout": 0}, "timeout", "expected a number greater than 0", "0"),
    ({"memory_mib": -1}, "memory_mib", "expected a number greater than 0", "-1"),
    ({"memory_mib": "2 GiB"}, "memory_mib", "expected a number", "'2 GiB'"),
    ({"floors": "no"}, "floors", "expected a boolean", "'no'"),
    ({"require_seal": 1}, "require_seal", "expected a boolean", "1"),
    ({"data": "no/such/folder"}, "data", "expected a folder that exists", "no/such/folder"),
    ({"data": 3}, "data", "expected a path", "3"),
    ({"out": ""}, "out", "expected a path", "''"),
    ({"out": "a\0b"}, "out", "expected a path", "a\\x00b"),
    ({"out": Path(__file__)}, "out", "not a file", "test_arguments.py"),
    ({"out": Path(__file__).parent}, "out", "expected a new folder or a run store"),
    ({"cluster": "localhost:8786"}, "cluster", "expected tcp://host:port or local:N", "'localhost:8786'"),
    ({"cluster": "local:2"}, "cluster", "the data set's name or card"),
    ({"against": "strickt"}, "against", "did you mean 'strict'"),
    ({"against": "strict"}, "against", "no leaderboard of data set 'small'"),
    ({"against": "strict", "protocol": "published"}, "against", "found protocol published"),
]


@pytest.mark.parametrize(
    ("arguments", "name", "texts"), [(arguments, name, texts) for arguments, name, *texts in WRONG]
)
def test_a_wrong_argument_is_one_line_that_names_it(arguments, name, texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tsadbench.UsageError) as caught:
        tsadbench.run(**{"detectors": "distance", "dataset": DATA, "seeds": 1, "floors": False, **arguments})
    message = str(caught.value)
    assert message.startswith(name)
    assert not message[len(name)].isalnum()
    assert "\n" not in message
    for text in texts:
        assert text in message
    for leaked in ("pydantic", "Input should", "--", "validation error"):
        assert leaked not in message
    assert caught.value.__cause__ is None
    assert "ValidationError" not in repr(caught.value.__context__)
    assert list(tmp_path.iterdir()) == []


def test_several_wrong_arguments_are_all_named():
    with pytest.raises(tsadbench.UsageError) as caught:
        tsadbench.run("distance", DATA, jobs=0, memory_mib=0)
    jobs, memory = str(caught.value).split("; ")
    assert jobs == "jobs: expected a number greater than or equal to 1, found 0"
    assert memory == "memory_mib: expected a number greater than 0, found 0"


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    tsadbench.run("distance", DATA, floors=False, out="~/runs")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert tsadbench.load_board("~/runs").rows[0].label == "distance"


def test_what_a_caller_would_try_is_taken():
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
    assert dict(frame["seeds"]) == {"distance[power=3]": 1, "noisy[power=3.0]": 2}
    assert set(frame["split"]) == {"f"}
    assert {row.label: row.seeds for row in board.rows}["noisy[power=3.0]"] == (1, 4)
