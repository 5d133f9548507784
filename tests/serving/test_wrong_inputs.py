"""Wrong inputs of a plant engineer: each ends with exit code 2 in a message that names the file and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.cards import CARD, frame
from tsadbench.serving import fit_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A plant with a model, and files and folders that are wrong in one way each."""
    folder = tmp_path_factory.mktemp("plant")
    for part, seed, faults in (("train", 0, None), ("test", 1, (40, 50))):
        (folder / part).mkdir()
        frame(90, seed=seed, faults=faults).to_csv(folder / part / "a.csv", index=False)
    (folder / "card.toml").write_text(CARD)
    fit_model("t2", str(folder / "card.toml"), folder / "t2.model")
    good = pd.read_csv(folder / "test/a.csv").drop(columns="fault")
    new = folder / "new"
    new.mkdir()
    good[["time", "head", "flow"]].to_csv(new / "reordered.csv", index=False)
    good.assign(humidity=1.0).to_csv(new / "extra.csv", index=False)
    good.drop(columns="flow").to_csv(new / "lacking.csv", index=False)
    good.rename(columns={"flow": "flwo"}).to_csv(new / "misspelt.csv", index=False)
    good.head(1).to_csv(new / "one-row.csv", index=False)
    good.head(0).to_csv(new / "no-row.csv", index=False)
    good.to_csv(new / "semicolons.csv", index=False, sep=";", decimal=",")
    good.iloc[::-1].to_csv(new / "backwards.csv", index=False)
    good.assign(flow=good["flow"].where(good.index != 2)).to_csv(new / "gap.csv", index=False)
    good.rename(columns={"head": "t\xe9te"}).to_csv(new / "latin.csv", index=False, encoding="latin-1")
    good.to_csv(new / "headless.csv", index=False, header=False)
    (new / "binary.csv").write_bytes(bytes(range(256)) * 20)
    (new / "empty.csv").write_bytes(b"")
    (new / "zeros.csv").write_bytes(b"\x00" * 4096)
    (folder / "nothing").mkdir()
    (folder / "texts").mkdir()
    (folder / "texts/notes.csv").write_text("name,place\nx,y\nz,w\n")
    (folder / "binary").mkdir()
    (folder / "binary/a.csv").write_bytes(bytes(range(256)) * 20)
    (folder / "single").mkdir()
    good.head(1).to_csv(folder / "single/a.csv", index=False)
    for name, old, text in (
        ("typed", 'name = "plant"', "name = 7"),
        ("sensor", 'label = "fault"', 'label = "fault"\nsensors = ["flow", "heat"]'),
        ("nofile", "train/*.csv", "training/*.csv"),
        ("nothing", CARD, ""),
        ("broken", "[train]", "[train"),
    ):
        assert old in CARD
        (folder / f"{name}.toml").write_text(CARD.replace(old, text))
    (folder / "binary.toml").write_bytes(bytes(range(256)))
    return folder


WRONG = (
    (("data", "new", "missing"), "missing: expected a folder with CSV", "there is no such folder"),
    (("data", "new", "card.toml"), "card.toml: expected a folder with CSV", "is no folder"),
    (("data", "new", "nothing"), "nothing: expected files that end in .csv", "found none"),
    (("data", "new", "texts"), "texts: no file is a table", "notes.csv: no table of numbers"),
    (("data", "new", "binary"), "binary: no file is a table", "a.csv: cannot be read as a table"),
    (("data", "new", "single"), "single: no file is a table", "a.csv: a table with one row"),
    (("data", "validate", "missing.toml"), "missing.toml", "there is no such file"),
    (("data", "validate", "test"), "test: expected a card", "tsadbench data new FOLDER"),
    (("data", "validate", "test/a.csv"), "test/a.csv: expected a card", "tsadbench data new FOLDER"),
    (("data", "validate", "typed.toml"), "typed.toml, line 2: name", "expected a string, found 7"),
    (("data", "validate", "sensor.toml"), "no column is called 'heat'", "did you mean 'head'"),
    (("data", "validate", "nofile.toml"), "files 'training/*.csv'", "correct the name or pattern"),
    (("data", "validate", "nothing.toml"), "nothing.toml", "missing"),
    (("data", "validate", "broken.toml"), "broken.toml, line 4", "]"),
    (("data", "validate", "binary.toml"), "binary.toml", "UTF-8"),
    (
        ("fit", "-d", "t2", "--dataset", "train", "--out", "x.model"),
        "'train': expected the name of one",
        "a card for a folder",
    ),
    (("fit", "-d", "t2", "--dataset", "./train", "--out", "x.model"), "./train", "a card for a folder"),
    (("fit", "-d", "t2", "--dataset", "train/a.csv", "--out", "x.model"), "train/a.csv", "a card for a folder"),
    (("fit", "-d", "t2", "--dataset", "sensor.toml", "--out", "x.model"), "'heat'", "did you mean 'head'"),
    (
        ("fit", "-d", "t2", "--dataset", "card.toml", "--out", "test/a.csv"),
        "test/a.csv: exists and is no model",
        "file",
    ),
    (("score", "card.toml", "test/a.csv"), "card.toml: it is no model", ""),
    (("score", "t2.model", "new"), "new: cannot be read", "directory"),
    (("score", "t2.model", "new/lacking.csv"), "new/lacking.csv: the sensor 'flow' is missing", ""),
    (
        ("score", "t2.model", "new/misspelt.csv"),
        "new/misspelt.csv: the sensor 'flow' is missing",
        "did you mean 'flwo'",
    ),
    (("score", "t2.model", "new/no-row.csv"), "new/no-row.csv: it has no rows", "expected some below"),
    (("score", "t2.model", "new/empty.csv"), "new/empty.csv: it is empty", "expected a line"),
    (("score", "t2.model", "new/semicolons.csv"), "new/semicolons.csv", "give it with --separator"),
    (
        ("score", "t2.model", "new/semicolons.csv", "--separator", ";"),
        "new/semicolons.csv, line 2",
        "another decimal mark? then give it with --decimal",
    ),
    (
        ("score", "t2.model", "test/a.csv", "--time", "tmie"),
        "test/a.csv: the time column 'tmie' is missing",
        "did you mean 'time'?",
    ),
    (("score", "t2.model", "test/a.csv", "-f", "--time", "tmie"), "test/a.csv: the time column", "mean 'time'?"),
    (
        ("score", "t2.model", "test/a.csv", "--time-format", "seconds"),
        "test/a.csv, line 2: expected a time written as seconds",
        "correct it, or give its format with --time-format",
    ),
    (
        ("score", "t2.model", "test/a.csv", "--threads", "0"),
        "threads: expected a number greater than or equal to 1",
        "found 0",
    ),
    (("score", "t2.model", "test/a.csv", "-f", "--idle", "nan"), "--idle is for --follow", "seconds above 0"),
    (("score", "t2.model", "new/a.parquet", "-f"), "new/a.parquet: only lines of text", "without --follow"),
    (("score", "t2.model", "new/headless.csv"), "expected a line that names the columns", "above the rows"),
    (("score", "t2.model", "new/gap.csv"), "new/gap.csv, line 4: column 'flow': a value is missing", "; fill it in\n"),
    (("score", "t2.model", "new/latin.csv"), "new/latin.csv, line 1: not utf-8", "0xe9; convert the file\n"),
    (("score", "t2.model", "new/backwards.csv"), "new/backwards.csv, line 3: the time lies before", "sort the rows"),
    (("score", "t2.model", "new/binary.csv"), "new/binary.csv", "utf-8"),
    (("score", "t2.model", "new/zeros.csv"), "new/zeros.csv: found NUL characters", "save it as UTF-8"),
)


@pytest.mark.parametrize(("arguments", "found", "to_do"), WRONG, ids=[" ".join(arguments) for arguments, *_ in WRONG])
def test_each_names_the_file_and_what_to_do(folder, tsadbench, monkeypatch, arguments, found, to_do):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.rglob("*"))
    done = tsadbench(*arguments)
    assert (done.code, done.out) == (2, ""), done
    assert found in done.err, done.err
    assert to_do in done.err, done.err
    assert "Traceback" not in done.err
    # One line, or a heading with a line for each of several problems.
    lines = done.err.splitlines()
    assert len(lines) <= 4, done.err
    assert all(line.startswith("  ") for line in lines[1:]), done.err
    assert sorted(path.name for path in folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("file", "note"),
    [
        ("new/reordered.csv", "its sensors are in another order than when the model was fitted"),
        ("new/extra.csv", "columns that the model does not know are not used: 'humidity'"),
        ("new/one-row.csv", ""),
    ],
)
def test_what_is_put_right_is_noted(folder, tsadbench, monkeypatch, file, note):
    monkeypatch.chdir(folder)
    expected = tsadbench("score", "t2.model", "test/a.csv").out.splitlines()
    done = tsadbench("score", "t2.model", file)
    assert done.code == 0
    assert done.out.splitlines() == expected[: len(done.out.splitlines())]
    assert note in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(folder, tsadbench, monkeypatch):
    monkeypatch.chdir(folder)
    closed = folder / "new/closed.csv"
    closed.write_text("time,flow,head\n")
    closed.chmod(0)
    done = tsadbench("score", "t2.model", closed)
    assert done.code == 2
    assert "cannot be read (Permission denied)" in done.err
