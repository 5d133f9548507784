"""How long a run will take yet: estimates worked out by hand, on a clock of the test's own."""

from __future__ import annotations

import heapq
import json
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tests.helpers.records import record
from tsadbench.base import Detector, Traits
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.results.time_left import TimeLeft
from tsadbench.utils.shipped_tables import LEADERBOARDS

pytestmark = pytest.mark.usefixtures("tiny_plugin")


class Weighed(Detector):
    """A detector whose weight only scoring needs, so that variants share a fit."""

    traits = Traits(memory=0, stochastic=True, scoring_parameters=("weight",))

    def __init__(self, *, weight: float = 1.0, seed: int = 0) -> None:
        self.weight = weight
        self.seed = seed

    def _fit(self, recordings):
        pass

    def _score(self, recording):
        return self.weight * recording.values.sum(axis=1)


class Clock:
    """Seconds that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def nothing_ships(monkeypatch, tmp_path_factory):
    """No leaderboard ships, unless the test lets one ship."""
    folder = tmp_path_factory.mktemp("shipped")
    monkeypatch.setattr("tsadbench.results.shipped.LEADERBOARDS", folder)
    return folder


def plan_of(*detectors, seeds=1, threads=1):
    return make_plan(list(detectors), dataset=make_data(), floors=False, seeds=seeds, threads=threads)


def took(trial, fit, score=0.0, status="ok", **changes):
    """Return the record of a trial that took these seconds."""
    made = record(trial.contender.label, trial.seed, status=status)
    return replace(
        made,
        **{
            "detector": trial.contender.name,
            "dataset": "small",
            "protocol": "strict",
            "threads": trial.threads,
            "fit_seconds": fit,
            "score_seconds": score,
            **changes,
        },
    )


def test_nothing_is_said_while_nothing_is_known(clock):
    plan = plan_of("noisy", "distance", seeds=2)
    left = TimeLeft([plan], clock=clock)
    assert left.n_trials == 3
    assert left.seconds() is None
    left.started(plan.trials[0])
    clock.now += 5
    assert left.seconds() is None


def test_other_seeds_are_what_a_trial_will_take(clock):
    plan = plan_of("noisy", seeds=5)
    left = TimeLeft([plan], clock=clock)
    left.kept(plan.trials[0], took(plan.trials[0], 8.0, 2.0))
    left.kept(plan.trials[1], took(plan.trials[1], 10.0, 4.0))
    assert left.seconds() == 3 * 12.0


def test_what_runs_has_less_left_but_never_less_than_nothing(clock):
    plan = plan_of("noisy", seeds=3)
    left = TimeLeft([plan], clock=clock)
    left.kept(plan.trials[0], took(plan.trials[0], 10.0))
    left.started(plan.trials[1])
    clock.now += 4
    assert left.seconds() == 6 + 10
    clock.now += 60
    assert left.seconds() == 10


@pytest.mark.parametrize(("jobs", "expected"), [(1, 42.0), (2, 21.0), (3, 14.0), (5, 10.0), (9, 10.0)])
def test_jobs_share_the_work_and_the_longest_trial_bounds_it(clock, jobs, expected):
    plan = plan_of("noisy", "noisy[power=3]", seeds=5)
    long, short = plan.trials[:5], plan.trials[5:]
    left = TimeLeft([plan], jobs=jobs, clock=clock)
    left.kept(long[0], took(long[0], 10.0))
    for trial in short[:3]:
        left.kept(trial, took(trial, 1.0))
    # Four of ten seconds and two of one are left.
    assert left.seconds() == expected


def test_two_at_a_time(clock):
    plan = plan_of("noisy", seeds=4)
    left = TimeLeft([plan], jobs=2, clock=clock)
    left.kept(plan.trials[0], took(plan.trials[0], 10.0))
    left.started(plan.trials[1])
    left.started(plan.trials[2])
    clock.now += 4
    # 6 and 6 of those that run, 10 to come.
    assert left.seconds() == (6 + 6 + 10) / 2
    clock.now += 4
    assert left.seconds() == 10, "no less than the longest"


def test_on_a_cluster_as_many_run_at_once_as_were_seen(clock):
    plan = plan_of("noisy", seeds=5)
    left = TimeLeft([plan], jobs=None, clock=clock)
    left.kept(plan.trials[0], took(plan.trials[0], 12.0))
    for trial in plan.trials[1:4]:
        left.started(trial)
    left.started(plan.trials[1])  # a cluster may start a trial twice
    assert left.seconds() == 4 * 12 / 3


def test_variants_share_a_fit(clock):
    variants = [Weighed(), Weighed(weight=2.0), Weighed(weight=3.0)]
    plan = make_plan(variants, dataset=make_data(), floors=False, seeds=2)
    first, second = ([trial for trial in plan.trials if trial.seed == seed] for seed in (0, 1))
    left = TimeLeft([plan], clock=clock)
    for trial in first:
        left.kept(trial, took(trial, 10.0, 1.0))
    # One more fit, scored three times.
    assert left.seconds() == 10 + 3
    for trial in second:
        left.started(trial)
    clock.now += 5
    assert left.seconds() == 8
    for trial in second:
        left.finished(trial, took(trial, 10.0, 1.0))
    clock.now += 5
    assert left.seconds() == 0


def test_the_same_detector_on_the_data_comes_next_then_whatever_has_ended(clock):
    plan = plan_of("noisy[power=3]", "noisy", "distance")
    like, noisy, other = plan.trials
    left = TimeLeft([plan], clock=clock)
    left.started(like)
    clock.now += 20
    left.finished(like, took(like, 20.0))
    # Both are expected to take what it took: one as it is the same detector, one for want of better.
    assert left.seconds() == 40
    left.started(noisy)
    clock.now += 4
    left.finished(noisy, took(noisy, 4.0))
    assert left.seconds() == (20 + 4) / 2
    left.started(other)
    clock.now += 1
    left.finished(other, took(other, 1.0))
    assert left.seconds() == 0


def test_a_kept_trial_of_another_detector_says_nothing(clock):
    plan = plan_of("noisy", "distance")
    left = TimeLeft([plan], clock=clock)
    left.kept(plan.trials[0], took(plan.trials[0], 10.0))
    assert left.seconds() is None


def test_another_number_of_threads_is_not_the_same_but_similar(clock):
    plan = plan_of("noisy", seeds=3, threads=2)
    left = TimeLeft([plan], clock=clock)
    left.kept(plan.trials[0], took(plan.trials[0], 30.0, threads=1))
    assert left.seconds() == 60
    clock.now += 1
    left.kept(plan.trials[1], took(plan.trials[1], 10.0))
    assert left.seconds() == 10


def test_what_a_trial_takes_beside_its_fit_is_learned_from_the_run(clock):
    plan = plan_of("noisy", seeds=4)
    left = TimeLeft([plan], clock=clock)
    left.kept(plan.trials[0], took(plan.trials[0], 1.0))
    assert left.seconds() == 3
    left.started(plan.trials[1])
    clock.now += 1.5
    left.finished(plan.trials[1], took(plan.trials[1], 0.5, 0.5))
    # Its process, its judgement and its files took half a second.
    assert left.seconds() == 2 * (1 + 0.5)


def test_this_runs_trials_go_before_earlier_ones(clock):
    plan = plan_of("noisy", seeds=5)
    left = TimeLeft([plan], clock=clock)
    left.kept(plan.trials[0], took(plan.trials[0], 50.0))
    for trial, seconds in zip(plan.trials[1:3], (2.0, 3.0), strict=True):
        left.started(trial)
        clock.now += seconds
        left.finished(trial, took(trial, seconds))
    assert left.seconds() == 2 * 2.5


def test_of_a_trial_that_failed_its_whole_time_counts_if_it_was_in_this_run(clock):
    plan = plan_of("noisy", seeds=4)
    left = TimeLeft([plan], clock=clock)
    left.kept(plan.trials[0], took(plan.trials[0], 500.0, status="timeout"))
    assert left.seconds() is None
    left.started(plan.trials[1])
    clock.now += 7
    left.finished(plan.trials[1], took(plan.trials[1], 0.0, status="error"))
    assert left.seconds() == 2 * 7


def test_between_two_looks_it_counts_down(clock):
    plan = plan_of("noisy", seeds=2)
    left = TimeLeft([plan], clock=clock)
    left.kept(plan.trials[0], took(plan.trials[0], 10.0))
    assert left.seconds() == 10
    clock.now += 0.25
    assert left.seconds() == 9.75


class TestStore:
    @pytest.fixture
    def store(self, tmp_path):
        return Store.create(tmp_path / "runs")

    def test_seeds_that_the_run_does_not_ask_for_are_found_by_their_names(self, store, clock):
        first, second, last = run_plan(plan_of("noisy", seeds=3), store)
        store.replace_record(replace(last, fit_seconds=6.0, score_seconds=1.0), last.trial)
        store.remove(first.trial)
        store.remove(second.trial)
        store.sample = lambda n: ()
        assert TimeLeft([plan_of("noisy", seeds=2)], store, clock=clock).seconds() == 14

    def test_other_parameters_on_the_data_are_found(self, store, clock):
        (other,) = run_plan(plan_of("noisy[power=3]"), store)
        store.replace_record(replace(other, fit_seconds=5.0, score_seconds=0.0), other.trial)
        assert TimeLeft([plan_of("noisy", seeds=2)], store, clock=clock).seconds() == 10
        assert TimeLeft([plan_of("distance")], store, clock=clock).seconds() is None

    def test_of_a_large_store_a_few_hundred_trials_are_read(self, store, clock):
        (made,) = run_plan(plan_of("distance"), store)
        text = made.to_json()
        for number in range(1000):
            folder = store.path / f"{number:024d}"
            folder.mkdir()
            (folder / "record.json").write_text(text.replace(made.trial, folder.name))
        reads = count()

        class Counting(Store):
            def find(self, trial):
                next(reads)
                return super().find(trial)

        plan = plan_of(*(f"noisy[power={2 + n / 1000}]" for n in range(40)), seeds=15)
        left = TimeLeft([plan], Counting(store.path), clock=clock)
        assert next(reads) == 0, "nothing is read before it is asked"
        left.seconds()
        clock.now += 2
        left.seconds()
        assert 100 < next(reads) - 1 <= 400


class TestShipped:
    @pytest.fixture
    def ship(self, nothing_ships):
        def call(*records):
            file = nothing_ships / "small" / "strict" / "records.jsonl"
            file.parent.mkdir(parents=True)
            file.write_text("".join(f"{one.to_json(indent=None)}\n" for one in records))

        return call

    def test_rows_that_ship_are_taken_as_they_are(self, ship, clock):
        plan = plan_of("noisy", "distance", seeds=3)
        *noisy, distance = plan.trials
        ship(took(noisy[0], 4.0), took(noisy[1], 6.0), took(distance, 2.0))
        left = TimeLeft([plan], clock=clock)
        assert left.seconds() == 3 * 5 + 2
        left.started(distance)
        clock.now += 6
        left.finished(distance, took(distance, 6.0))
        assert left.seconds() == 3 * 5

    def test_the_detectors_row_with_other_parameters_will_do(self, ship, clock):
        ship(took(plan_of("noisy[power=3]").trials[0], 7.0))
        assert TimeLeft([plan_of("noisy", seeds=2)], clock=clock).seconds() == 14

    def test_the_store_goes_before(self, ship, clock):
        plan = plan_of("noisy", seeds=2)
        ship(took(plan.trials[0], 100.0))
        left = TimeLeft([plan], clock=clock)
        left.kept(plan.trials[0], took(plan.trials[0], 3.0))
        assert left.seconds() == 3

    def test_a_detector_that_no_table_of_the_data_has_keeps_its_pace_on_other_data(self, ship, nothing_ships, clock):
        plan = plan_of("noisy", "distance", seeds=2)
        *noisy, distance = plan.trials
        n_rows = sum(one.n_rows for one in (*plan.data.dataset.train, *plan.data.dataset.test))
        file = nothing_ships / "large" / "strict" / "records.jsonl"
        file.parent.mkdir(parents=True)
        other = took(distance, 30.0, 12.0, dataset="large", rows_scored=3 * n_rows)
        file.write_text(f"{other.to_json(indent=None)}\n")
        left = TimeLeft([plan], clock=clock)
        left.started(noisy[0])
        clock.now += 2
        left.finished(noisy[0], took(noisy[0], 2.0))
        assert left.seconds() == pytest.approx(2 + (30 + 12) / 3)

    def test_a_broken_file_is_no_experience(self, ship, nothing_ships, clock):
        ship(took(plan_of("noisy").trials[0], 7.0))
        (nothing_ships / "small" / "strict" / "records.jsonl").write_text("{")
        assert TimeLeft([plan_of("noisy")], clock=clock).seconds() is None

    def test_those_of_the_package_give_an_estimate_of_a_first_run(self, monkeypatch):
        monkeypatch.setattr("tsadbench.results.shipped.LEADERBOARDS", LEADERBOARDS)
        plan = make_plan(["t2", "isolation-forest"], dataset="pumploop", floors=False, seeds=3)
        lines = (LEADERBOARDS / "pumploop" / "strict" / "records.jsonl").read_text().splitlines()
        seconds = {"t2": [], "isolation-forest": []}
        for row in map(json.loads, lines):
            seconds.get(row["label"], []).append(row["fit_seconds"] + row["score_seconds"])
        once, thrice = (sum(values) / len(values) for values in seconds.values())
        assert TimeLeft([plan], clock=Clock()).seconds() == pytest.approx(once + 3 * thrice)


def test_several_plans_are_one_run(clock):
    one = plan_of("noisy", seeds=2)
    other = make_plan(["noisy"], dataset=make_data(), protocol="published", floors=False, seeds=2)
    left = TimeLeft([one, other], clock=clock)
    assert left.n_trials == 4
    left.kept(one.trials[0], took(one.trials[0], 10.0))
    left.kept(other.trials[0], took(other.trials[0], 3.0, protocol="published"))
    assert left.seconds() == 13


@pytest.fixture(scope="module")
def seven():
    return plan_of(*(f"tests.helpers.tiny:Distance[power={power}]" for power in range(3, 10)))


@settings(deadline=None)
@given(durations=st.lists(st.integers(1, 60).map(float), min_size=7, max_size=7), jobs=st.integers(1, 9))
def test_no_schedule_is_faster_and_the_runs_own_is_not_twice_as_long(seven, durations, jobs):
    twice = replace(seven, trials=(*seven.trials, *(replace(trial, seed=1) for trial in seven.trials)))
    left = TimeLeft([twice], jobs=jobs, clock=Clock())
    for trial, seconds in zip(seven.trials, durations, strict=True):
        left.kept(trial, took(trial, seconds))
    workers = [0.0] * jobs
    for seconds in durations:  # each trial goes to the worker that is free first
        heapq.heapreplace(workers, workers[0] + seconds)
    estimate = left.seconds()
    assert estimate <= max(workers) + 1e-9
    assert max(workers) <= 2 * estimate
