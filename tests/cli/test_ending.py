"""Broken streams, a lost working directory, Ctrl-C at any time: one line, the right exit code, no traceback."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.plans import make_plan
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan

pytestmark = pytest.mark.processes

TSADBENCH = f"{sys.executable} -m tsadbench"
ROOT = Path(__file__).parents[2]
FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A store of four trials, whose tables fill some lines."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    detectors = ["max-z", "sensor-range", "l2-z", "tests.helpers.tiny:Distance"]
    run_plan(make_plan(detectors, dataset="pumploop", floors=False, timeout=60), Store.create(folder))
    return folder


# Commands by what they print with: Typer, Rich, plain writes, their help.
PRINTING = {
    "list": "list",
    "help": "--help",
    "table": "leaderboard RUNS",
    "JSON": "leaderboard RUNS --format json",
}


def shell(script: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which TSADBENCH is the command; its exit code is that of the first program of a pipe."""
    return subprocess.run(
        ["bash", "-c", f"{script}\nexit ${{PIPESTATUS[0]}}".replace("TSADBENCH", TSADBENCH)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", PRINTING.values(), ids=PRINTING)
def test_a_reader_that_has_enough_is_no_error(runs, command):
    done = shell(f"TSADBENCH {command.replace('RUNS', str(runs))} | true")
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", PRINTING.values(), ids=PRINTING)
def test_a_full_device_is_one_line_and_exit_code_1(runs, command):
    done = shell(f"TSADBENCH {command.replace('RUNS', str(runs))} > /dev/full")
    told = "tsadbench: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_where_nothing_can_be_told_the_exit_code_still_tells():
    assert shell("TSADBENCH list > /dev/full 2>&1").returncode == 1
    assert shell("TSADBENCH run --dataset nope 2> /dev/full").returncode == 2


@pytest.mark.parametrize("command", PRINTING.values(), ids=PRINTING)
def test_characters_that_a_stream_lacks_are_replaced(runs, command):
    done = shell(f"TSADBENCH {command.replace('RUNS', str(runs))}", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "Traceback" not in done.stderr
    assert done.stdout
    if "json" in command:
        json.loads(done.stdout)


def test_the_c_locale_is_enough():
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = shell("TSADBENCH run -d max-z --dataset grösse-温度", **plain)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_name_that_is_no_text_can_be_told():
    done = shell("TSADBENCH run -d max-z --dataset $'caf\\xe9\\x1b[31m' 2>&1")
    assert done.returncode == 2
    assert r"caf\udce9\x1b[31m" in done.stdout


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["list", "leaderboard RUNS"])
def test_closed_streams_are_as_good_as_empty_ones(runs, command, streams):
    done = shell(f"TSADBENCH {command.replace('RUNS', str(runs))} {streams}")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_run_with_closed_streams_writes_into_no_file_of_its_own(tmp_path):
    store = tmp_path / "runs"
    command = f"TSADBENCH run -d max-z --dataset pumploop --no-floors --out {store}"
    done = shell(f"{command} <&- >&- 2>&-")
    assert done.returncode == 0
    assert [record.status for record in Store.open(store).records()] == ["ok"]
    for file in store.rglob("*"):
        assert file.is_dir() or b"trials are kept" not in file.read_bytes()


def test_closed_streams_change_no_exit_code():
    assert shell("TSADBENCH run --dataset nope <&- >&- 2>&-").returncode == 2


@pytest.mark.parametrize(
    "command",
    ["list", "run -d max-z --dataset pumploop --no-floors", "new detector mine"],
)
def test_a_working_directory_that_is_gone_is_one_line_at_most(tmp_path, command):
    done = shell(f"mkdir gone && cd gone && rmdir ../gone && TSADBENCH {command}", cwd=tmp_path)
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1


def interrupted_after(seconds: float, again: float | None, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command and press Ctrl-C after so long, and perhaps once more."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tsadbench", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    time.sleep(seconds)
    started.send_signal(signal.SIGINT)
    if again is not None:
        time.sleep(again)
        started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    return subprocess.CompletedProcess(command, started.returncode, out, err)


@pytest.mark.parametrize(
    ("seconds", "again"), [(0.3, None), (0.9, None), (2.0, None), (0.3, 0.0), (0.9, 0.05), (2.0, 0.0)]
)
def test_ctrl_c_at_any_time_is_one_line(tmp_path, seconds, again):
    """While it imports, plans or runs; pressed once or twice."""
    done = interrupted_after(
        seconds, again, "run", "-d", "tests.helpers.boxed:Misbehaves[how=sleep]", "--dataset", "pumploop",
        "--no-floors", "--out", str(tmp_path / "runs"),
    )  # fmt: skip
    told = [line for line in done.stderr.splitlines() if not line.startswith("[")]
    assert done.returncode == 130, done.stderr
    assert 1 <= len(told) <= (1 if again is None else 2), done.stderr
    assert all(line.startswith("interrupted") for line in told)


def test_ctrl_c_on_a_terminal_is_one_line_and_shows_the_cursor_again(tmp_path):
    """The bars hide the cursor; a second Ctrl-C leaves no time to tidy up."""
    terminal, theirs = pty.openpty()
    arguments = ("-d", "tests.helpers.boxed:Misbehaves[how=sleep]", "--dataset", "pumploop", "--no-floors")
    started = subprocess.Popen(
        [sys.executable, "-m", "tsadbench", "run", *arguments, "--out", str(tmp_path / "runs")],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    pressed = 0
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # Linux: the other side is closed
                break
        if b"running" in shown and pressed < 2:
            started.send_signal(signal.SIGINT)
            pressed += 1
    os.close(terminal)
    assert started.wait(timeout=60) == 130
    text = shown.decode(errors="replace")
    assert "Traceback" not in text
    assert text.count("interrupted") in (1, 2)
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_a_process_that_is_to_ignore_ctrl_c_goes_on():
    done = shell("trap '' INT; TSADBENCH list & sleep 0.3; kill -INT $!; wait $!")
    assert done.returncode == 0
    assert "detectors:" in done.stdout
