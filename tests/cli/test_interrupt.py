"""Ctrl-C: exit code 130, what had ended is kept, no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.helpers.processes import boxes
from tsadbench.execution.run_store import Store

pytestmark = pytest.mark.processes

SLEEPS = """
import time
import numpy as np
from tsadbench import Detector

class Sleeps(Detector):
    '''Sleeps while it is fitted.'''
    def _fit(self, recordings):
        time.sleep(600)
    def _score(self, recording):
        return np.zeros(recording.n_rows)
"""


@pytest.mark.skab
def test_an_interrupt_ends_the_run_keeps_what_had_ended_and_leaves_no_process(skab_directory, tmp_path):
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    detectors = ("-d", "tests.helpers.tiny:Distance", "-d", f"{tmp_path}/sleeps.py:Sleeps")
    run = subprocess.Popen(
        [sys.executable, "-m", "tsadbench", "run", *detectors, "--no-floors", "--out", str(tmp_path / "runs")],
        env={**os.environ, "TSADBENCH_DATA": str(skab_directory)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not (list(tmp_path.glob("runs/*/record.json")) and boxes(run.pid)):
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    inside = boxes(run.pid)
    run.send_signal(signal.SIGINT)
    _, told = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "interrupted" in told
    assert "Traceback" not in told
    assert [record.label for record in Store.open(tmp_path / "runs").records()] == ["tests.helpers.tiny:Distance"]
    _, alive = psutil.wait_procs(inside, timeout=60)
    assert not alive
