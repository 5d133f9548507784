"""Malformed lines are skipped where that is asked for: the truth is the input without them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
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
from tsadbench.serving.rows import RowReader
from tsadbench.serving.skipping import BREAK, SkippingReader

PLAIN = FileFormat(time=("t",), time_formats=("seconds",))
BAD = (
    "1,2",
    "1,2,3,4",
    "5,oops,3",
    "5,,3",
    "5,nan,1",
    "5,inf,1",
    "-7,1,2",
    "not a time,1,2",
    "t,a,b",
    "5;1;2",
    "",
    " , ,",
)


def read(data: bytes, cuts: list[int] | None = None, layout: FileFormat = PLAIN, kind: type[RowReader] = RowReader):
    """Return values, times, numbers and beginnings of what can be read, what is told of the rest, and the reader."""
    told: list[str] = []
    reader = SkippingReader(kind("x.csv", layout, ("a", "b")), layout.separator, told.append)
    cutter = Lines("x.csv", layout.encoding, tolerant=True)
    parts = []
    for start, stop in pairwise([0, *sorted(cuts or []), len(data)]):
        parts += reader.read(cutter.feed(data[start:stop]))
    parts += reader.read(cutter.end())
    values = np.concatenate([np.empty((0, 2)), *(part.values for part in parts)])
    times = np.concatenate([np.empty(0), *(part.time for part in parts if part.time is not None)])
    numbers = [part.first + i for part in parts for i in range(len(part))]
    begins = [part.first for part in parts if part.begins]
    return values, times, numbers, begins, told, reader.reader


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
    values, times, numbers, begins, told, _ = read(data, [cut for cut in cuts if cut <= len(data)])
    assert numbers == [number for number, _ in expected]
    assert times.tolist() == [moment for _, moment in expected]
    assert values.tolist() == [[1.5, 2.0]] * len(expected)
    assert begins == []
    assert len(told) == n_bad
    places = sorted(set(range(numbers[-1])) - set(numbers))
    assert all(text.startswith(f"x.csv, line {2 + i}: ") for text, i in zip(told, places, strict=True))


def test_many_in_a_row_end_the_recording():
    """No value is carried over the break, and times may begin anew, as those of a logger that was set back."""
    layout = FileFormat(time=("t",), time_formats=("seconds",), fill="forward-fill")
    text = ["t,a,b", "50,1,1", *["oops"] * BREAK, "3,,7", "4,2,2", "5,,3", *["oops"] * (BREAK - 1), "6,,4"]
    values, times, numbers, begins, told, _ = read("\n".join(text).encode(), layout=layout)
    assert times.tolist() == [50, 4, 5, 6]
    assert values[:, 0].tolist() == [1, 2, 2, 2]
    assert begins == [numbers[1]]
    assert numbers == [0, BREAK + 2, BREAK + 3, 2 * BREAK + 3]
    assert told[BREAK].startswith(f"x.csv, line {BREAK + 3}: column 'a': the first value is missing")
    assert len(told) == 2 * BREAK


def test_a_time_far_ahead_costs_the_lines_of_a_break():
    text = ["t,a,b", "1,1,1", "9999,1,1", *[f"{i},1,1" for i in range(2, 30)]]
    _, times, _, begins, told, _ = read("\n".join(text).encode())
    assert times.tolist() == [1, 9999, *range(2 + BREAK, 30)]
    assert (len(begins), len(told)) == (1, BREAK)


class Counting(RowReader):
    parsed = 0

    def parse(self, lines):
        Counting.parsed += len(lines)
        return super().parse(lines)


@pytest.mark.parametrize("pattern", [(0,), (0, 1), (1, 1, 1, 0), (1,) * 50 + (0,)])
def test_each_line_is_read_a_few_times_however_many_are_malformed(pattern):
    Counting.parsed = 0
    n_lines = 2000
    written = [f"{i},1,1" if pattern[i % len(pattern)] else "oops" for i in range(n_lines)]
    _, times, _, _, told, _ = read("\n".join(["t,a,b", *written]).encode(), kind=Counting)
    assert len(times) + len(told) == n_lines
    # The first attempt takes all lines at once.
    assert Counting.parsed <= n_lines + 6 * n_lines


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
    assert "expected a number, found 'oops'" in reports[1]
    assert "3 lines were skipped; of each, scores of the 4 rows after it may differ" in done.err

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
    assert "line 5: the line is empty, but others follow" in done.err
    frame = pd.DataFrame({"a": [1.0, np.inf, 3.0], "b": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "new.parquet", index=False)
    done = tsadbench("score", tmp_path / "t2.model", tmp_path / "new.parquet", "--on-error", "skip")
    assert [line.split(",")[0] for line in done.out.splitlines()] == ["row", "0", "2"]
    assert "row 1: column 'a': expected a finite number" in done.err


def test_nothing_but_malformed_lines_is_an_error_and_no_flood(tsadbench, windowed_model, tmp_path):
    (tmp_path / "all.csv").write_bytes(
        "\n".join([HEADER, *["garbage"] * 3000]).encode() + b"\n01.02.2026 00:00:00;\xff;2;Ann;0\n"
    )
    done = tsadbench("score", windowed_model, tmp_path / "all.csv", "--on-error", "skip")
    assert (done.code, done.out) == (2, "")
    assert "it has no rows that can be used" in done.err
    assert "3,001 lines were skipped" in done.err
    assert len(done.err.splitlines()) == 20 + 1 + 2 + 2
    # What was not read as a header cannot be skipped.
    (tmp_path / "none.csv").write_text("garbage\n" * 50)
    done = tsadbench("score", windowed_model, tmp_path / "none.csv", "--on-error", "skip")
    assert done.code == 2
    assert "missing" in done.err


def wait_for(path: Path, n_lines: int) -> list[str]:
    deadline = time.monotonic() + 60
    while len(found := path.read_text().splitlines()) < n_lines and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.mark.processes
def test_a_live_file_is_followed_over_malformed_lines_half_lines_and_rotation(windowed_model, tmp_path, tsadbench):
    live, out = tmp_path / "live.csv", tmp_path / "answers.csv"
    text = [HEADER, *lines(8, 30)]
    live.write_text("\n".join(text[:6]) + "\n")
    command = [sys.executable, "-m", "tsadbench", "score", str(windowed_model), str(live), "--follow", "--idle", "8"]
    with out.open("wb") as stream:
        running = subprocess.Popen([*command, "--on-error", "skip"], stdout=stream, stderr=subprocess.PIPE, text=True)
    assert len(wait_for(out, 6)) == 6
    with live.open("a") as file:
        # The logger died in the middle of a line, and went on in the same one.
        file.write(text[6][:12] + text[7] + "\n" + text[8] + "\n")
    assert len(wait_for(out, 7)) == 7
    with live.open("a") as file:
        file.write("\n".join([HEADER, *text[9:11]]) + "\n" + text[11][:5])
    assert len(wait_for(out, 9)) == 9
    os.rename(live, tmp_path / "live.csv.1")
    live.write_text("\n".join([*text[:11], "oops", *text[11:]]) + "\n")
    _, told = running.communicate(timeout=60)
    assert running.returncode == 1, told
    assert "Traceback" not in told
    skipped = [line for line in told.splitlines() if line.startswith("skipped: ")]
    assert [line.split(": ")[1].rpartition(" ")[2] for line in skipped] == ["7", "9", "12"]
    assert "its last line had no end and is left out: what follows is read as a new recording" in told
    assert "3 lines were skipped" in told
    found = out.read_text().splitlines()
    for first, rows in ((1, [*text[1:6], text[8], *text[9:11]]), (9, text[1:])):
        (tmp_path / "sound.csv").write_text("\n".join([HEADER, *rows]) + "\n")
        expected = tsadbench("score", windowed_model, tmp_path / "sound.csv").out.splitlines()
        assert found[first : first + len(rows)] == expected[1:]


def test_standard_input_ends_with_exit_code_1_and_the_answers_of_each_recording(windowed_model, tmp_path, tsadbench):
    text = lines(9, 30)
    given_lines = [HEADER, *text[:12], *["oops"] * BREAK, *text[12:]]
    done = subprocess.run(
        [sys.executable, "-m", "tsadbench", "score", str(windowed_model), "-", "--on-error", "skip"],
        input="\n".join(given_lines),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    expected = []
    for rows in (text[:12], text[12:]):
        (tmp_path / "one.csv").write_text("\n".join([HEADER, *rows]) + "\n")
        expected += tsadbench("score", windowed_model, tmp_path / "one.csv").out.splitlines()[1:]
    assert done.stdout.splitlines()[1:] == expected
    (tmp_path / "both.csv").write_text("\n".join(given_lines) + "\n")
    assert tsadbench("score", windowed_model, tmp_path / "both.csv", "--on-error", "skip").out == done.stdout
