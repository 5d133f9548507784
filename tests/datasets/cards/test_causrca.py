"""causRCA as it is published: every choice of its card is derived from the files again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.cards.causrca import load, read_graph
from tsadbench.errors import DataError

COUNTERS = {"M_PowerOnDuration", "Prog_CuttingTime", "Prog_CycleTime"}


def _as_counted(path: Path) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(path))]


@pytest.fixture(scope="module")
def folder(skab_directory: Path) -> Path:
    """The folder with the files."""
    return skab_directory / "causrca"


@pytest.fixture(scope="module")
def loaded(folder) -> LabelledDataset:
    """The data set."""
    return load(DataOptions(directory=folder.parent))


@pytest.fixture(scope="module")
def files(folder) -> dict[str, pd.DataFrame]:
    """All files by the names of their recordings: real ones first."""
    real = sorted((folder / "real_op").glob("*.csv"), key=_as_counted)
    runs = sorted((folder / "dig_twin").glob("exp_*/exp_*/run_*/*.csv"), key=_as_counted)
    names = [path.stem.removeprefix("dataset_") for path in real]
    names += [path.parent.relative_to(folder / "dig_twin").as_posix().removeprefix("exp_") for path in runs]
    frames = (pd.read_csv(path, dtype={"value": "str"}, keep_default_na=False) for path in (*real, *runs))
    return dict(zip(names, frames, strict=True))


@pytest.fixture(scope="module")
def causes(folder, loaded) -> dict[str, tuple[float, float, list[str]]]:
    """Start and end of the fault in each run, and what was manipulated, as the authors' files say."""
    found = {}
    for recording in loaded.dataset.test:
        run = folder / "dig_twin" / f"exp_{recording.id}"
        times = json.loads((run / "causes.json").read_text())
        (about,) = run.parent.glob("*_description.json")
        manipulated = json.loads(about.read_text())["manipulatedVars"]
        found[recording.id] = times["cause_start_at"], times["cause_end_at"], manipulated
    return found


@pytest.mark.skab  # its files lie beside SKAB's
class TestPublished:
    def test_recordings_come_in_the_files_order(self, loaded, files):
        dataset = loaded.dataset
        assert [recording.id for recording in (*dataset.train, *dataset.test)] == list(files)
        assert (len(dataset.train), len(dataset.test)) == (170, 100)
        assert {name: len(ids) for name, ids in dataset.splits.items()} == {
            "overall": 100,
            "coolant": 25,
            "hydraulics": 41,
            "probe": 34,
        }

    def test_sensors_are_the_binary_and_continuous_nodes_that_every_file_has(self, loaded, files):
        kinds = pd.concat(files.values()).drop_duplicates("node").set_index("node")["type"]
        assert len(kinds) == 96
        assert set(kinds[kinds == "Counter"].index) == COUNTERS
        common = set.intersection(*(set(frame["node"]) for frame in files.values()))
        quantities = {node for node in common if kinds[node] in ("Binary", "Continuous")}
        assert set(loaded.dataset.sensors) == quantities
        assert len(quantities) == 34
        assert not [node for node in common if kinds[node] == "Alarm"]

    def test_each_row_holds_the_last_value_before_the_next_row(self, loaded, files):
        dataset = loaded.dataset
        for recording in (*dataset.train[::20], *dataset.test[::9]):
            frame = files[recording.id]
            frame = frame[frame["node"].isin(dataset.sensors)]
            numbers = frame["value"].replace({"True": "1", "False": "0"}).astype(np.float64)
            seconds = np.floor(frame["time_s"]).astype(int)
            last = numbers.groupby([seconds, frame["node"]]).last().unstack()
            n_rows = int(files[recording.id]["time_s"].iloc[-1]) + 1
            expected = last.reindex(range(n_rows)).ffill()[list(dataset.sensors)]
            np.testing.assert_array_equal(recording.values, expected.to_numpy())
            np.testing.assert_array_equal(recording.time, np.arange(float(n_rows)))

    def test_labels_go_from_the_cause_to_its_end(self, loaded, causes):
        for recording in loaded.dataset.test:
            start, end, _ = causes[recording.id]
            expected = [second + 1 > start and second <= end for second in range(recording.n_rows)]
            assert loaded.labels.rows[recording.id].tolist() == expected

    def test_causes_are_the_manipulated_sensors(self, loaded, causes):
        sensors = set(loaded.dataset.sensors)
        expected = {id_: found & sensors for id_, (*_, names) in causes.items() if (found := set(names)) & sensors}
        assert {id_: set(events[0].sensors) for id_, events in loaded.labels.causes.items()} == expected
        assert len(expected) == 34
        for id_, events in loaded.labels.causes.items():
            assert len(events) == 1
            assert np.flatnonzero(loaded.labels.rows[id_]).tolist() == list(range(events[0].start, events[0].stop))

    def test_each_experiment_and_each_real_recording_is_a_session(self, loaded):
        sessions = loaded.dataset.sessions
        assert {id_: id_ for id_ in sessions if id_.startswith("real")}.items() <= sessions.items()
        experiments = {recording.id: recording.id.partition("/run_")[0] for recording in loaded.dataset.test}
        assert len(set(experiments.values())) == 19
        for one, other in (("probe/exp_1", "probe/exp_6"), ("probe/exp_2_3", "probe/exp_7")):
            joined = f"{one} and {other}"
            experiments = {name: joined if own in (one, other) else own for name, own in experiments.items()}
        assert experiments == {name: sessions[name] for name in experiments}

    def test_the_prior_is_the_experts_graph_between_the_sensors(self, folder, loaded):
        graph = pd.read_csv(folder / "expert_graph/all_edges.csv")
        pairs = set(zip(graph["source_label"], graph["target_label"], strict=True))
        sensors = set(loaded.dataset.sensors)
        found = {(edge.source, edge.target) for edge in loaded.dataset.prior.edges}
        assert found == {pair for pair in pairs if set(pair) <= sensors}
        assert len(found) == 25

    def test_the_counter_of_cutting_time_alone_would_tell_the_runs_with_faults_from_real_recordings(
        self, loaded, files
    ):
        """Why they are left out: every normal row lies outside their training range, and none by the sensors."""
        train = np.concatenate([recording.values for recording in loaded.dataset.train])
        low, high = train.min(axis=0), train.max(axis=0)
        for recording in loaded.dataset.test:
            normal = recording.values[~loaded.labels.rows[recording.id]]
            assert ((normal >= low) & (normal <= high)).all()
        hours = {}
        for id_, frame in files.items():
            hours[id_] = frame[frame["node"] == "Prog_CuttingTime"]["value"].astype(np.float64)
        real = pd.concat(hours[recording.id] for recording in loaded.dataset.train)
        for recording in loaded.dataset.test:
            assert not hours[recording.id].between(real.min(), real.max()).any()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("source,target\n1,2\n", "expected the columns source_label"),
        ("source_label,target_label,comment\na,b\n", "expected the columns source_label"),
        ("source_label,target_label,comment\na,x,why\n", "expected at least one edge"),
    ],
)
def test_a_damaged_graph_is_one_message(tmp_path, text, words):
    path = tmp_path / "edges.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        read_graph(path, ("a", "b"))


def test_couplings_that_are_named_twice_count_once(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text('comment,source_label,target_label\n"a\n  drives b",a,b\nagain,a,b\nother,a,c\n')
    (edge,) = read_graph(path, ("a", "b")).edges
    assert (edge.source, edge.target, edge.mechanism) == ("a", "b", "a drives b")
