"""`tsadbench score` gives the model's scores for files of any format and for streams; and what it refuses."""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pandas as pd
import pytest
import scipy.io

from tests.helpers.cards import write_plant
from tests.helpers.german_plant import HEADER, lines
from tests.helpers.machines import DISTANCE
from tsadbench import fit_model, load_model, plot_scores
from tsadbench.datasets.reader import load_card
from tsadbench.errors import UsageError
from tsadbench.serving import score_rows


def answers(done) -> pd.DataFrame:
    """Return the table that a command printed."""
    assert done.code == 0, done.err
    return pd.read_csv(io.StringIO(done.out))


def test_a_whole_file(tsadbench, plant, model_file, t2_model):
    found = answers(tsadbench("score", model_file, plant / "run.csv", "--contributions"))
    expected = t2_model.score(load_card(plant / "card.toml").dataset.test[0], contributions=True)
    assert list(found) == ["time", "score", "flagged", "contribution_Pressure [bar]", "contribution_Flow", "reason"]
    pd.testing.assert_frame_equal(found.iloc[:, 1:5].astype({"flagged": bool}), expected, check_exact=True)
    assert found["time"].iloc[59] == "2026-02-01T00:00:59"
    assert found["flagged"][42:50].all()
    assert not found["flagged"][:40].any()


def test_alarms_of_a_file_have_a_time_and_a_sensor(tsadbench, plant, model_file, tmp_path):
    done = tsadbench("score", model_file, plant / "run.csv", "--fail-on-alarm", "--contributions")
    found = pd.read_csv(io.StringIO(done.out))
    (_, run), *more = found.groupby((found["flagged"].diff() != 0).cumsum().where(found["flagged"] == 1))
    _, alarm, *others = done.err.splitlines()
    assert (done.code, len(others)) == (1, len(more))
    first, last = (run["time"].iloc[place].replace("T", " ") for place in (0, -1))
    parts = run.filter(like="contribution_").abs().sum()
    name, share = parts.idxmax().removeprefix("contribution_"), parts.max() / parts.sum()
    assert alarm.startswith(f"  {first} to {last}: {len(run)} rows")
    assert alarm.endswith(f"{name} {share:.0%}")
    (tmp_path / "normal.csv").write_text("\n".join((plant / "run.csv").read_text().splitlines()[:40]))
    assert tsadbench("score", model_file, tmp_path / "normal.csv", "--fail-on-alarm").code == 0


def test_a_scored_file_is_drawn_and_contributions_are_on_demand(tsadbench, plant, model_file, t2_model, tmp_path):
    run, rows = plant / "run.csv", load_card(plant / "card.toml").dataset.test[0]
    done = tsadbench("score", model_file, run, "--plot", tmp_path / "day.svg")
    assert (done.code, done.out) == (0, tsadbench("score", model_file, run).out)
    text = (tmp_path / "day.svg").read_text()
    assert [name for name in ("Pressure", "Flow", "run.csv", "2026-Feb-01") if name not in text] == []
    plot_scores(t2_model, rows, tmp_path / "day.png")
    assert (tmp_path / "day.png").stat().st_size
    several = tsadbench("score", model_file, run, run, "--plot", tmp_path / "day.svg")
    assert (several.code, "--plot" in several.err) == (2, True)
    assert "contribution_Flow" in t2_model.score(rows, contributions=None)
    assert "contribution_Flow" not in t2_model.score(rows.rows(0, 40), contributions=None)


def test_several_files_and_parquet(tsadbench, plant, model_file, tmp_path):
    run = plant / "run.csv"
    one, table = answers(tsadbench("score", model_file, run)), answers(tsadbench("score", model_file, run, run))
    assert table["file"].tolist() == [str(run)] * 120
    assert table["score"].tolist() == 2 * one["score"].tolist()
    assert tsadbench("score", model_file, run, run, "--out", tmp_path / "x.parquet").code == 0
    stored = pd.read_parquet(tmp_path / "x.parquet")
    np.testing.assert_array_equal(stored["score"], table["score"])
    assert stored["time"].dt.strftime("%Y-%m-%dT%H:%M:%S").tolist() == table["time"].tolist()


def test_files_with_and_without_times_are_refused_before_anything_is_written(tsadbench, plant, model_file, tmp_path):
    (tmp_path / "rows.pkl").write_bytes(pickle.dumps(np.ones((5, 2))))
    found = tsadbench("score", model_file, plant / "run.csv", tmp_path / "rows.pkl")
    assert (found.code, found.out, "time" in found.err.splitlines()[-1]) == (2, "", True)


def test_a_file_of_another_form(tsadbench, plant, model_file, t2_model, tmp_path):
    """Parquet, arrays without names, and CSV that options describe."""
    table = pd.read_csv(plant / "run.csv", sep=";", decimal=",").drop(columns=["operator", "fault"])
    table["Datum"] = pd.to_datetime(table["Datum"], format="%d.%m.%Y %H:%M:%S")
    table.to_parquet(tmp_path / "run.parquet")
    rows = table[[f"PLC.{sensor}" for sensor in t2_model.card.sensors]].to_numpy()
    (tmp_path / "run.pkl").write_bytes(pickle.dumps(rows))
    scipy.io.savemat(tmp_path / "run.mat", {"rows": rows})
    swapped = table[["PLC.Flow", "PLC.Pressure [bar]"]].assign(s=np.arange(60.0))
    swapped.to_csv(tmp_path / "other.csv", index=False)
    expected = answers(tsadbench("score", model_file, plant / "run.csv"))["score"].tolist()
    other = ("other.csv", "--separator", ",", "--decimal", ".", "--time", "s", "--time-format", "seconds")
    for name, *options in (("run.parquet",), ("run.pkl",), ("run.mat",), other):
        found = answers(tsadbench("score", model_file, tmp_path / name, *options))
        assert found["score"].tolist() == expected
    assert found["time"][1] == "1970-01-01T00:00:01"


class TestResampled:
    """New files are resampled to the grid of the data set; streams cannot be."""

    CARD = """\
schema = 1
name = "doors"
[train]
files = ["a.csv"]
[test]
files = ["b.csv"]
[long]
name = "tag"
value = "value"
[resample]
every = 0.5
by = "last"
[columns]
time = "at"
ignore = ["spare"]
[labels]
kind = "intervals"
file = "events.csv"
unit = "seconds"
[states.door]
Open = 1
Closed = 0
"""

    @pytest.fixture
    def folder(self, tmp_path_factory) -> Path:
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
        (folder / "card.toml").write_text(self.CARD)
        fit_model("t2", load_card(folder / "card.toml"), folder / "t2.model")
        return folder

    def test_a_file_is_scored_as_the_data_set_was_read(self, tsadbench, folder):
        model, data = load_model(folder / "t2.model"), load_card(folder / "card.toml").dataset
        found = answers(tsadbench("score", folder / "t2.model", folder / "b.csv"))
        np.testing.assert_array_equal(found["score"], model.score(data.test[0])["score"])
        first = pd.read_csv(folder / "b.csv")["at"][0]
        assert pd.Timestamp(found["time"][3]) == pd.Timestamp(first) + pd.Timedelta(seconds=1.5)

    def test_a_grid_needs_all_lines(self, folder):
        model = load_model(folder / "t2.model")
        with pytest.raises(UsageError, match="resampled"):
            list(score_rows(model, 0, model.card.layout))


def arriving(model, file: Path) -> pd.DataFrame:
    """Return the answers to a file's rows as they are read from a descriptor."""
    with file.open("rb") as stream:
        return pd.concat(list(score_rows(model, stream.fileno(), model.card.layout)), ignore_index=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A plant with a model, and files that are wrong in one way each."""
    folder = tmp_path_factory.mktemp("plant")
    fit_model("t2", str(write_plant(folder, 90)), folder / "t2.model")
    good = pd.read_csv(folder / "test/rows.csv").drop(columns="fault")
    new = folder / "new"
    new.mkdir()
    good[["time", "head", "flow"]].to_csv(new / "reordered.csv", index=False)
    good.assign(humidity=1.0).to_csv(new / "extra.csv", index=False)
    good.head(1).to_csv(new / "one-row.csv", index=False)
    good.drop(columns="flow").to_csv(new / "lacking.csv", index=False)
    good.to_csv(new / "semicolons.csv", index=False, sep=";", decimal=",")
    good.assign(flow=good["flow"].where(good.index != 2)).to_csv(new / "gap.csv", index=False)
    good.rename(columns={"head": "head [m]"}).to_csv(new / "units.csv", index=False)
    (new / "empty.csv").write_bytes(b"")
    (new / "no.parquet").write_text("no")
    good.head(0).to_parquet(new / "no-rows.parquet")
    (new / "hostile.pkl").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    scipy.io.savemat(new / "two.mat", {"rows": np.ones((9, 2)), "others": np.ones((9, 2))})
    return folder


WRONG = (
    (("nowhere.model", "test/rows.csv"), ("nowhere.model",)),
    (("card.toml", "test/rows.csv"), ("card.toml",)),
    (("t2.model", "test/rows.csv", "new/lacking.csv"), ("new/lacking.csv", "'flow'")),
    (("t2.model", "new/units.csv"), ("new/units.csv", "'head'", "'head [m]'")),
    (("t2.model", "new/empty.csv"), ("new/empty.csv",)),
    (("t2.model", "new/semicolons.csv"), ("new/semicolons.csv", "separator")),
    (("t2.model", "new/semicolons.csv", "--separator", ";"), ("new/semicolons.csv", "line 2", "'flow'")),
    (("t2.model", "new/hostile.pkl"), ("new/hostile.pkl",)),
    (("t2.model", "new/two.mat"), ("new/two.mat", "'others'")),
    (("t2.model", "test/rows.csv", "--time", "tmie"), ("'tmie'",)),
    (("t2.model", "test/rows.csv", "--time-format", "seconds"), ("test/rows.csv", "line 2", "seconds")),
    (("t2.model", "test/rows.csv", "--separator", "ab"), ("ab",)),
    (("t2.model", "test/rows.csv", "--device", "cuda"), ("device",)),
    (("t2.model", "test/rows.csv", "--detector", DISTANCE), ("Distance",)),
    (("t2.model", "new/no.parquet"), ("new/no.parquet",)),
    (("t2.model", "new/no-rows.parquet"), ("new/no-rows.parquet", "no rows")),
)


@pytest.mark.parametrize(("arguments", "names"), WRONG, ids=[" ".join(arguments) for arguments, _ in WRONG])
def test_what_is_wrong_is_named_and_nothing_is_written(folder, tsadbench, monkeypatch, arguments, names):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.rglob("*"))
    done = tsadbench("score", *arguments)
    assert (done.code, done.out) == (2, ""), done
    assert all(name in done.err for name in names), done.err
    assert len(done.err.splitlines()) <= 4
    assert sorted(path.name for path in folder.rglob("*")) == before


@pytest.mark.parametrize(("file", "n_lines"), [("reordered", None), ("extra", None), ("one-row", 2)])
def test_other_columns_and_fewer_rows_get_the_same_scores(folder, tsadbench, monkeypatch, file, n_lines):
    monkeypatch.chdir(folder)
    expected = tsadbench("score", "t2.model", "test/rows.csv").out.splitlines()
    done = tsadbench("score", "t2.model", f"new/{file}.csv")
    assert done.code == 0
    assert done.out.splitlines() == expected[:n_lines]
    assert ("'humidity'" in done.err) == (file == "extra")


def test_a_row_with_an_empty_or_broken_cell_has_no_score_but_a_reason(folder, tsadbench, monkeypatch):
    """The other rows are scored as without it, in CSV, Parquet and streams."""
    monkeypatch.chdir(folder)
    table = pd.read_csv("new/gap.csv")
    table.to_parquet("new/gap.parquet")
    table.drop(index=2).to_csv("new/whole.csv", index=False)
    table.astype({"flow": "str"}).fillna({"flow": "Bad"}).to_csv("new/broken.csv", index=False)
    model = load_model("t2.model")
    whole = answers(tsadbench("score", "t2.model", "new/whole.csv")).drop(columns="reason")
    for name in ("gap.csv", "gap.parquet", "broken.csv"):
        done = tsadbench("score", "t2.model", f"new/{name}")
        found = answers(done)
        assert ("90 rows" in done.err, "1 without a score" in done.err) == (True, True)
        assert (found["score"].isna() == (found.index == 2)).all()
        assert "'flow'" in found["reason"][2]
        pd.testing.assert_frame_equal(found.drop(index=2, columns="reason").reset_index(drop=True), whole)
        if name.endswith("csv"):
            np.testing.assert_array_equal(arriving(model, Path("new", name))["score"], found["score"])


@pytest.mark.processes
def test_standard_input_is_answered_row_by_row_and_ends_quietly(plant, tmp_path):
    """In a process, because standard input is the subject."""
    model, detector, text = tmp_path / "around.model", "tests.helpers.tiny:Around", [HEADER, *lines(4, 12)]
    fit_model(detector, str(plant / "card.toml"), model)  # it looks three rows ahead
    command = [sys.executable, "-m", "tsadbench", "score", str(model), "-", "--detector", detector]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True, bufsize=1) as running:
        running.stdin.write("\n".join(text[:9]) + "\n")
        found = [running.stdout.readline() for _ in range(1 + 8 - 3)]
        running.stdin.write("\n".join([*text[9:], "01.02.2026 00:00:13;oops;1;Ann;0"]))
        running.stdin.close()
        found += [*running.stdout]
        assert "standard input: 13 rows" in running.stderr.read()
    assert running.returncode == 0
    (tmp_path / "whole.csv").write_text("\n".join(text))
    form = load_model(model, detector=detector).card.layout
    (expected,) = score_rows(load_model(model, detector=detector), tmp_path / "whole.csv", form)
    table = pd.read_csv(io.StringIO("".join(found)))
    np.testing.assert_allclose(table["score"], [*expected["score"], np.nan])
    assert "'Pressure [bar]'" in table["reason"][12]


@pytest.mark.processes
def test_an_interrupt_ends_a_stream_quietly(plant, model_file):
    command = [sys.executable, "-m", "tsadbench", "score", str(model_file), "-"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True, bufsize=1) as running:
        running.stdin.write("\n".join([HEADER, *lines(4, 12)]) + "\n")
        assert len([running.stdout.readline() for _ in range(13)]) == 13
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
        assert "Traceback" not in running.stderr.read()


def test_an_interrupt_that_no_read_notices_ends_a_stream(t2_model):
    read, write = os.pipe()
    late = threading.Timer(20, os.write, [write, b"late"])
    late.start()
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()  # this other thread receives it
    with pytest.raises(KeyboardInterrupt):
        next(score_rows(t2_model, read, t2_model.card.layout))
    assert late.is_alive(), "it took the next row"
    late.cancel()
    os.close(read)
    os.close(write)
