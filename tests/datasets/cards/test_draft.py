"""`tsadbench data new`: what the drafted card loads without any edit."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from tests.helpers.cards import frame
from tsadbench.base.dataset import LabelledDataset
from tsadbench.datasets.draft import draft_card
from tsadbench.datasets.reader import load_card
from tsadbench.errors import DataError, UsageError

FLOW_AND_HEAD = ("flow", "head")


class Told(NamedTuple):
    """What is loaded: ids of training and test recordings, anomalous rows by recording, sensors; what the card says."""

    train: tuple[str, ...]
    test: tuple[str, ...] = ()
    labels: Mapping[str, range] = {}
    sensors: tuple[str, ...] = FLOW_AND_HEAD
    says: tuple[str, ...] = ()


def rows(folder: Path, name: str, seed: int = 0, faults: range | None = None, n_rows: int = 90, **options: object):
    """Write rows of `frame`, labelled if there are faults, changed by ``change``; return them unchanged."""
    change: Callable[[pd.DataFrame], pd.DataFrame] = options.pop("change", lambda table: table)
    table = frame(n_rows, seed=seed, faults=None if faults is None else (faults.start, faults.stop))
    table = table if faults is not None else table.drop(columns="fault")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".parquet"):
        change(table).to_parquet(folder / name, index=False)
    else:
        change(table).to_csv(folder / name, index=False, **options)
    return table


def only_normal_days(folder):
    for day in (1, 2, 10):
        rows(folder, f"day{day}.csv", day)
    return Told(("day1", "day2", "day10"))


def train_and_test_with_labels(folder):
    rows(folder, "train/a.csv")
    rows(folder, "test/b.csv", 1, range(60, 70))
    return Told(("train/a",), ("test/b",), {"test/b": range(60, 70)})


def names_that_say_normal_or_not(folder):
    rows(folder, "normal_run.csv")
    for number, name in enumerate(("unhealthy", "run_10", "run_9")):
        rows(folder, f"{name}.csv", number, range(60, 70))
    test = ("run_9", "run_10", "unhealthy")
    return Told(("normal_run",), test, dict.fromkeys(test, range(60, 70)))


def labels_in_a_column_and_nothing_normal_alone(folder):
    rows(folder, "run0.csv", 0, range(50, 80))
    rows(folder, "run1.csv", 1, range(3, 10))
    return Told(
        ("run0/train", "run1/train"), ("run0/test", "run1/test"), {"run0/test": range(30), "run1/test": range(7)}
    )


def labels_in_words(folder):
    def in_words(table):
        return table.assign(fault=np.where(table["fault"] == 1, "Attack", "Normal")).rename(
            columns={"fault": "Normal/Attack"}
        )

    rows(folder, "train/a.csv", 0, range(0), change=in_words)
    rows(folder, "test/b.csv", 1, range(60, 70), change=in_words)
    return Told(("train/a",), ("test/b",), {"test/b": range(60, 70)})


def labels_in_intervals(folder):
    rows(folder, "normal/a.csv")
    rows(folder, "runs/b.csv", 1)
    (folder / "events.csv").write_text("recording,start,end\nruns/b,50,60\n")
    return Told(("normal/a",), ("runs/b",), {"runs/b": range(50, 61)})


def german_files_of_a_historian(folder):
    """cp1252, semicolons, decimal commas, three lines above the names, dates by day, an operator's name."""
    for seed, part, name, faults in ((0, "Normal", "a", range(0)), (1, "Prüfung [neu]", "b", range(60, 70))):
        table = rows(folder, f"{part}/{name}.csv", seed, faults)
        table = table.rename(columns={"flow": "Durchfluß [l/min]", "head": "Druck [bar]"}).assign(Bediener="Jürgen")
        table["time"] = pd.to_datetime(table["time"]).dt.strftime("%d.%m.%Y %H:%M:%S")
        text = table.to_csv(sep=";", decimal=",", index=False, lineterminator="\r\n")
        (folder / part / f"{name}.csv").write_bytes(f"Anlage 7\r\nSüd\r\nvon Hand\r\n{text}".encode("cp1252"))
    return Told(
        ("Normal/a",), ("Prüfung [neu]/b",), {"Prüfung [neu]/b": range(60, 70)},
        ("Durchfluß [l/min]", "Druck [bar]"), ("Bediener", "decimal = \",\""),
    )  # fmt: skip


def texts_that_stand_for_missing_values(folder):
    def spoil(table):
        table = table.astype({"flow": object})
        table.loc[45, "flow"] = "Bad Input"
        return table

    rows(folder, "a.csv", change=spoil)
    rows(folder, "b.csv", 1)
    return Told(("a/1", "a/2", "b"), says=("Bad Input", 'policy = "cut"'))


def parquet(folder):
    rows(folder, "train/a.parquet")
    rows(folder, "test/b.parquet", 1, range(60, 70))
    return Told(("train/a",), ("test/b",), {"test/b": range(60, 70)})


def pickles_of_servers(folder):
    for server in ("1", "10"):
        for seed, part in enumerate(("train", "test"), int(server)):
            values = frame(60, seed=seed)[["flow", "head"]].to_numpy()
            (folder / f"omi-{server}_{part}.pkl").write_bytes(pickle.dumps(values))
        (folder / f"omi-{server}_test_label.pkl").write_bytes(pickle.dumps(np.arange(60.0) // 40))
    says = ("omi-1_test_label.pkl",)
    return Told(("omi-1_train", "omi-10_train"), ("omi-1_test", "omi-10_test"), sensors=("x1", "x2"), says=says)


def one_file_of_tsb_ad(folder):
    table = frame(400, faults=(300, 320)).drop(columns="time").rename(columns={"fault": "Label"})
    table.to_csv(folder / "001_NAB_id_1_tr_107_1st_300.csv", index=False)
    name = "001_NAB_id_1_tr_107_1st_300"
    return Told((f"{name}/train",), (f"{name}/test",), {f"{name}/test": range(193, 213)})


def leftovers(folder):
    """Everything but the tables is left out by name."""
    train_and_test_with_labels(folder)
    for name, content in (
        ("README.txt", b"Recorded by hand\nin May\n"), ("manual.pdf", b"%PDF-1.4\n\xff\xfe\x00"), ("plan.xlsx", b"PK"),
        ("old.zip", b"PK"), ("test/empty.csv", b""), ("test/header.csv", b"time,flow,head,fault\n"),
        ("test/binary.csv", bytes(range(256)) * 9), ("test/short.csv", b"time,flow,head,fault\n2024-05-01,1,2,0\n"),
    ):  # fmt: skip
        (folder / name).write_bytes(content)
    pd.DataFrame({"x": np.arange(50.0), "z": np.arange(50.0) ** 0.5}).to_csv(folder / "other.csv", index=False)
    out = ("manual.pdf", "plan.xlsx", "old.zip", "empty.csv", "header.csv", "binary.csv", "short.csv")
    return Told(("train/a",), ("test/b",), {"test/b": range(60, 70)}, says=(*out, "other.csv"))


LAYOUTS = (
    only_normal_days, train_and_test_with_labels, names_that_say_normal_or_not,
    labels_in_a_column_and_nothing_normal_alone, labels_in_words, labels_in_intervals,
    german_files_of_a_historian, texts_that_stand_for_missing_values,
    parquet, pickles_of_servers, one_file_of_tsb_ad, leftovers,
)  # fmt: skip


def drafted(folder: Path) -> tuple[LabelledDataset, str]:
    """Draft a card for a folder; return its data set and its text."""
    text = draft_card(folder / "card.toml").text
    return load_card(folder / "card.toml"), text


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_the_drafted_card_loads(layout, tmp_path):
    told = layout(tmp_path)
    (dataset, labels), text = drafted(tmp_path)
    assert tuple(one.id for one in dataset.train) == told.train
    assert tuple(one.id for one in dataset.test) == told.test
    assert dataset.sensors == told.sensors
    assert {id_: np.flatnonzero(one).tolist() for id_, one in labels.rows.items()} == {
        id_: [*one] for id_, one in told.labels.items()
    }
    assert all(one in text for one in told.says)
    timed = [one.time for one in (*dataset.train, *dataset.test) if one.time is not None]
    assert {float(step) for time in timed for step in np.diff(time)} <= {1.0}
    assert draft_card(tmp_path / "card.toml").text == text  # its own card does not disturb it


def test_more_sensors_than_a_card_names(tmp_path):
    """Its pattern matches neither what one file lacks nor what is named like a label, but varies like a sensor."""
    names = [*(f"s{number}" for number in range(101)), "Fault_Current"]
    values = pd.DataFrame(np.random.default_rng(0).normal(size=(60, len(names))), columns=names)
    values.assign(aux=values["s0"] ** 2).to_csv(tmp_path / "day1.csv", index=False)
    values.to_csv(tmp_path / "day2.csv", index=False)
    (dataset, _), text = drafted(tmp_path)
    assert set(dataset.sensors) == set(names)
    assert '"*"' in text


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(("decimal", "encoding"), [(".", "utf-8-sig"), (",", "cp1252"), (",", "utf-16")])
def test_values_are_those_of_the_files_however_they_are_written(tmp_path, separator, decimal, encoding):
    def renamed(table):
        return table.rename(columns={"flow": "Durchfluß"})

    written = rows(tmp_path, "a.csv", sep=separator, decimal=decimal, encoding=encoding, change=renamed)
    (dataset, _), _ = drafted(tmp_path)
    assert dataset.sensors == ("Durchfluß", "head")
    assert np.array_equal(dataset.train[0].values, written[["flow", "head"]])


@pytest.mark.parametrize(
    "form",
    ["%d.%m.%Y %H:%M:%S", "%d.%m.%y %H:%M", "%m/%d/%Y %I:%M:%S %p", "%Y/%m/%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z",
     "%Y-%m-%d %H:%M:%S,%f"],
)  # fmt: skip
def test_times(tmp_path, form):
    """After the 12th, so that the day cannot be the month."""
    when = pd.date_range("2024-05-13 09:00", periods=90, freq="h", tz="UTC")
    rows(tmp_path, "a.csv", sep=";", change=lambda table: table.assign(time=when.strftime(form)))
    (dataset, _), _ = drafted(tmp_path)
    assert np.array_equal(dataset.train[0].time, 1_715_590_800.0 + 3600.0 * np.arange(90))


@pytest.mark.parametrize(
    "cell",
    ["1,200.5", "{row}.5 1/min", "Stand by {row}", "06:{row:02d}"],
    ids=["thousands", "a unit", "texts", "a clock"],
)
def test_a_column_that_is_no_sensor_yet_is_named(tmp_path, cell):
    column = [cell.format(row=row % 60) for row in range(90)]
    rows(tmp_path, "a.csv", sep=";", change=lambda table: table.assign(Speed=column))
    (dataset, _), text = drafted(tmp_path)
    assert "Speed: text" in text
    assert dataset.sensors == FLOW_AND_HEAD


def test_a_test_file_does_not_train_where_the_normal_one_cannot_be_read(tmp_path, tsadbench):
    """In October, the clock goes back: the file stays in [train], and its line is named."""
    rows(tmp_path, "normal.csv")
    rows(tmp_path, "test.csv", 1)
    lines = (tmp_path / "normal.csv").read_text().splitlines()
    (tmp_path / "normal.csv").write_text("\n".join([*lines[:40], *lines[20:]]) + "\n")
    made = tsadbench("data", "new", tmp_path)
    assert made.code == 2
    assert "normal.csv, line 41" in made.err
    assert 'files = ["normal.csv"]' in (tmp_path / "card.toml").read_text().partition("[test]")[0]


@pytest.mark.parametrize(
    ("files", "error", "name"),
    [
        ({}, UsageError, None),
        ({"a.xlsx": "x"}, UsageError, None),
        ({"a.csv": "name,place\nx,y\nz,w\n"}, DataError, "a.csv"),
        ({"a.csv": "\x00\x01"}, DataError, "a.csv"),
    ],
)
def test_a_folder_without_tables(tmp_path, files, error, name):
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    with pytest.raises(error, match=name):
        draft_card(tmp_path / "card.toml")


def test_a_strangers_folder_needs_three_edits_at_most(tmp_path, tsadbench):
    """German times, decimal commas, states in words, a sensor that drops out, a row of units, a file of intervals."""
    for day in (1, 2, 3, 4):
        table = frame(200, seed=day).drop(columns="fault")
        table["time"] = pd.date_range(f"2024-05-0{day} 09:00", periods=200, freq="s").strftime("%d.%m.%Y %H:%M:%S")
        table["Betrieb"] = np.where(table.index < 100, "Automatik", "Hand")
        table["Ventil"] = np.where(table.index % 9 < 4, "auf", "zu")
        table.loc[60:64, "head"] = np.nan
        lines = table.to_csv(sep=";", decimal=",", index=False).splitlines()
        (tmp_path / f"Tag_{day}.csv").write_bytes("\r\n".join([lines[0], ";l/min;bar;;", *lines[1:]]).encode("cp1252"))
    book = "von;bis;Bemerkung\n04.05.2024 09:01;04.05.2024 09:02;Lager heiß\n"
    (tmp_path / "Meldungen.csv").write_bytes(book.encode("cp1252"))
    made, card = tsadbench("data", "new", tmp_path), tmp_path / "card.toml"
    assert made.code == 0, made.err
    assert "2024-05-01 09:00:00" in made.out
    text = card.read_text(encoding="utf-8")
    edits = (
        ('"Ventil"]', '"Ventil", "Betrieb"]'),
        ('ignore = ["Betrieb"]', "ignore = []"),
        ('# "Betrieb" =', '"Betrieb" ='),
    )
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    card.write_text(text, encoding="utf-8")
    validated = tsadbench("data", "validate", card)
    assert validated.code == 0, validated.err
    assert "Decide: Tag_1.csv" in validated.out  # which train only because they show no sign of faults
    dataset, labels = load_card(card)
    assert dataset.sensors == ("flow", "head", "Ventil", "Betrieb")
    assert labels.rows["Tag_4/2"].any()


@pytest.mark.parametrize(
    "names", [("normal_Mo", "test_Di", "test_Fr"), ("Mo", "test_Di", "test_Fr"), ("test_Di", "test_Fr")]
)
def test_a_file_whose_name_says_test_never_trains(tmp_path, names):
    for seed, name in enumerate(names):
        rows(tmp_path, f"{name}.csv", seed, range(60, 70) if name == "test_Di" else range(0))
    (dataset, _), text = drafted(tmp_path)
    assert "test_Fr" not in "".join(one.id for one in dataset.train)
    assert ("# Decide: Mo.csv" in text) == ("Mo" in names)


def test_new_does_not_overwrite_a_card(tmp_path, tsadbench):
    german_files_of_a_historian(tmp_path)
    card = tmp_path / "card.toml"
    for command in (("data", "new", tmp_path), ("data", "validate", card)):
        done = tsadbench(*command)
        assert done.code == 0, done.err
    before = card.read_text(encoding="utf-8")
    card.write_text(f"{before}# edited\n", encoding="utf-8")
    assert tsadbench("data", "new", tmp_path).code == 2
    assert card.read_text(encoding="utf-8") == f"{before}# edited\n"
    assert tsadbench("data", "new", tmp_path, "--force").code == 0
    assert card.read_text(encoding="utf-8") == before
