"""A plant as it is, from its folder to flagged rows: nothing is corrected by hand on the way."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsadbench.datasets.cards.reader import load_card


def historian(path: Path, day: str, seed: int, faulty: slice = slice(0, 0)) -> None:
    """Write one value a row: a level every second, a temperature every ten, a valve when it moves; as Germans write."""
    rng = np.random.default_rng(seed)
    start = pd.Timestamp(f"2026-03-{day} 06:00:00")
    level, temperature = rng.normal(5, 0.2, 600), rng.normal(60, 1, 60)
    level[faulty] += 4.0
    rows = [
        (start + pd.Timedelta(seconds=i), "Füllstand", f"{value:.3f}".replace(".", ","))
        for i, value in enumerate(level)
    ]
    rows += [
        (start + pd.Timedelta(seconds=10 * i), "Temperatur", f"{value:.2f}".replace(".", ","))
        for i, value in enumerate(temperature)
    ]
    rows += [(start + pd.Timedelta(seconds=i), "Ventil", "OPEN" if i % 80 else "CLOSED") for i in range(0, 600, 40)]
    lines = [f"{at:%d.%m.%Y %H:%M:%S};{tag};{value}" for at, tag, value in sorted(rows, key=lambda row: row[0])]
    path.write_text("\n".join(["Zeitstempel;Messstelle;Wert", *lines]) + "\n", encoding="cp1252")


CARD = """\
schema = 1
name = "boiler"
[files]
separator = ";"
decimal = ","
encoding = "cp1252"
[train]
files = ["*03-0[12].csv"]
[test]
files = ["*03-0[34].csv"]
[columns]
time_format = "%d.%m.%Y %H:%M:%S"
[long]
time = "Zeitstempel"
name = "Messstelle"
value = "Wert"
[resample]
every = "1s"
by = "last"
[states.Ventil]
OPEN = 1
CLOSED = 0
[labels]
intervals = "Logbuch.csv"
unit = "time"
start = "Beginn"
end = "Ende"
time_format = "%d.%m.%Y %H:%M"
"""


@pytest.fixture(scope="module")
def boiler(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("boiler")
    for seed, day in enumerate(("01", "02", "03", "04")):
        historian(folder / f"2026-03-{day}.csv", day, seed, slice(300, 361) if day == "04" else slice(0, 0))
    (folder / "Logbuch.csv").write_text(
        "Beginn;Ende;Wer;Was\n04.03.2026 06:05;04.03.2026 06:06;Schmidt;Füllstand zu hoch\n"
        "09.03.2026 10:00;09.03.2026 11:00;Weber;Stillstand\n",
        encoding="cp1252",
    )
    (folder / "card.toml").write_text(CARD, encoding="utf-8")
    return folder


def test_mixed_rates_states_and_a_log_book(boiler, tsadbench, tmp_path):
    card = boiler / "card.toml"
    validated = tsadbench("data", "validate", card)
    assert validated.code == 0, validated.err
    assert "test      2 recordings, 1,200 rows, 61 anomalous (5.1%)" in validated.out
    assert "1 of the 2 intervals in Logbuch.csv contain no row of any recording" in validated.out
    data = load_card(card)
    assert set(data.dataset.sensors) == {"Füllstand", "Temperatur", "Ventil"}
    valve = data.dataset.test[0].values[:, data.dataset.sensors.index("Ventil")]
    assert valve[[0, 39, 40, 79, 80]].tolist() == [0.0, 0.0, 1.0, 1.0, 0.0]

    audit = json.loads(tsadbench("data", "audit", card, "--format", "json").out)
    assert audit["events"][0]["n_events"] == 1

    ran = tsadbench(
        "run", "--dataset", card, "-d", "t2", "--no-floors", "--format", "csv", "--out", tmp_path / "runs-boiler"
    )
    assert ran.code == 0, ran.err
    (row,) = csv.DictReader(io.StringIO(ran.out))
    assert float(row["recall_mean"]) == 1.0

    model = tmp_path / "boiler.model"
    assert tsadbench("fit", "--dataset", card, "-d", "t2", "--out", model).code == 0
    scored = tsadbench("score", model, boiler / "2026-03-04.csv")
    assert scored.code == 0, scored.err
    answers = pd.read_csv(io.StringIO(scored.out))
    assert answers["time"].iloc[0] == "2026-03-04T06:00:00"
    assert answers["flagged"].iloc[300:361].all()
    refused = tsadbench("score", model, boiler / "2026-03-04.csv", "--on-error", "skip")
    assert refused.code == 2
    assert "its grid is made of all lines of a file" in refused.err


def test_from_the_folder_to_flagged_rows_without_a_label(tmp_path, tsadbench):
    """Columns for sensors, gaps, and words: `data new` alone decides, and its own next commands are followed."""
    rng = np.random.default_rng(5)
    for name, level in (("Normalbetrieb/Montag", 0.0), ("Normalbetrieb/Dienstag", 0.0), ("Störung/Mittwoch", 6.0)):
        time = pd.date_range("2026-03-02", periods=400, freq="s").strftime("%d.%m.%Y %H:%M:%S")
        table = pd.DataFrame({"Datum": time, "Druck [bar]": rng.normal(5, 0.1, 400), "Fluss": rng.normal(80, 2, 400)})
        table.loc[300:, "Druck [bar]"] += level
        table["Ventil"] = np.where(np.arange(400) % 90 < 45, "OPEN", "CLOSED")
        table["Schicht"] = "Früh"
        path = tmp_path / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        table.to_csv(path, index=False, sep=";", decimal=",", encoding="cp1252")
    made = tsadbench("data", "new", tmp_path)
    assert made.code == 0, made.err
    card, model = tmp_path / "card.toml", tmp_path / "t2.model"
    assert f"tsadbench fit --dataset {card} --out plant.model" in made.out
    for command in (("data", "validate", card), ("data", "audit", card), ("info", card)):
        done = tsadbench(*command)
        assert done.code == 0, done.err
    assert tsadbench("fit", "--out", model, "--dataset", card, "--detector", "t2").code == 0
    new = tmp_path / "Störung/Mittwoch.csv"
    with new.open("a", encoding="cp1252") as file:
        file.write("02.03.2026 00:06:40;Bad;80;OPEN;Früh\n02.03.2026 00:06:41;11,0;80,0;OPEN;Früh\n")
    assert "line 402: column 'Druck [bar]'" in tsadbench("score", model, new).err
    scored = tsadbench("score", model, new, "--on-error", "skip")
    assert scored.code == 1
    answers = pd.read_csv(io.StringIO(scored.out))
    assert len(answers) == 401
    assert answers["flagged"].iloc[300:].all()
    assert answers["flagged"].iloc[:300].mean() < 0.02
