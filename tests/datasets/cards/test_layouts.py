"""However a folder is laid out, the card that is drafted for it validates as it is, and says what each file is for."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.cards import frame
from tsadbench.datasets.cards.draft import draft_card
from tsadbench.datasets.cards.reader import load_card


def write(folder: Path, name: str, seed: int = 0, **options) -> pd.DataFrame:
    """Write rows; labelled if ``faults`` are among the options."""
    keys = {key: options.pop(key) for key in ("faults", "n_rows") if key in options}
    change = options.pop("change", lambda table: table)
    table = frame(keys.get("n_rows", 90), seed=seed, faults=keys.get("faults"))
    table = change(table if "faults" in keys else table.drop(columns="fault"))
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False, **options)
    return table


def on_day(day: str):
    return lambda table: table.assign(time=table["time"].str.replace("2024-05-01", day))


def only_normal(folder):
    for day in range(3):
        write(folder, f"day{day}.csv", day)
    return (
        ["day0", "day1", "day2"],
        [],
        ["nothing tells whether its rows are normal", "DECIDE: Nothing tells which rows"],
    )


def train_and_test_without_labels(folder):
    write(folder, "train/a.csv")
    write(folder, "test/b.csv", 1)
    return ["train/a"], ["test/b"], ["its name says normal or training", "DECIDE: No labels were found"]


def train_and_test_with_labels(folder):
    write(folder, "train/a.csv")
    write(folder, "test/b.csv", 1, faults=(60, 70))
    return ["train/a"], ["test/b"], ["it has labels, and its name does not say normal"]


def labels_in_a_column(folder):
    for run in range(2):
        write(folder, f"run{run}.csv", run, n_rows=200, faults=(120, 140))
    return ["run0/train", "run1/train"], ["run0/test", "run1/test"], ["no file seems to be for training alone"]


def an_anomaly_early_on(folder):
    write(folder, "run0.csv", 0, faults=(50, 80))
    write(folder, "run1.csv", 1, faults=(3, 10))
    return ["run0/train", "run1/train"], ["run0/test", "run1/test"], ['rows = "before first event"']


def labels_in_intervals(folder):
    write(folder, "normal/a.csv")
    write(folder, "runs/b.csv", 1)
    (folder / "events.csv").write_text("recording,start,end\nruns/b,50,60\n")
    return ["normal/a"], ["runs/b"], ["labels   events.csv: they tell which rows of other files are anomalous"]


def a_log_book(folder):
    write(folder, "normal/a.csv", sep=";")
    write(folder, "runs/b.csv", 1, sep=";", change=on_day("2024-05-02"))
    (folder / "Störungen.csv").write_text(
        "Beginn;Ende;Bemerkung\n02.05.2024 12:01;02.05.2024 12:02;Pumpe\n", encoding="utf-8"
    )
    return ["normal/a"], ["runs/b"], ['start = "Beginn"', 'time_format = "%d.%m.%Y %H:%M"']


def one_big_file(folder):
    write(folder, "all.csv", n_rows=3000)
    return ["all"], [], ["DECIDE: Nothing tells which rows"]


def leftovers(folder):
    train_and_test_with_labels(folder)
    (folder / "README.txt").write_text("Recorded by hand\nin May\n")
    (folder / "manual.pdf").write_bytes(b"%PDF-1.4\n\xff\xfe\x00")
    (folder / "plan.xlsx").write_bytes(b"PK\x03\x04")
    (folder / "old.zip").write_bytes(b"PK\x03\x04")
    (folder / "test/empty.csv").write_text("")
    (folder / "test/header.csv").write_text("time,flow,head,fault\n")
    (folder / "test/binary.csv").write_bytes(bytes(range(256)) * 9)
    shutil.copy(folder / "test/b.csv", folder / "test/b - Kopie.csv")
    return ["train/a"], ["test/b"], [
        "manual.pdf: no table",
        "plan.xlsx: a workbook: save its sheets as CSV files",
        "old.zip: an archive: unpack it",
        "test/b - Kopie.csv: the same bytes as test/b.csv",
        "test/header.csv: a table with no rows",
        "test/binary.csv: cannot be read as a table",
    ]  # fmt: skip


def mixed_schemas(folder):
    for day in range(2):
        write(folder, f"day{day}.csv", day)
    pd.DataFrame({"x": np.arange(50.0), "z": np.arange(50.0) ** 0.5}).to_csv(folder / "other.csv", index=False)
    write(folder, "more.csv", 5, change=lambda table: table.assign(extra=1.0))
    return ["day0", "day1", "more"], [], ["left out other.csv: it lacks columns flow, head, time of most rows"]


def parquet(folder):
    write(folder, "train/a.parquet")
    write(folder, "test/b.parquet", 1, faults=(60, 70))
    return ["train/a"], ["test/b"], []


def spaces_umlauts_and_brackets(folder):
    write(folder, "Normalbetrieb Süd/Tag 1.csv")
    write(folder, "Prüfung [neu]/Störfall [a].csv", 1, faults=(60, 70))
    return ["Normalbetrieb Süd/Tag 1"], ["Prüfung [neu]/Störfall [a]"], ["[[]a].csv"]


def missing_values(folder):
    write(folder, "a.csv", change=lambda table: table.mask(table.index.to_series().between(40, 43), axis=0).assign(
        time=table["time"]))  # fmt: skip
    write(folder, "b.csv", 1)
    return ["a/1", "a/2", "b"], [], ['policy = "cut"', "DECIDE: rows with missing values are left out"]


def texts_among_numbers(folder):
    def spoil(table):
        table = table.astype({"flow": object})
        table.loc[45, "flow"] = "Bad Input"
        return table

    write(folder, "a.csv", change=spoil)
    write(folder, "b.csv", 1)
    return ["a/1", "a/2", "b"], [], ['values = ["Bad Input"]']


def states(folder):
    write(folder, "normal/a.csv", change=lambda t: t.assign(valve=np.where(t.index % 9 < 4, "OPEN", "CLOSED")))
    write(folder, "runs/b.csv", 1, change=lambda t: t.assign(valve="OPEN"))
    return ["normal/a"], ["runs/b"], ['[states."valve"]\n"OPEN" = 1\n"CLOSED" = 0']


def a_file_that_no_guess_can_read(folder):
    def backwards(table):
        table.loc[70, "time"] = "2024-05-01 11:00:00"
        return table

    write(folder, "a.csv", change=backwards)
    write(folder, "b.csv", 1)
    return ["b"], [], ["left out a.csv: line 72: column 'time': the time lies before that of the row above"]


def short_test_files(folder):
    write(folder, "train/a.csv")
    write(folder, "test/b.csv", 1, n_rows=90)
    write(folder, "test/c.csv", 2, n_rows=20)
    return ["train/a"], ["test/b"], ["left out test/c.csv: fewer than 31 rows"]


def a_long_table(folder):
    time = pd.date_range("2024-05-01 12:00", periods=600, freq="s").strftime("%d.%m.%Y %H:%M:%S")
    values = np.random.default_rng(0).normal(size=600)
    table = pd.DataFrame({"Zeit": time, "tag": np.resize(["flow", "temp", "level"], 600), "Wert": values})
    table.to_csv(folder / "historian.csv", index=False, sep=";", decimal=",")
    return ["historian"], [], ['[long]\ntime = "Zeit"\nname = "tag"\nvalue = "Wert"', 'every = "3s"']


def each_file_begins_with_an_anomaly(folder):
    write(folder, "a.csv", faults=(0, 10))
    return ["a"], [], ["DECIDE: Each file begins with a row that is labelled anomalous"]


LAYOUTS = (
    only_normal, train_and_test_without_labels, train_and_test_with_labels, labels_in_a_column, an_anomaly_early_on,
    labels_in_intervals, a_log_book, one_big_file, leftovers, mixed_schemas, parquet, spaces_umlauts_and_brackets,
    missing_values, texts_among_numbers, states, a_file_that_no_guess_can_read, short_test_files, a_long_table,
    each_file_begins_with_an_anomaly,
)  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_draft_validates_and_says_why(layout, tmp_path, tsadbench):
    folder = tmp_path / "Anlage 7 (Süd)"
    folder.mkdir()
    train, test, told = layout(folder)
    made = tsadbench("data", "new", folder)
    assert made.code == 0, made.err
    card = folder / "card.toml"
    text = card.read_text(encoding="utf-8")
    for part in told:
        assert part in text, text
    validated = tsadbench("data", "validate", card)
    assert validated.code == 0, validated.err
    loaded = load_card(card)
    assert [one.id for one in loaded.dataset.train] == train
    assert [one.id for one in loaded.dataset.test] == test
    for line in text.splitlines():  # what the card says on top is said on screen, too
        if line.startswith("#   "):
            assert line.removeprefix("#   ") in made.out
        if line.startswith("# DECIDE: ") and "missing" not in line:
            assert f"Decide: {line.removeprefix('# DECIDE: ')}" in made.out


def test_a_second_draft_is_the_same(tmp_path):
    leftovers(tmp_path)
    first = draft_card(tmp_path).text
    (tmp_path / "card.toml").write_text(first)
    assert draft_card(tmp_path).text == first


def test_the_only_file_is_broken(tmp_path, tsadbench):
    """There is nothing to write a card about; the message says what has to be mended."""
    write(tmp_path, "a.csv")
    with (tmp_path / "a.csv").open("a") as file:
        file.write("2024-05-01 13:00:00,1\n")
    made = tsadbench("data", "new", tmp_path)
    assert made.code == 2
    assert "a.csv: cannot be read as a table (line 92: expected 3 cells separated by ',', found 2" in made.err
    assert not (tmp_path / "card.toml").exists()
