"""Broken streams, unencodable characters, Ctrl-C: one line, the right exit code, no traceback."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.helpers.processes import boxes
from tsadbench.execution.store import Store

pytestmark = pytest.mark.processes

TSADBENCH = f"{sys.executable} -m tsadbench"
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
SLEEPS = ("-d", "tests.helpers.boxed:Misbehaves[how=sleep]", "--dataset", "pumploop", "--no-floors")


def shell(script: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which TSADBENCH is the command; the exit code is that of the first program in a pipe."""
    return subprocess.run(
        ["bash", "-c", f"{script}\nexit ${{PIPESTATUS[0]}}".replace("TSADBENCH", TSADBENCH)],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_closed_pipe_is_no_error():
    done = shell("TSADBENCH list | true")
    assert (done.returncode, done.stderr) == (141, "")


def test_a_closed_output_is_no_error():
    done = shell("TSADBENCH list >&-")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_is_one_line_and_exit_code_1():
    done = shell("TSADBENCH list > /dev/full")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "No space left on device" in done.stderr


def test_characters_that_a_stream_lacks_are_replaced():
    done = shell("TSADBENCH run -d max-z --dataset $'caf\\xe9\\x1b[31m' 2>&1", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout.isascii(), "Traceback" in done.stdout) == (2, True, False)
    assert r"\x1b[31m" in done.stdout


def test_ctrl_c_while_the_program_starts_is_one_line():
    command = [sys.executable, "-X", "importtime", "-m", "tsadbench", "run", *SLEEPS]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert any("typer" in line for line in started.stderr)  # the command line is being imported
    started.send_signal(signal.SIGINT)
    _, told = started.communicate(timeout=60)
    assert started.returncode == 130
    assert {line.partition(":")[0] for line in told.splitlines()} - {"import time"} == {"interrupted"}


def test_ctrl_c_ends_the_run_keeps_what_had_ended_and_leaves_no_process(tmp_path):
    command = [sys.executable, "-m", "tsadbench", "run", "-d", "max-z", *SLEEPS, "--out", str(tmp_path / "runs")]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=ENVIRONMENT)
    deadline = time.monotonic() + 120
    while not (list(tmp_path.glob("runs/records/*.json")) and boxes(run.pid)):
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    inside = boxes(run.pid)
    run.send_signal(signal.SIGINT)
    _, told = run.communicate(timeout=60)
    assert (run.returncode, "Traceback" in told) == (130, False)
    assert "1 of 2 trials" in told
    assert [record.label for record in Store.open(tmp_path / "runs").records()] == ["max-z"]
    _, alive = psutil.wait_procs(inside, timeout=60)
    assert not alive


def test_ctrl_c_on_a_terminal_shows_the_cursor_again(tmp_path):
    """The bars hide the cursor; a second Ctrl-C leaves no time to tidy up."""
    terminal, theirs = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-m", "tsadbench", "run", *SLEEPS, "--out", str(tmp_path / "runs")],
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
        if b"seed 0" in shown and pressed < 2:
            started.send_signal(signal.SIGINT)
            pressed += 1
    os.close(terminal)
    assert started.wait(timeout=60) == 130
    text = shown.decode(errors="replace")
    assert "Traceback" not in text
    assert text.count("interrupted") in (1, 2)
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
