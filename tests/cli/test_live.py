"""What a run says while it works: counts, outcomes, and the time left if it is known."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tests.helpers.records import record
from tsadbench.api.live import Lines, LiveTable, bars
from tsadbench.results.time_left import TimeLeft

pytestmark = pytest.mark.usefixtures("tiny_plugin")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def plan():
    return make_plan(["noisy"], dataset=make_data(), floors=False, seeds=4)


@pytest.fixture
def clock():
    return Clock()


def took(trial, seconds, status="ok"):
    made = record("noisy", trial.seed, status=status, dataset="small")
    return replace(made, fit_seconds=seconds, score_seconds=0.0)


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=200)


def lines(console):
    return console.file.getvalue().splitlines()


def test_lines_say_how_long_all_will_take_before_the_first_trial(plan, clock, console):
    first, second, *rest = plan.trials
    shown = Lines(console, TimeLeft([plan], clock=clock))
    shown.kept(first, took(first, 200.0))
    shown.started(second)
    clock.now += 300
    shown.finished(second, took(second, 300.0))
    shown.started(rest[0])
    assert lines(console) == [
        "[1/4] about 10 min left",
        "[2/4] noisy, seed 1: ok, 5 min; about 10 min left",
    ]
    clock.now += 250
    shown.finished(rest[0], took(rest[0], 250.0, status="error"))
    shown.started(rest[1])
    clock.now += 200
    shown.finished(rest[1], took(rest[1], 200.0))
    # Of this run's 300 and 250 seconds the last trial takes the mean; at the end nothing is left to be said.
    assert lines(console)[2:] == [
        "[3/4] noisy, seed 2: error: it broke; 1 failed; about 5 min left",
        "[4/4] noisy, seed 3: ok, 3 min; 1 failed",
    ]


def test_where_nothing_is_known_nothing_is_said(plan, clock, console):
    shown = Lines(console, TimeLeft([plan], clock=clock))
    shown.started(plan.trials[0])
    assert lines(console) == []
    clock.now += 20
    shown.finished(plan.trials[0], took(plan.trials[0], 20.0))
    assert lines(console) == ["[1/4] noisy, seed 0: ok, 20 s; about 60 s left"]


def test_a_live_table_counts_and_estimates(plan, clock):
    first, second, third, _ = plan.trials
    with bars(Console(file=io.StringIO(), width=200, force_terminal=True)) as drawn:
        shown = LiveTable(drawn, TimeLeft([plan], jobs=2, clock=clock))
        (total,) = drawn.tasks
        shown.started(first)
        assert (total.completed, total.total, total.fields["note"]) == (0, 4, "1 running")
        clock.now += 60
        shown.finished(first, took(first, 60.0))
        assert (total.completed, total.fields["note"]) == (1, "0 running, about 90 s left")
        shown.started(second)
        shown.started(third)
        clock.now += 30
        shown.progressed(second, 1, 2, "epoch 1")
        # Two have run for 30 of 60 seconds, one is to come.
        assert total.fields["note"] == "2 running, about 60 s left"
        shown.finished(second, took(second, 30.0, status="timeout"))
        assert total.fields["note"].startswith("1 running, 1 failed, about ")
