"""What standard error shows while a command works."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tests.helpers.records import record
from tsadbench.api import live as api_live
from tsadbench.api.live import RunProgress


@pytest.fixture
def plan(tiny_plugin):
    return make_plan(["noisy"], dataset=make_data(), floors=False, seeds=4)


def took(trial, seconds, status="ok", reason=""):
    made = record("noisy", trial.seed, status=status, dataset="small")
    return replace(made, fit_seconds=seconds, score_seconds=0.0, reason=reason)


def test_a_pipe_gets_a_line_per_trial(plan, capsys):
    first, second, third, fourth = plan.trials
    with RunProgress([plan]) as shown:
        shown.kept(first, took(first, 1.0))
        for trial in (second, third, fourth):
            shown.started(trial)
            shown.progressed(trial, 1, 2, "epoch 1")
        shown.finished(third, took(third, 2.0))
        shown.finished(second, took(second, 2.0, "error", "line 1\nline 2"))
        shown.finished(fourth, took(fourth, 0.25))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "[2/4] noisy, seed 2: ok, 2.0 s",
        "[3/4] noisy, seed 1: error: line 1 line 2",
        "[4/4] noisy, seed 3: ok, 0.2 s",
    ]
    assert (shown.n_kept, shown.n_failed) == (1, 1)


def test_a_terminal_gets_bars_and_the_failures(plan, monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(
        api_live, "Console", lambda **_: Console(file=written, width=200, force_terminal=True, legacy_windows=False)
    )
    first, second, *_ = plan.trials
    with RunProgress([plan, plan]) as shown:
        (bar,) = shown._bars.tasks
        shown.started(first)
        shown.progressed(first, 3, 7, "epoch 3")
        assert bar.fields["note"] == "noisy, seed 0: 3 of 7, epoch 3"
        shown.finished(first, took(first, 60.0))
        shown.started(second)
        shown.finished(second, took(second, 1.0, "timeout", "too long"))
        assert (bar.completed, bar.total, bar.fields["note"]) == (2, 8, "1 failed")
    assert "seed 1: timeout: too long" in written.getvalue()
    assert "seed 0: ok" not in written.getvalue()
