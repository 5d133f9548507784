"""Models of resampled data sets: new files are laid on the same grid, and rows that arrive are refused."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from tsadbench import fit_model, load_model
from tsadbench.datasets.cards.reader import load_card
from tsadbench.errors import UsageError
from tsadbench.serving.scoring import score_stream

CARD = """\
schema = 1
name = "doors"
[train]
files = ["a.csv"]
[test]
files = ["b.csv"]
[long]
time = "at"
name = "tag"
value = "value"
[resample]
every = "500ms"
by = "last"
[columns]
ignore = ["spare"]
[labels]
intervals = "events.csv"
unit = "time"
origin = "recording"
[states.door]
Open = 1
Closed = 0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with two long files and their card; and the model fitted on them."""
    folder = tmp_path_factory.mktemp("doors")
    rng = np.random.default_rng(3)
    for name in ("a", "b"):
        at = pd.Timestamp("2026-03-01 08:00") + pd.to_timedelta(np.sort(rng.integers(0, 90_000, 600)), unit="ms")
        tags = rng.choice(["door", "level", "spare"], 600)
        tags[:2] = "door", "level"
        doors, levels = rng.choice(["Open", "Closed"], 600), rng.normal(size=600).round(3).astype("str")
        values = np.where(tags == "door", doors, np.where(tags == "level", levels, "on"))
        pd.DataFrame({"at": at, "tag": tags, "value": values}).to_csv(folder / f"{name}.csv", index=False)
    (folder / "events.csv").write_text("recording,start,end\nb,50,60\n")
    (folder / "card.toml").write_text(CARD)
    fit_model("t2", load_card(folder / "card.toml"), folder / "t2.model")
    return folder


def test_a_file_is_scored_as_the_data_set_was_read(tsadbench, folder):
    model = load_model(folder / "t2.model")
    data = load_card(folder / "card.toml").dataset
    assert model.card.layout == data.layout
    done = tsadbench("score", folder / "t2.model", folder / "b.csv")
    assert (done.code, done.err) == (0, "")
    found = pd.read_csv(io.StringIO(done.out))
    np.testing.assert_array_equal(found["score"], model.score(data.test[0]).scores)
    first = pd.read_csv(folder / "b.csv")["at"][0]
    assert len(found) == data.test[0].n_rows
    assert pd.Timestamp(found["time"][3]) == pd.Timestamp(first) + pd.Timedelta(seconds=1.5)


def test_fit_does_not_advise_what_score_refuses(tsadbench, folder, tmp_path):
    out = tmp_path / "new.model"
    done = tsadbench("fit", "-d", "t2", "--dataset", folder / "card.toml", "--out", out)
    assert done.code == 0
    assert done.out.splitlines()[-1] == f"Next:  tsadbench score {out} FILE.csv"


def test_rows_that_arrive_cannot_be_resampled(tsadbench, folder):
    done = tsadbench("score", folder / "t2.model", folder / "b.csv", "--follow")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert "t2 was fitted on resampled rows, one every 0.5 s" in line
    assert "score whole files, without --follow and -" in line
    model = load_model(folder / "t2.model")
    with pytest.raises(UsageError, match="resampled"):
        score_stream(model, [], "standard input", model.card.layout, contributions=False)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Open", "Ajar", "expected a number or one of the declared states 'Open', 'Closed', found 'Ajar'"),
        ("at,tag,value", "when,tag,value", "the time column 'at' is missing"),
        ("at,tag,value", "at,name,value", "line 1: the column of sensors' names 'tag' is missing"),
        ("level", "lever", "the sensor 'level' is missing; did you mean 'lever'?"),
        ("2026-03-01 08:01", "2026-02-01 08:01", "the time lies before that of the row above"),
    ],
)
def test_a_malformed_file_is_told(tsadbench, folder, tmp_path, old, new, words):
    file = tmp_path / "new.csv"
    file.write_text((folder / "b.csv").read_text().replace(old, new))
    done = tsadbench("score", folder / "t2.model", file)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert str(file) in done.err


def test_a_file_that_is_not_there_or_holds_no_rows_is_told(tsadbench, folder, tmp_path):
    file = tmp_path / "new.csv"
    done = tsadbench("score", folder / "t2.model", file)
    assert done.code == 2
    assert f"{file}: there is no such file" in done.err
    file.write_text("at,tag,value\n")
    done = tsadbench("score", folder / "t2.model", file)
    assert done.code == 2
    assert "new.csv: the sensor 'door' is missing" in done.err


def test_wide_rows_that_arrive_may_hold_states(tsadbench, tmp_path):
    """States need no other row, so they are read from a stream as well."""
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        table = pd.DataFrame({"flow": rng.normal(size=80), "valve": rng.choice(["Open", "Shut"], 80), "fault": 0})
        table.loc[60:70, "fault"] = int(name == "b")
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "card.toml").write_text(
        'schema = 1\nname = "valves"\n[train]\nfiles = ["a.csv"]\n[test]\nfiles = ["b.csv"]\n'
        '[columns]\nlabel = "fault"\n'
        "[states.valve]\nOpen = 1\nShut = 0\n"
    )
    data = load_card(tmp_path / "card.toml")
    model = fit_model("t2", data, tmp_path / "t2.model")
    expected = model.score(data.dataset.test[0]).scores
    for arguments in ([], ["--follow", "--idle", "0.2"]):
        done = tsadbench("score", tmp_path / "t2.model", tmp_path / "b.csv", *arguments)
        assert done.code == 0
        np.testing.assert_array_equal(pd.read_csv(io.StringIO(done.out))["score"], expected)
    (tmp_path / "c.csv").write_text("flow,valve\n1,Open\n2,Ajar\n")
    done = tsadbench("score", tmp_path / "t2.model", tmp_path / "c.csv")
    assert done.code == 2
    assert "c.csv, line 3: column 'valve': expected a number or one of the declared states 'Open', 'Shut'" in done.err
