from __future__ import annotations

import csv
import io
import pickle
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io

from tests.helpers.cards import frame
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets import tep
from tsadbench.datasets.cards.draft import draft_card as draft
from tsadbench.datasets.cards.reader import load_card
from tsadbench.errors import DataError, UsageError


def draft_card(folder: Path) -> str:
    """Return the text of the card that is drafted for a folder."""
    return draft(folder).text


def drafted(folder: Path) -> LabelledDataset:
    """Return the data set of the card that is drafted for a folder, not a letter of it changed."""
    (folder / "card.toml").write_text(draft_card(folder))
    return load_card(folder / "card.toml")


def test_a_plain_folder(plant):
    expected = load_card(plant / "card.toml")
    found = drafted(plant)
    assert found.dataset.content_hash == expected.dataset.content_hash
    assert found.labels.rows.keys() == expected.labels.rows.keys()
    assert all(np.array_equal(found.labels.rows[id_], rows) for id_, rows in expected.labels.rows.items())


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-8-sig"])
def test_however_it_is_written(plant, separator, decimal, encoding):
    if separator == decimal:
        pytest.skip("cells would have to be quoted")
    expected = load_card(plant / "card.toml").dataset
    for path in plant.glob("*/*.csv"):
        table = pd.read_csv(path).rename(columns={"flow": "Durchfluß"})
        table.to_csv(path, sep=separator, decimal=decimal, encoding=encoding, index=False)
    found = drafted(plant).dataset
    assert found.sensors == ("Durchfluß", "head")
    assert all(np.array_equal(a.values, b.values) for a, b in zip(found.test, expected.test, strict=True))


@pytest.mark.parametrize(
    "form",
    ["%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%Y/%m/%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"],
)
def test_times(plant, form):
    expected = load_card(plant / "card.toml").dataset.train[0].time
    for path in plant.glob("*/*.csv"):
        table = pd.read_csv(path)
        table["time"] = pd.to_datetime(table["time"], utc=True).dt.strftime(form)
        table.rename(columns={"time": "Messzeit"}).to_csv(path, index=False)
    # The first of May read as the fifth of January would be wrong: only a person knows, so only order is asked for.
    found = drafted(plant).dataset.train[0].time
    assert found is not None
    assert np.array_equal(np.diff(found), np.diff(expected))


@pytest.mark.parametrize(
    ("name", "normal", "anomalous"),
    [("Normal/Attack", "Normal", "Attack"), ("is_anomaly", "False", "True"), ("class", "0", "7"), ("Fault", "no", "x")],
)
def test_labels(plant, name, normal, anomalous):
    for path in plant.glob("*/*.csv"):
        table = pd.read_csv(path).rename(columns={"fault": name})
        table[name] = np.where(table[name] == 1, anomalous, normal)
        table.to_csv(path, index=False)
    labels = drafted(plant).labels
    assert np.flatnonzero(labels.rows["test/c"]).tolist() == list(range(40, 50))


def test_columns_that_are_no_sensors(plant):
    for path in plant.glob("*/*.csv"):
        table = pd.read_csv(path)
        table["operator"] = "Jane"
        table["changepoint_label"] = 0
        table["spare"] = np.nan
        table.to_csv(path)
    assert drafted(plant).dataset.sensors == ("flow", "head")
    text = (plant / "card.toml").read_text()
    assert "operator: text" in text
    assert "changepoint_label: another label" in text
    assert "spare: empty" in text


def test_one_folder_of_mixed_files(tmp_path):
    for name, faults in (("run_1", (100, 120)), ("run_2", (90, 95)), ("normal_run", None), ("run_10", (60, 70))):
        frame(150, faults=faults).to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "readme.txt").write_text("Recorded by hand.\n")
    data = drafted(tmp_path).dataset
    assert [one.id for one in data.train] == ["normal_run"]
    assert [one.id for one in data.test] == ["run_1", "run_2", "run_10"]
    assert "left out readme.txt: no table of numbers" in (tmp_path / "card.toml").read_text()


def test_one_file_alone_trains_on_what_lies_before_its_first_anomaly(tmp_path):
    frame(400, faults=(300, 320)).to_csv(tmp_path / "all.csv", index=False)
    data = drafted(tmp_path).dataset
    assert (data.train[0].n_rows, data.test[0].n_rows) == (150, 250)


def test_tsb_ad(tmp_path):
    table = frame(400, faults=(300, 320)).drop(columns="time").rename(columns={"fault": "Label"})
    table.to_csv(tmp_path / "001_NAB_id_1_Facility_tr_107_1st_300.csv", index=False)
    assert drafted(tmp_path).dataset.train[0].n_rows == 107
    assert 'train_rows = "file name"' in (tmp_path / "card.toml").read_text()


def test_folders_of_test_files_become_splits(tmp_path):
    for seed, name in enumerate(("train/a", "valve/a", "valve/b", "motor/a")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        frame(100, seed=seed, faults=None if name == "train/a" else (50, 60)).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    assert dict(drafted(tmp_path).dataset.splits) == {
        "overall": ("motor/a", "valve/a", "valve/b"),
        "motor": ("motor/a",),
        "valve": ("valve/a", "valve/b"),
    }


def test_parquet(plant):
    for path in plant.glob("*/*.csv"):
        table = pd.read_csv(path)
        table["time"] = pd.to_datetime(table["time"])
        table.to_parquet(path.with_suffix(".parquet"))
        path.unlink()
    assert drafted(plant).dataset.test[0].n_rows == 60


class TestLabelsElsewhere:
    """Files of their own tell which rows are anomalous."""

    @pytest.fixture
    def truth(self, plant) -> LabelledDataset:
        """The labels of the plant, whose files lose them."""
        truth = load_card(plant / "card.toml")
        for path in plant.glob("*/*.csv"):
            pd.read_csv(path).drop(columns="fault").to_csv(path, index=False)
        return truth

    @pytest.mark.parametrize("name", ["labels/{}.csv", "test/{}_label.csv"])
    @pytest.mark.parametrize("header", [["anomaly"], False])
    def test_a_file_for_each_recording(self, plant, truth, name, header):
        for id_, rows in truth.labels.rows.items():
            path = plant / name.format(id_.removeprefix("test/"))
            path.parent.mkdir(exist_ok=True)
            pd.DataFrame({"anomaly": rows.astype(int)}).to_csv(path, index=False, header=header)
        found = drafted(plant)
        assert found.dataset.content_hash == truth.dataset.content_hash
        assert found.labels.content_hash == truth.labels.content_hash

    @pytest.mark.parametrize("unit", ["rows", "time"])
    def test_intervals(self, plant, truth, unit):
        seconds = pd.Timestamp("2024-05-01 12:00:00") + pd.to_timedelta(np.arange(60), unit="s")
        events = [("test/c", 40, 49), ("test/d", 30, 59)]
        table = pd.DataFrame(events, columns=["recording", "start", "end"])
        if unit == "time":
            table[["start", "end"]] = [[seconds[start], seconds[end]] for _, start, end in events]
        table.to_csv(plant / "events.csv", index=False)
        draft = draft_card(plant)
        assert f'intervals = "events.csv"\nunit = "{unit}"' in draft
        if unit == "rows":  # what times tell is not looked up: which files are for training is not known then
            assert drafted(plant).labels.content_hash == truth.labels.content_hash

    def test_pickles(self, tmp_path):
        rng = np.random.default_rng(0)
        for server in ("1", "2", "10"):
            for part in ("train", "test"):
                (tmp_path / f"omi-{server}_{part}.pkl").write_bytes(pickle.dumps(rng.normal(size=(60, 4))))
            labels = (np.arange(60) // 10 == 4).astype(float)
            (tmp_path / f"omi-{server}_test_label.pkl").write_bytes(pickle.dumps(labels))
        (tmp_path / "model.pkl").write_bytes(pickle.dumps({"weights": [1.0]}))
        data, labels_of = drafted(tmp_path)
        assert data.sensors == ("x1", "x2", "x3", "x4")
        assert [one.id for one in data.train] == ["omi-1_train", "omi-2_train", "omi-10_train"]
        assert [one.id for one in data.test] == ["omi-1_test", "omi-2_test", "omi-10_test"]
        assert all(np.flatnonzero(rows).tolist() == list(range(40, 50)) for rows in labels_of.rows.values())
        assert "left out model.pkl: no table of numbers" in (tmp_path / "card.toml").read_text()


def test_arrays_of_one_file(tmp_path):
    runs = {f"run{number}": np.random.default_rng(number).normal(size=(60, 3)) for number in (1, 2)}
    scipy.io.savemat(tmp_path / "rig.mat", {**runs, "size": np.zeros((60, 1))})
    draft = draft_card(tmp_path)
    assert 'files = ["rig.mat"]\nvariables = ["run1", "run2"]' in draft
    assert 'names = "x{number}"' in draft
    assert "NOT FOUND" in draft


def test_without_a_label_the_card_says_so(plant):
    for path in plant.glob("*/*.csv"):
        pd.read_csv(path).drop(columns="fault").to_csv(path, index=False)
    assert "NOT FOUND: name the column that tells anomalous rows" in draft_card(plant)


def test_missing_values_are_pointed_at_and_never_filled_unasked(plant):
    table = pd.read_csv(plant / "test/c.csv")
    table.loc[5, "flow"] = np.nan
    table.to_csv(plant / "test/c.csv", index=False)
    assert "# 1 values are missing in the first rows of 1 files, test/c.csv among them." in draft_card(plant)
    data = drafted(plant).dataset
    # Rows 0 to 4 are too few for a recording of their own.
    assert [(one.id, one.n_rows) for one in data.test] == [("test/c/1", 54), ("test/d", 60)]
    assert data.notes[0].startswith("1 rows with missing values")
    assert "DECIDE: rows with missing values are left out" in (plant / "card.toml").read_text()


def test_numbers_among_texts_are_no_years(plant):
    # The year -2 lies before what 64 bits of nanoseconds count.
    for path in plant.rglob("*.csv"):
        table = pd.read_csv(path)
        table.insert(0, "value", ["True", "-2"] * (len(table) // 2))
        table.to_csv(path, index=False)
    card = tomllib.loads(draft_card(plant))
    assert card["columns"]["time"] == "time"
    assert card["columns"]["ignore"] == ["value"]


@pytest.mark.parametrize("files", [{}, {"a.xlsx": "x"}, {".hidden/a.csv": "a,b\n1,2\n"}])
def test_a_folder_without_tables(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match="expected files that end in"):
        draft_card(tmp_path)


@pytest.mark.parametrize("text", ["", "hello\n", "a,b\n", "\x00\x01", "name,place\nx,y\nz,w\n"])
def test_files_that_are_no_tables(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match="no file is a table"):
        draft_card(tmp_path)


def test_three_commands_from_strangers_files_to_a_leaderboard(tmp_path, tsadbench, skab_directory):
    """TEP as a plant's historian might export it: other names, German numbers, one folder."""
    data, labels = tep.load(DataOptions(directory=skab_directory))
    names = [f"{kind}-{i:03}" for i, kind in enumerate(["FI", "PI", "TI", "LI"] * 13)]
    for part, recording in [("normal", data.train[0]), *(("runs", one) for one in data.test[:4])]:
        table = pd.DataFrame(recording.values, columns=names)
        start = pd.Timestamp("2024-03-01")
        table.insert(0, "Datum", pd.date_range(start, periods=len(table), freq="3min").strftime("%d.%m.%Y %H:%M"))
        rows = labels.rows.get(recording.id, np.zeros(len(table), dtype=bool))
        table["fault_active"] = np.where(rows, "yes", "no")
        (tmp_path / part).mkdir(exist_ok=True)
        table.to_csv(tmp_path / part / f"{recording.id}.csv", sep=";", decimal=",", index=False, encoding="cp1252")
    card = tmp_path / "card.toml"
    made = tsadbench("data", "new", tmp_path)
    assert made.code == 0, made.err
    assert f"tsadbench data validate {card}" in made.out
    validated = tsadbench("data", "validate", card)
    assert validated.code == 0, validated.err
    assert "test      4 recordings, 3,840 rows, 2,400 anomalous (62.5%)" in validated.out
    run = tsadbench("run", "--dataset", card, "--detector", "t2", "--format", "csv", "--out", tmp_path / "runs-of-t2")
    assert run.code == 0, run.err
    (row,) = [row for row in csv.DictReader(io.StringIO(run.out)) if row["detector"] == "t2"]
    assert (row["status"], row["coverage"]) == ("ok", "1.0")
    # The values are TEP's, so the table is that of the same four recordings of TEP.
    loaded = load_card(card)
    assert np.array_equal(loaded.dataset.train[0].values, data.train[0].values)
    assert all(
        np.array_equal(mine.values, theirs.values)
        for mine, theirs in zip(loaded.dataset.test, data.test[:4], strict=True)
    )


def test_new_does_not_overwrite(plant, tsadbench):
    before = (plant / "card.toml").read_text()
    refused = tsadbench("data", "new", plant)
    assert refused.code == 2
    assert "exists already: read it, or overwrite it with --force" in refused.err
    assert (plant / "card.toml").read_text() == before
    assert tsadbench("data", "new", plant, "--force").code == 0
    assert (plant / "card.toml").read_text() != before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "card.txt"], "a card's name must end in .toml"),
        (["--out", "/tmp/elsewhere.toml"], "a card lies beside its files"),
    ],
)
def test_new_with_wrong_options(plant, tsadbench, arguments, message):
    found = tsadbench("data", "new", plant, *arguments)
    assert found.code == 2
    assert message in found.err


def test_validate_reports_a_recording_of_which_the_default_protocol_evaluates_no_row(plant, tsadbench):
    frame(30).to_csv(plant / "test/c.csv", index=False)
    found = tsadbench("data", "validate", plant / "card.toml")
    assert found.code == 2
    assert "the protocol 'strict' evaluates no row of recording 'test/c' (30 rows); leave it out" in found.err
    found = tsadbench("run", "--dataset", plant / "card.toml", "-d", "max-z", "--no-floors", "--out", plant / "runs")
    assert found.code == 0
    assert "no row of recording 'test/c' (30 rows) is evaluated" in " ".join((found.out + found.err).split())


def test_validate_lists_all_and_exits_2(plant, edit, tsadbench):
    edit("head", "heat", "test/c.csv")
    edit("[train]", "colour = 1\n[train]")
    found = tsadbench("data", "validate", plant / "card.toml")
    assert found.code == 2
    assert "2 problems" in found.err
    assert "card.toml, line 4: unknown key colour" in found.err
    assert "test/c.csv, line 1: the sensor 'head' is missing" in found.err
    assert "Traceback" not in found.err


def test_the_draft_suggests_sessions_and_validate_tells_which_there_are(plant, edit, tsadbench):
    assert "# [sessions]\n" in draft_card(plant)
    inferred = tsadbench("data", "validate", plant / "card.toml")
    assert "sessions  2 under test, inferred: test/c, test/d" in inferred.out
    card = edit("[train]", '[sessions]\nmonday = ["*"]\n[train]')
    assert "sessions  1 under test, declared: monday" in tsadbench("data", "validate", card).out


@pytest.mark.parametrize("command", [["data", "validate"], ["run", "-d", "max-z", "--dataset"]])
def test_a_recording_in_two_sessions_is_one_line_and_exit_code_2(plant, edit, tsadbench, command):
    card = edit("[train]", '[sessions]\none = ["*"]\ntwo = ["test/c"]\n[train]')
    found = tsadbench(*command, card)
    assert found.code == 2
    assert "card.toml, line 6: sessions.two: recording 'test/c' belongs to sessions.one too" in found.err
    assert "1 problem" in found.err
    assert "Traceback" not in found.err


@pytest.mark.parametrize(
    ("dataset", "more", "message"),
    [
        ("{plant}/card.toml", ["--data", "{plant}"], "--data is for data sets with a name"),
        ("{plant}", [], "the path of a card, which ends in .toml"),
        ("{plant}/other.toml", [], "there is no such file"),
    ],
)
def test_run_with_wrong_cards(plant, tsadbench, dataset, more, message):
    texts = [text.format(plant=plant) for text in ["--dataset", dataset, *more]]
    found = tsadbench("run", *texts, "--detector", "t2", "--out", plant / "runs")
    assert found.code == 2
    assert message in found.err


def test_a_card_cannot_take_the_name_of_a_data_set(plant, edit, tsadbench):
    found = tsadbench("data", "validate", edit('"plant"', '"skab"'))
    assert found.code == 2
    assert "the name 'skab' belongs to a registered data set" in found.err


def test_audit_reads_cards(plant, tsadbench):
    found = tsadbench("data", "audit", plant / "card.toml", "--format", "json")
    assert found.code == 0, found.err
