"""What `tsadbench.run` shows while it works, and what an interrupt leaves."""

from __future__ import annotations

import pytest

import tsadbench
from tests.helpers.data import make_data
from tsadbench.api import running

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


def test_an_interrupt_says_what_is_kept(monkeypatch, tmp_path):
    real = running.run_plan

    def interrupted(*arguments, **options):
        real(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run_plan", interrupted)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        run(out=tmp_path / "runs")
    (note,) = interrupt.value.__notes__
    assert "3 of 3" in note
    assert str(tmp_path / "runs") in note
