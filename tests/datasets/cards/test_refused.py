"""What is refused by the command line with one message and exit code 2, whichever command reads the card."""

from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from tests.helpers.cards import CARD

UNLABELLED = CARD.replace('label = "fault"\n', 'ignore = ["fault"]\n')


class Hostile:
    """Runs a command where it is read as any pickle is."""

    def __reduce__(self):
        return (os.system, ("touch hostile",))


def hostile_pickle(plant: Path) -> str:
    (plant / "train/z.pkl").write_bytes(pickle.dumps(Hostile()))
    return CARD.replace('["train/*.csv"]', '["train/*"]')


def other_shape(plant: Path) -> str:
    scipy.io.savemat(plant / "train/z.mat", {"x": np.zeros((60, 3))})
    return CARD.replace('["train/*.csv"]', '["train/*"]').replace("[columns]", '[columns]\nnames = ["flow", "head"]')


def truncated_r(plant: Path) -> str:
    (plant / "train/z.rda").write_bytes(gzip.compress(b"RDX3\nX\n" + b"\0\0\0\3" * 4)[:-9])
    return CARD.replace('["train/*.csv"]', '["train/*"]')


def entity_without_training(_: Path) -> str:
    return CARD + '[entities]\none = ["*/a", "*/b", "*/c"]\ntwo = ["*/d"]\n'


def overlapping(plant: Path) -> str:
    (plant / "events.csv").write_text("recording,start,end\ntest/c,5,9\ntest/c,8,12\n")
    return UNLABELLED + '[labels]\nintervals = "events.csv"\n'


def finer_grid(_: Path) -> str:
    return CARD.replace("test/*.csv", "test/c.csv").replace("[train]", '[resample]\nevery = "0.1s"\n[train]')


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (hostile_pickle, ["train/z.pkl: ", "system"]),
        (other_shape, ["train/z.mat: expected 2 columns, as many as columns.names has, found 3"]),
        (truncated_r, ["train/z.rda: "]),
        (entity_without_training, ["card.toml, line 15: entities.two: it has no training row"]),
        (overlapping, ["events.csv, line 3: the interval of recording 'test/c' overlaps that of line 2"]),
        (finer_grid, ["test/c.csv", "resample.every is 0.1 s, but half of its rows or more lie 1 s apart"]),
    ],
)
@pytest.mark.parametrize("command", [("data", "validate"), ("run", "-d", "max-z", "--dataset")])
def test_in_one_message(
    plant: Path, tsadbench: Callable, broken: Callable[[Path], str], expected: list[str], command: tuple[str, ...]
):
    (plant / "card.toml").write_text(broken(plant))
    found = tsadbench(*command, plant / "card.toml")
    assert found.code == 2
    assert found.out == ""
    assert "Traceback" not in found.err
    assert all(text in found.err for text in expected), found.err
    assert not list(plant.rglob("hostile"))
    assert not Path("hostile").exists()
