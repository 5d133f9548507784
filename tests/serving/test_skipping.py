"""Malformed lines are skipped where that is asked for: the truth is the input without them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.german_plant import HEADER, lines
from tsadbench.base.file_format import FileFormat
from tsadbench.serving import fit_model
from tsadbench.serving.follow import Lines
from tsadbench.serving.rows import BREAK, RowReader, Rows, recordings

PLAIN = FileFormat(time=("t",), time_formats=("seconds",))
BAD = (
    "1,2",
    "1,2,3,4",
    "5,oops,3",
    "5,inf,1",
    "-7,1,2",
    "not a time,1,2",
    "t,a,b",
    "5;1;2",
    "",
    " , ,",
)


def read(data: bytes, cuts: list[int] | None = None, layout: FileFormat = PLAIN) -> tuple[Rows, list[str]]:
    """Return what can be read, and what is told of the rest."""
    told: list[str] = []
    reader = RowReader("x.csv", layout, ("a", "b"), on_skip=told.append)
    cutter = Lines("x.csv", layout.encoding, tolerant=True)
    parts = []
    for start, stop in pairwise([0, *sorted(cuts or []), len(data)]):
        parts += reader.read(cutter.feed(data[start:stop]))
    return Rows.joined([*parts, *reader.read(cutter.end())]), told


@given(
    st.lists(st.lists(st.sampled_from(BAD), max_size=BREAK - 1), max_size=12),
    st.lists(st.integers(0, 300), max_size=6),
)
@settings(max_examples=80, deadline=None)
def test_what_is_left_is_the_input_without_malformed_lines(plan, cuts):
    written, expected, n_bad = ["t,a,b"], list[tuple[int, float]](), 0
    for bad in [[], *plan]:
        written += bad
        n_bad += len(bad)
        expected.append((len(written) - 1, 1000.0 + len(written)))
        written.append(f"{1000 + len(written)},1.5,2")
    data = "\n".join(written).encode()
    rows, told = read(data, [cut for cut in cuts if cut <= len(data)])
    numbers = rows.numbers.tolist()
    assert numbers == [number for number, _ in expected]
    assert rows.time.tolist() == [moment for _, moment in expected]
    assert rows.values.tolist() == [[1.5, 2.0]] * len(expected)
    assert len(recordings(rows)) == 1
    assert len(told) == n_bad
    places = sorted(set(range(numbers[-1])) - set(numbers))
    assert all(text.startswith(f"x.csv, line {2 + i}: ") for text, i in zip(told, places, strict=True))


def test_many_in_a_row_end_the_recording():
    """No value is carried over the break, and times may begin anew, as those of a logger that was set back."""
    layout = FileFormat(time=("t",), time_formats=("seconds",), fill="forward-fill")
    text = ["t,a,b", "50,1,1", *["oops"] * BREAK, "3,,7", "4,2,2", "5,,3", *["oops"] * (BREAK - 1), "6,,4"]
    rows, told = read("\n".join(text).encode(), layout=layout)
    assert rows.time.tolist() == [50, 3, 4, 5, 6]
    np.testing.assert_array_equal(rows.values[:, 0], [1, np.nan, 2, 2, 2])
    assert [index.tolist() for index in recordings(rows)] == [[0], [2, 3, 4]]
    assert rows.numbers.tolist() == [0, BREAK + 1, BREAK + 2, BREAK + 3, 2 * BREAK + 3]
    assert len(told) == 2 * BREAK - 1


def spoiled(text: list[str]) -> tuple[list[str], list[str]]:
    """Return lines with malformed ones among them, and what is told of these."""
    name = "live.csv"
    faulty = [
        *text[:9],
        "01.02.2026 00:00:07;1,5",
        *text[9:20],
        text[20].replace(text[20].split(";")[1], "oops"),
        *text[21:30],
        "01.01.1999 00:00:00;1,5;2,5;Ann;0",
        *text[30:],
    ]
    places = [faulty.index(line) + 1 for line in faulty if line not in text]
    return faulty, [f"{name}, line {place}: " for place in places]


@pytest.fixture(scope="module")
def windowed_model(plant, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("windowed") / "t2.model"
    fit_model("t2[smoothing=5]", str(plant / "card.toml"), out)
    return out


def test_a_file_is_scored_as_without_its_malformed_lines(tsadbench, windowed_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = [HEADER, *lines(7, 40)]
    faulty, told = spoiled(text)
    sound = [line for line in faulty if line in text]
    Path("live.csv").write_text("\n".join(faulty) + "\n")
    Path("sound.csv").write_text("\n".join(sound) + "\n")
    expected = tsadbench("score", windowed_model, "sound.csv")
    assert expected.code == 0

    stopped = tsadbench("score", windowed_model, "live.csv")
    assert (stopped.code, stopped.out) == (2, "")
    assert told[0] in stopped.err

    done = tsadbench("score", windowed_model, "live.csv", "--on-error", "skip")
    assert done.code == 1
    assert done.out == expected.out
    reports = [line for line in done.err.splitlines() if line.startswith("skipped: ")]
    assert [report.startswith(f"skipped: {place}") for report, place in zip(reports, told, strict=True)] == [True] * 3
    assert "'oops'" in reports[1]

    unharmed = tsadbench("score", windowed_model, "sound.csv", "--on-error", "skip")
    assert (unharmed.code, unharmed.out, unharmed.err) == (0, expected.out, "")


def test_rows_without_times_keep_their_numbers(tsadbench, tmp_path):
    pd.DataFrame({"a": np.arange(50.0) % 7, "b": np.arange(50.0) % 5}).to_csv(tmp_path / "n.csv", index=False)
    (tmp_path / "card.toml").write_text('schema = 1\nname = "x"\n[train]\nfiles = ["n.csv"]\n[columns]\n')
    fit_model("t2", str(tmp_path / "card.toml"), tmp_path / "t2.model")
    (tmp_path / "new.csv").write_text("a,b\n1,2\noops\n3,4\n\n5,6\n")
    done = tsadbench("score", tmp_path / "t2.model", tmp_path / "new.csv", "--on-error", "skip")
    assert done.code == 1
    assert [line.split(",")[0] for line in done.out.splitlines()] == ["row", "0", "2", "4"]
    assert "line 5: " in done.err
    frame = pd.DataFrame({"a": [1.0, np.inf, 3.0], "b": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "new.parquet", index=False)
    done = tsadbench("score", tmp_path / "t2.model", tmp_path / "new.parquet", "--on-error", "skip")
    assert [line.split(",")[0] for line in done.out.splitlines()] == ["row", "0", "2"]
    assert "row 1: column 'a'" in done.err
