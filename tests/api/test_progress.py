"""What `tsadbench.run` shows while it works, and what an interrupt leaves."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

import tsadbench
from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tests.helpers.records import record
from tsadbench.api import live, running

pytestmark = pytest.mark.usefixtures("tiny_plugin")


def run(**arguments):
    return tsadbench.run(["distance", "noisy"], make_data(), seeds=2, floors=False, **arguments)


def took(trial, seconds, status="ok", reason=""):
    made = record("noisy", trial.seed, status=status, dataset="small")
    return replace(made, fit_seconds=seconds, score_seconds=0.0, reason=reason)


def test_a_pipe_gets_a_line_per_trial_if_asked_for(capfd, tmp_path):
    run()
    run(progress=False)
    assert capfd.readouterr() == ("", "")
    run(progress=True, out=tmp_path)
    assert [line.partition("]")[0] for line in capfd.readouterr().err.splitlines()] == ["[1/3", "[2/3", "[3/3"]
    for progress in (True, False):
        assert any("3 of them from an earlier run" in line for line in run(progress=progress, out=tmp_path).said)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_and_the_failures(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(
        live, "Console", lambda **_: Console(file=written, width=200, force_terminal=True, legacy_windows=False)
    )
    plan = make_plan(["noisy"], dataset=make_data(), floors=False, seeds=4)
    kept, first, second, _ = plan.trials
    with live.bars() as bars:
        shown = live.RunProgress([plan, plan], bars)
        (bar,) = bars.tasks
        shown.kept(kept, took(kept, 1.0))
        shown.started(first)
        shown.progressed(first, 3, 7, "epoch 3")
        assert bar.fields["note"] == "noisy, seed 1: 3 of 7, epoch 3"
        shown.finished(first, took(first, 60.0))
        shown.started(second)
        shown.finished(second, took(second, 1.0, "timeout", "too\nlong"))
        assert (bar.completed, bar.total, bar.fields["note"], shown.n_done) == (2, 7, "1 failed", 3)
    assert "[3/8] small, strict: noisy, seed 2: timeout: too long" in written.getvalue()
    assert "seed 1: ok" not in written.getvalue()


def test_an_interrupt_says_what_is_kept(monkeypatch, tmp_path):
    real = running.run_plan

    def interrupted(plan, *arguments, **options):
        real(replace(plan, trials=plan.trials[:2]), *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run_plan", interrupted)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        run(out=tmp_path / "runs")
    (note,) = interrupt.value.__notes__
    assert "2 of 3" in note
    assert str(tmp_path / "runs") in note
