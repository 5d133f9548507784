"""`tsadbench score` on rows that arrive: each is answered as soon as it can be, and as in a whole file.

Processes: standard input, growing files and interrupts are the subject.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.german_plant import HEADER, lines
from tsadbench.serving import fit_model

pytestmark = pytest.mark.processes
AROUND = "tests.helpers.tiny:Around"


@pytest.fixture(scope="module")
def ahead_model(plant, tmp_path_factory) -> Path:
    """It looks three rows ahead."""
    out = tmp_path_factory.mktemp("ahead") / "around.model"
    fit_model(AROUND, str(plant / "card.toml"), out)
    return out


def wait_for(path: Path, n_lines: int) -> list[str]:
    deadline = time.monotonic() + 60
    while len(found := path.read_text().splitlines()) < n_lines and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def start(out: Path, *arguments: object, **options) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tsadbench", "score", *map(str, arguments)]
    with out.open("wb") as stream:
        return subprocess.Popen(command, stdout=stream, stderr=subprocess.PIPE, **options)


def close(found: list[str], expected: list[str]) -> bool:
    one, other = (pd.read_csv(io.StringIO("\n".join(text))) for text in (found, expected))
    return one["time"].tolist() == other["time"].tolist() and np.allclose(one["score"], other["score"], equal_nan=True)


@pytest.mark.long  # it ends five seconds after the last row
def test_a_growing_file_is_followed_over_partial_lines_truncation_and_rotation(tsadbench, ahead_model, tmp_path):
    growing, out = tmp_path / "live.csv", tmp_path / "answers.csv"
    rows = [HEADER, *lines(3, 40)]
    text = [f"{line}\n" for line in rows]
    growing.write_text("".join(text[:11]) + text[11][:9])
    running = start(out, ahead_model, growing, "--detector", AROUND, "--follow", "--idle", 5)
    assert len(wait_for(out, 8)) == 1 + 10 - 3  # a row is answered once three more are there
    with growing.open("a") as stream:
        stream.write(text[11][9:] + "".join(text[12:21]))
    assert len(wait_for(out, 18)) == 1 + 20 - 3
    growing.write_text("".join(text[:6]))  # shorter: the first recording ends, and the next one begins
    assert len(wait_for(out, 23)) == 1 + 20 + 5 - 3
    os.rename(growing, tmp_path / "live.csv.1")
    growing.write_text("".join(text)[:-1])
    _, told = running.communicate(timeout=60)
    assert running.returncode == 0, told
    assert told.count(b"live.csv") == 2  # it has become shorter, and another file has taken its name
    found = out.read_text().splitlines()
    assert len(found) == 1 + 20 + 5 + 40
    for begin, count in ((1, 20), (21, 5), (26, 40)):
        (tmp_path / "whole.csv").write_text("\n".join(rows[: count + 1]) + "\n")
        expected = tsadbench("score", ahead_model, tmp_path / "whole.csv", "--detector", AROUND).out.splitlines()
        assert close([found[0], *found[begin : begin + count]], expected)


def test_standard_input_is_answered_row_by_row_until_a_wrong_line(tsadbench, ahead_model, tmp_path):
    text, out = [HEADER, *lines(4, 12)], tmp_path / "answers.csv"
    running = start(out, ahead_model, "-", "--detector", AROUND, "--contributions", stdin=subprocess.PIPE)
    running.stdin.write(("\n".join(text[:9]) + "\n").encode())
    running.stdin.flush()
    assert len(wait_for(out, 6)) == 1 + 8 - 3
    wrong = "01.02.2026 00:00:13;oops;1;Ann;0"
    _, told = running.communicate("\n".join([*text[9:], wrong]).encode(), timeout=60)
    assert running.returncode == 2
    assert b"standard input, line 14" in told
    assert b"'Pressure [bar]'" in told
    (tmp_path / "whole.csv").write_text("\n".join(text))
    expected = tsadbench("score", ahead_model, tmp_path / "whole.csv", "--detector", AROUND, "--contributions")
    found = out.read_text().splitlines()
    assert close(found, expected.out.splitlines()[: len(found)])
    assert len(found) >= 1 + 12 - 3


def test_an_interrupt_ends_it_quietly(plant, model_file, tmp_path):
    running = start(tmp_path / "answers.csv", model_file, plant / "run.csv", "--follow")
    assert len(wait_for(tmp_path / "answers.csv", 61)) == 61
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert (running.returncode, told) == (130, b"")


@pytest.mark.long  # two processes that import everything
@pytest.mark.parametrize("detector", ["t2"])
def test_as_installed_with_no_import_path_of_these_tests(detector, plant, tmp_path):
    """Packages that are installed for editing lie on no path: the box must import them by their names all the same."""
    command = [sys.executable, "-P", "-m", "tsadbench"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    out, run = tmp_path / "x.model", plant / "run.csv"
    for arguments, lines_out in (
        (["fit", "-d", detector, "--dataset", str(plant / "card.toml"), "--out", str(out)], 4),
        (["score", str(out), str(run)], 61),
    ):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == lines_out
