"""A search has only training recordings: checked in the objects it can reach and in the memory of its boxes."""

from __future__ import annotations

import gc
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.cards import write_plant
from tests.helpers.plans import make_plan
from tests.helpers.processes import children
from tests.helpers.trials import DISTANCE
from tsadbench import Dataset, Labels, Recording, api
from tsadbench.base.dataset import LabelledDataset
from tsadbench.sandbox import Box
from tsadbench.tuning.study import run_study
from tsadbench.tuning.task import Settings, make_task

pytestmark = pytest.mark.processes

# High halves of doubles that occur nowhere else: one for all training rows, one for all test rows.
_TRAIN, _TEST = 0x4093_57AB, 0x4093_C1DE


def marked(high: int, rows: int) -> np.ndarray:
    """Return doubles near 1,200 whose first four bytes are ``high`` and whose last four count."""
    return np.array([struct.unpack(">d", struct.pack(">II", high, 0xABC0_0000 + row))[0] for row in range(rows)])


def marked_data(folder: Path | None = None) -> LabelledDataset:
    rng = np.random.default_rng(0)

    def recording(name, high, n_rows):
        return Recording(name, np.stack([marked(high, n_rows), rng.normal(size=n_rows)], axis=1), ("mark", "noise"))

    splits = {"overall": ("test",)}
    dataset = Dataset(
        "marked", (recording("normal", _TRAIN, 400),), (recording("test", _TEST, 300),), splits, folder=folder
    )
    return LabelledDataset(dataset, Labels({"test": np.arange(300) > 200}, splits))


def n_found(data: bytes, high: int) -> int:
    """Count the doubles of a kind in some bytes: the high half follows the low half, which starts with 0xABC."""
    needle = struct.pack("<I", high)
    count, place = 0, data.find(needle)
    while place >= 0:
        count += place >= 4 and data[place - 1] == 0xAB and data[place - 2] == 0xC0
        place = data.find(needle, place + 1)
    return count


def n_in_memory(pid: int, high: int) -> int:
    """Count such doubles in all memory that a process can read."""
    count = 0
    regions = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for region in regions:
            if "r" not in region[1] or (len(region) > 5 and region[5] in ("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            start, stop = (int(end, 16) for end in region[0].split("-"))
            try:
                memory.seek(start)
                count += n_found(memory.read(stop - start), high)
            except OSError:
                continue
    return count


def tasked(data, detector=DISTANCE, **settings):
    plan = make_plan([detector], dataset=data, seeds=1, floors=False)
    return make_task(plan, Settings(**{"folds": 2, "trials": 2, **settings}))


def held() -> list[object]:
    # Not isinstance: it reads the __class__ of every object, and objects of some libraries warn about that.
    return [one for one in gc.get_objects() if type(one) in (Recording, Labels, Dataset, LabelledDataset)]


def test_the_command_has_dropped_the_test_recordings_and_labels_when_the_search_begins(
    tsadbench, tmp_path, monkeypatch
):
    card = write_plant(tmp_path / "plant", 300)
    before = held()
    alive = []

    def look(*arguments):
        gc.collect()
        alive.extend(one for one in held() if not any(one is earlier for earlier in before))
        return run_study(*arguments)

    monkeypatch.setattr(api, "run_study", look)
    done = tsadbench("tune", "-d", DISTANCE, "--dataset", card, "--trials", 1, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert [type(one) for one in alive] == [Recording]
    assert alive[0].n_rows == 300
    assert "train" in alive[0].id


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_no_test_row_is_in_the_memory_of_the_boxes(storage, monkeypatch):
    data = marked_data()
    seen = {}

    class Looks(Box):
        def fit(self, recordings):
            super().fit(recordings)
            for process in children() if not seen else ():
                seen[process.pid] = (n_in_memory(process.pid, _TRAIN), n_in_memory(process.pid, _TEST))

    monkeypatch.setattr("tsadbench.tuning.objective.Box", Looks)
    run_study(tasked(data, trials=1), storage, print)
    assert n_found(data.dataset.test[0].values.tobytes(), _TEST) == 300  # the method sees what is there
    assert len(seen) >= 2  # the boxes' server, a box
    assert sum(train >= 200 for train, _ in seen.values()) >= 1
    assert all(test == 0 for _, test in seen.values())


def test_rows_that_recur_in_a_test_recording_are_not_tuned_on():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(600, 2))
    train = Recording("normal", values, ("a", "b"), time=np.arange(600.0))
    test = Recording("test", values[560:], ("a", "b"), time=np.arange(560.0, 600.0))
    splits = {"overall": ("test",)}
    data = LabelledDataset(
        Dataset("shares", (train,), (test,), splits), Labels({"test": np.zeros(40, dtype=bool)}, splits)
    )
    ((recording,),) = tasked(data).parts
    assert recording.n_rows == 560
    np.testing.assert_array_equal(recording.values, values[:560])


READS = """
from tsadbench import Detector, Traits
from tsadbench.base.search_space import Tune
import numpy as np, pathlib, pickle

class Reads(Detector):
    traits = Traits(memory=0)
    def __init__(self, *, depth: int = 1):
        self.depth = depth
    @classmethod
    def search_space(cls):
        return {"depth": Tune(1, 4)}
    def _fit(self, recordings):
        %s
    def _score(self, recording):
        return np.zeros(recording.n_rows)
"""


def test_a_detector_that_reaches_for_the_data_is_invalid_and_the_study_goes_on(tmp_path, storage):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "labels.csv").write_text("1\n")
    (tmp_path / "reads.py").write_text(READS % f"open('{tmp_path}/data/labels.csv')")
    task = tasked(marked_data(tmp_path / "data"), f"{tmp_path}/reads.py:Reads")
    found = run_study(task, storage, print)
    assert found["state"].tolist() == ["invalid"] * 2
    assert "data" in found["reason"][0]
