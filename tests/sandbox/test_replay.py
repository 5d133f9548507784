"""Scores that do not repeat under another id, clock, order and cut are found; scores that repeat pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.helpers import cheats, replayed
from tests.helpers.data import make_data
from tests.helpers.plans import make_plan, run_trial
from tsadbench import Labels, Recording
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.scores import difference
from tsadbench.sandbox.replay import MIN_ROWS

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("tiny_plugin")]
# It decides which rows are replayed.
SECRET = "5" * 32
# With unbounded memory, these values may differ behind another beginning, so only ranks show what was added.
ONLY_RANKS = {"row", "rows so far", "seconds so far"}


@pytest.fixture(scope="module")
def data():
    return make_data(seed=3, n_rows=1200)


def record_of(detector, data, **options):
    plan = make_plan([detector], dataset=data, floors=False, seeds=1, **options)
    return run_trial(plan.trials[0], plan, crossing=SECRET).record


@pytest.mark.parametrize("what", replayed.ADDED)
def test_hidden_influences_on_scores_with_declared_memory_are_found(data, what):
    record = record_of(replayed.Adds(what=what), data)
    assert (record.status, record.replay, record.splits) == ("invalid", None, {})
    assert any(f"recording '{one.id}'" in record.reason for one in (*data.dataset.test, *data.dataset.train))


@pytest.mark.parametrize("what", ["id", *sorted(ONLY_RANKS)])
def test_hidden_influences_on_scores_with_unbounded_memory_are_found_or_marked(data, what):
    record = record_of(replayed.AddsUnboundedly(what=what), data)
    if what in ONLY_RANKS:
        assert record.status == "ok", record.reason
        assert record.replay.correlation < 0.9
        assert not record.replay.forgets
    else:
        assert record.status == "invalid"


def test_rounding_in_a_recording_that_never_changes_is_no_influence(data):
    first, *others = data.dataset.test
    still = Recording(first.id, np.full_like(first.values, 3.0), first.sensors, first.time)
    dataset = replace(data.dataset, test=(still, *others))
    assert record_of(replayed.Rounds(), data._replace(dataset=dataset)).status == "ok"


@pytest.mark.parametrize("cls", cheats.HONEST)
def test_honest_detectors_pass(data, cls):
    record = record_of(cls(), data)
    assert record.status == "ok", record.reason
    assert record.replay.copy == "restored"
    assert record.replay.rows >= MIN_ROWS
    # A maximum of all rows so far may depend on how the recording began, as it declares.
    assert record.replay.forgets or cls is cheats.Causal
    assert record.replay.calibrated
    assert (record.replay.correlation is None) == (cls.traits.memory is not None and not cls.traits.adaptive)


@pytest.mark.parametrize(
    ("cls", "threads", "copy"),
    [
        (cheats.Honest, 1, "restored"),
        (cheats.Honest, 2, "restored"),
        (replayed.Unkept, 1, "forked"),
        (replayed.Unkept, 2, "same process"),
        (replayed.LearnsElsewhere, 1, "forked"),
        (replayed.LearnsElsewhere, 2, "same process"),
    ],
)
def test_the_copy_is_the_strongest_that_scores_as_the_first_does(data, cls, threads, copy):
    record = record_of(cls(), data, threads=threads)
    assert (record.status, record.replay.copy) == ("ok", copy), record.reason


def test_a_fork_has_not_seen_what_the_first_has_scored(data):
    assert record_of(replayed.Remembers(), data).status == "invalid"
    # The same process has, so records name the kind of copy.
    in_same = record_of(replayed.Remembers(), data, threads=2)
    assert (in_same.status, in_same.replay.copy) == ("ok", "same process")


def test_training_scores_must_equal_fresh_ones_unless_overridden(data):
    assert record_of(replayed.TrainsApart(), data).status == "invalid"


@pytest.mark.parametrize("factor", [0.0, 0.5, 100.0])
def test_ratios_of_overridden_training_scores_are_recorded(data, factor):
    replay = record_of(replayed.TrainsOpenly(factor=factor), data).replay
    np.testing.assert_allclose([replay.median_ratio, replay.tail_ratio], factor)
    assert replay.calibrated == (factor == 0.5)


def test_a_copy_that_fails_fails_the_trial(data):
    record = record_of(replayed.EndsInCopies(), data)
    assert (record.status, "exit code 3" in record.reason, record.replay) == ("error", True, None)


def test_a_trial_of_many_episodes_is_replayed_in_three(data):
    labels, twice = data.labels, tuple(replace(one, id=f"{one.id}{n}") for one in data.dataset.test for n in (1, 2))
    splits = {"overall": tuple(one.id for one in twice)}
    rows = {one.id: labels.rows[one.id[:-1]] for one in twice}
    doubled = LabelledDataset(replace(data.dataset, test=twice, splits=splits), Labels(rows, splits))
    few, many = (
        record_of("distance", one, protocol="skab", settings=["skab.train_rows=400"]) for one in (data, doubled)
    )
    assert (few.status, len(few.thresholds), many.status, len(many.thresholds)) == ("ok", 3, "ok", 6)
    assert 3 * MIN_ROWS <= many.replay.rows < 1.5 * few.replay.rows


def test_a_declared_leak_is_marked_and_not_replayed(data):
    record = record_of(replayed.Leaks(), data)
    assert (record.status, record.replay) == ("ok", None)
    assert record.leaky == "mean of the recording that it scores"
    assert record_of(replayed.LeaksInSecret(), data).status == "invalid"


def test_scores_are_the_same_under_the_same_secret_and_under_another(data):
    plan = make_plan(["distance"], dataset=data, floors=False)
    first = run_trial(plan.trials[0], plan)
    for secret in (first.record.manifest["crossing"], "0" * 32):
        again = run_trial(plan.trials[0], plan, crossing=secret)
        assert again.record.manifest["crossing"] == secret
        for name, scores in first.scores.items():
            assert_array_equal(again.scores[name], scores)


def test_short_recordings_are_replayed_as_far_as_they_go(small_data):
    record = record_of("distance", small_data)
    assert record.replay.rows >= MIN_ROWS
    unbounded = record_of(replayed.NearlyAll, small_data)
    assert unbounded.status == "invalid"


def test_rounding_is_measured_by_the_spread_and_not_by_the_size():
    scores = np.array([1.0, 2.0, 3.0, 4.0, 100.0])
    assert difference(scores * (1 + 1e-6), scores)[0] is None
    assert difference(scores * 1.001, scores)[0] == 0
    assert difference(scores + 1e6, scores + 1e6 + 0.5)[0] is None  # seven digits of single precision
    assert difference(scores + 1e6, scores + 1e6 + 5.0)[0] == 0
    assert difference(np.full(3, 1e-12), np.zeros(3))[0] == 0
    assert difference(np.array([np.nan, 1.0]), np.array([0.0, 1.0])) == (0, np.inf)
