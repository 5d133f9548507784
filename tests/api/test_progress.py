"""What `tsadbench.run` shows while it works, and what an interrupt leaves."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import textwrap
import time
import types
from pathlib import Path

import psutil
import pytest

import tsadbench
from tests.helpers.data import make_data
from tsadbench import UsageError

pytestmark = pytest.mark.usefixtures("tiny_plugin")


def run(**arguments):
    return tsadbench.run(["distance", "noisy"], make_data(), seeds=2, floors=False, **arguments)


def test_a_pipe_gets_lines_only_if_asked_for(capfd):
    run()
    run(progress=False)
    assert capfd.readouterr() == ("", "")
    run(progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert [line.partition("]")[0] for line in err.splitlines() if "seed" in line] == ["[1/3", "[2/3", "[3/3"]
    with pytest.raises(UsageError, match=r"^progress: expected True, False or None, found 'yes'"):
        run(progress="yes")


def test_a_notebook_gets_one_bar_of_tqdms(monkeypatch):
    """With tqdm's bar for texts in the place of its widget, which needs a browser."""
    tqdm = pytest.importorskip("tqdm")
    written = io.StringIO()

    class Bar(tqdm.tqdm):
        def __init__(self, **arguments):
            super().__init__(**arguments, file=written, mininterval=0)

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "ipywidgets", types.ModuleType("ipywidgets"))
    monkeypatch.setitem(sys.modules, "tqdm.notebook", types.SimpleNamespace(tqdm=Bar))
    run()
    last = written.getvalue().rstrip().splitlines()[-1].rpartition("\r")[2]
    assert "3/3" in last
    assert last.startswith("trials: 100%")
    written.truncate(0)
    run(progress=False)
    assert written.getvalue() == ""


SCRIPT = """
    import time
    import numpy as np
    import tsadbench
    from tests.helpers.data import make_data
    from tests.helpers.tiny import Distance

    class Slow(Distance):
        def _fit(self, recordings):
            time.sleep(600)

    if __name__ == "__main__":
        tsadbench.run(["tests.helpers.tiny:Distance", Slow], make_data(), floors=False, out="runs", progress=True)
"""


@pytest.mark.processes
def test_ctrl_c_ends_the_boxes_and_says_what_is_kept(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stderr.readline()
    while "[1/2]" not in line or "seed" not in line:
        assert line, "it ended by itself"
        line = process.stderr.readline()
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate()
    assert process.returncode != 0
    assert rest.splitlines()[-2:] == [
        "KeyboardInterrupt",
        "1 of 2 trials are kept in runs; run again to go on",
    ]
    deadline = time.monotonic() + 20
    while any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children):
        assert time.monotonic() < deadline, "a box has outlived the run"
        time.sleep(0.1)
    assert len(tsadbench.load_board(tmp_path / "runs").rows) > 0
