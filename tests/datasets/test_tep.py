"""The Tennessee Eastman process: its files, its splits, its prior."""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.page_tables import tables
from tests.helpers.plans import make_plan
from tsadbench import DataError
from tsadbench.base.dataset import DataOptions, LabelledDataset, check_labels
from tsadbench.datasets import tep
from tsadbench.datasets.source import Source
from tsadbench.errors import DataNotFoundError

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skab  # its files lie beside SKAB's


@pytest.fixture(scope="session")
def folder(skab_directory: Path) -> Path:
    return skab_directory / "tep"


@pytest.fixture(scope="session")
def data(folder: Path) -> LabelledDataset:
    return tep.load(DataOptions(directory=folder.parent))


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path / "tep")
    return tmp_path / "tep"


def test_recordings_and_labels(data: LabelledDataset) -> None:
    check_labels(data)
    (train,) = data.dataset.train
    assert train.values.shape == (500, 52)
    assert [one.id for one in data.dataset.test] == [f"d{fault:02}" for fault in range(22)]
    assert {one.n_rows for one in data.dataset.test} == {960}
    assert not data.labels.rows["d00"].any()
    for fault in range(1, 22):
        np.testing.assert_array_equal(np.flatnonzero(data.labels.rows[f"d{fault:02}"]), np.arange(160, 960))


def test_causes_are_those_of_the_page_and_follow_the_rule(data: LabelledDataset) -> None:
    """Disturbances by the part of the plant that they act on, and the loops of its control."""
    every = tables((ROOT / "docs/systems/tep.md").read_text(encoding="utf-8"))
    (table,) = (one for one in every if "first sensors" in one[0])
    shown = {f"d{int(row['fault']):02}": tuple(row["first sensors"].split(", ")) for row in table}
    assert list(shown) == [f"d{fault:02}" for fault in range(1, 22)]
    assert {name for name, sensors in shown.items() if sensors == ("-",)} == {"d13", *(f"d{i}" for i in range(16, 21))}
    assert {name: causes[0].sensors for name, causes in data.labels.causes.items()} == {
        name: sensors for name, sensors in shown.items() if sensors != ("-",)
    }
    assert {(cause.start, cause.stop) for causes in data.labels.causes.values() for cause in causes} == {(160, 960)}
    reactor_cooling, condenser_cooling = ("d04", "d11", "d14"), ("d05", "d12", "d15")
    for name in (*reactor_cooling, "d03", "d09"):
        assert set(shown[name]) == {"XMEAS(9)", "XMEAS(21)", "XMV(10)"}
    for name in condenser_cooling:
        assert {"XMEAS(11)", "XMEAS(22)"} <= set(shown[name]) <= {"XMEAS(11)", "XMEAS(22)", "XMV(11)"}
    # Who measures or holds a loop is in it: its valve is to blame with it.
    valves = {"XMEAS(1)": "XMV(3)", "XMEAS(4)": "XMV(4)", "XMEAS(19)": "XMV(9)", "XMEAS(21)": "XMV(10)"}
    cascades = {"XMEAS(23)": "XMEAS(1)", "XMEAS(18)": "XMEAS(19)", "XMEAS(9)": "XMEAS(21)"}
    for sensors in map(set, shown.values()):
        for first, then in {**valves, **cascades}.items():
            assert first not in sensors or then in sensors


def test_the_description_does_not_tell_the_faults(data: LabelledDataset) -> None:
    """A prior that is read from it must not be read from a list of what the test holds."""
    assert not {"fault", "disturbance", "sticking"} & set(data.dataset.description.lower().split())


def test_the_training_file_is_read_the_right_way_round(data: LabelledDataset, folder: Path) -> None:
    first_line = (folder / "d00.dat").read_text().splitlines()[0].split()
    np.testing.assert_array_equal(data.dataset.train[0].values[:, 0], [float(number) for number in first_line])
    # The same plant in normal operation: medians of training and normal test rows agree.
    train, normal = data.dataset.train[0].values, data.dataset.test[0].values
    assert (np.abs(np.median(normal, axis=0) - train.mean(axis=0)) < 2.0 * train.std(axis=0)).all()


def test_splits(data: LabelledDataset) -> None:
    splits = data.dataset.splits
    assert splits["normal"] == ("d00",)
    assert splits["fault07"] == ("d07",)
    assert len(splits) == 24
    assert set(splits["overall"]) - set(splits["detectable"]) == {"d03", "d09", "d15"}


def test_each_simulated_run_is_a_session(data: LabelledDataset) -> None:
    sessions, recordings = data.dataset.sessions, (*data.dataset.train, *data.dataset.test)
    assert set(sessions) == {"normal", *(f"d{fault:02}" for fault in range(22))}
    assert len(set(sessions.values())) == 22
    for first, second in combinations(recordings, 2):
        n_rows = min(first.n_rows, second.n_rows)
        shared = int((first.values[:n_rows] == second.values[:n_rows]).all(axis=1).sum())
        assert shared == (160 if (first.id, second.id) == ("d04", "d05") else 0)
        assert (sessions[first.id] == sessions[second.id]) is (shared > 0)


def test_rows_and_floor_under_strict(data: LabelledDataset) -> None:
    from tsadbench.execution.runner import run_plan

    (record,) = run_plan(make_plan(["all-positive"], dataset=data, floors=False), None)
    overall, normal = record.splits["overall"], record.splits["normal"]
    assert (overall.n_rows, overall.n_anomalous) == (20_460, 16_800)
    assert overall.metrics["prac_f1"] == pytest.approx(0.902, abs=5e-4)
    assert (normal.n_rows, normal.n_anomalous) == (930, 0)
    assert normal.metrics["auroc"] is None
    assert record.splits["fault01"].n_anomalous == 800


def test_the_prior_fits_and_names_every_way_that_the_system_has(data: LabelledDataset) -> None:
    prior = data.dataset.prior
    assert prior is not None
    prior.check(data.dataset.sensors)
    couplings = {(edge.source, edge.target) for edge in prior.edges}
    assert ("XMV(10)", "XMEAS(9)") in couplings  # heat: cooling water
    assert ("XMEAS(6)", "XMEAS(7)") in couplings  # mass: feed raises pressure
    assert ("XMEAS(26)", "XMEAS(40)") in couplings  # reaction: D becomes G
    assert not any(target.startswith("XMV") for _, target in couplings)  # valves are moved, not driven
    targets = {target for _, target in couplings}
    assert {f"XMEAS({i})" for i in range(5, 42)} <= targets
    for sensor in data.dataset.sensors:
        assert f"| {sensor} |" in data.dataset.description


def test_a_changed_file_is_refused_or_noted(copied: Path) -> None:
    lines = (copied / "d05_te.dat").read_text().splitlines()
    (copied / "d05_te.dat").write_text("\n".join([lines[0].replace("2", "3", 1), *lines[1:]]))
    with pytest.raises(DataError, match=r"tep: 1 of 23 files in .* differs from the published ones .*: d05_te\.dat"):
        tep.load(DataOptions(directory=copied.parent))
    changed = tep.load(DataOptions(directory=copied.parent, allow_changed=True))
    assert changed.dataset.notes == ("1 of TEP's 23 files differs from the published ones: d05_te.dat.",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 2 3\n4 5 6\n", "expected 960 lines of 52 finite numbers, found 2 of 3"),
        ("1 2 x\n", "expected numbers alone"),
        ("1 2\n1\n", "expected numbers alone"),
        ("\n".join([" ".join(["nan"] * 52)] * 960), "expected 960 lines of 52 finite numbers"),
    ],
    ids=["too short", "a letter", "ragged", "not a number"],
)
def test_a_damaged_file_is_named(copied: Path, content: str, message: str) -> None:
    (copied / "d11_te.dat").write_text(content)
    with pytest.raises(DataError, match=f"d11_te.dat: {message}"):
        tep.load(DataOptions(directory=copied.parent, allow_changed=True))


def test_a_missing_file_is_named(copied: Path) -> None:
    (copied / "d20_te.dat").unlink()
    with pytest.raises(
        DataNotFoundError, match=r"1 of 23 files are missing .* d20_te\.dat; run  tsadbench data fetch tep"
    ):
        tep.load(DataOptions(directory=copied.parent))


def test_the_source_lists_the_files_that_are_read() -> None:
    assert set(Source.load("tep").sha256) == {"d00.dat", *(f"{name}_te.dat" for name in tep.TEST)}
