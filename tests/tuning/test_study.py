"""Studies can be resumed and interrupted, count failures, and prune poor points."""

from __future__ import annotations

import re
import signal
import sqlite3
import threading
import time
from contextlib import closing

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.trial import TrialState

from tests.helpers.fits import NotingBox, fits
from tests.helpers.processes import boxes
from tsadbench import UsageError
from tsadbench.tuning.study import best_and_defaults, n_counted, run_study

pytestmark = pytest.mark.slow

GUESS = "tests.helpers.tunable:Guess.guess=0:1"


def parameters(result):
    return [*result["parameters"]]


def test_the_defaults_come_first_the_best_is_near_the_mean_and_poor_points_are_pruned(task, storage):
    tuned = task("Guess", objective="heldout", trials=20)
    found = run_study(tuned, storage, print)
    guesses = [point["guess"] for point in parameters(found)]
    assert (len(found), guesses[0]) == (20, 0.5)
    first, best = found.loc[0], best_and_defaults(found, tuned).loc["best"]
    ((*train,),) = tuned.parts
    rows = np.concatenate([one.values for one in train])
    assert first.value == pytest.approx(((rows - 0.5) ** 2).mean(), rel=0.05)
    assert abs(best["parameters"]["guess"]) < 0.3
    assert best["value"] == found["value"].min() < first.value
    distance = pd.Series(np.abs(guesses))  # the smaller, the smaller the loss
    pruned, complete = (distance[found["state"] == state] for state in ("pruned", "complete"))
    assert len(pruned) + len(complete) == 20
    assert set(found["state"][:5]) == {"complete"}
    assert pruned.min() > complete.min()
    assert pruned.mean() > complete.mean()


def test_injection_searches_what_heldout_may_not_and_reports_each_kind(task, storage):
    found = run_study(task("Guess", trials=5), storage, print)
    assert set(parameters(found)[0]) == {"guess", "sign", "memory"}
    shown = best_and_defaults(found, task("Guess"))
    best = shown.loc["best"]
    assert best["parameters"]["sign"] == 1
    assert best["value"] == found["value"].max() == pytest.approx(np.mean([*best["parts"].values()]))
    assert shown["value"]["defaults"] == found["value"][0]
    assert list(best["parts"]) == ["spike", "level-shift", "drift", "stuck", "noise-burst", "broken-coupling"]


def test_a_resumed_study_does_not_repeat_its_first_draws(task, storage):
    for trials in (2, 4, 6):
        found = run_study(task("Guess", trials=trials, objective="heldout"), storage, print)
        assert len(found) == trials
    guesses = [point["guess"] for point in parameters(found)]
    assert guesses[0] == 0.5
    assert len(set(guesses)) == 6
    heard = []
    again = run_study(task("Guess", trials=6, objective="heldout"), storage, lambda *one: heard.append(one))
    pd.testing.assert_frame_equal(again, found)
    assert heard == []


@pytest.mark.parametrize("other", [{"folds": 3}, {"seed": 1}, {"timeout": 9.0}, {"ranges": (GUESS,)}])
def test_points_that_cannot_be_compared_do_not_enter_one_study(task, storage, other):
    run_study(task("Guess", trials=1, objective="injection"), storage, print)
    with pytest.raises(UsageError, match=min(other).removesuffix("s")):
        run_study(task("Guess", trials=2, objective="injection", **other), storage, print)
    for name in ({"objective": "heldout"}, {"detector": "Guess[memory=2]"}):
        assert task(**{"detector": "Guess", **name}).study != task("Guess").study


def test_what_is_set_is_not_searched(task):
    found = task("Guess[memory=3]")
    assert set(found.space) == {"guess", "sign"}
    assert found.at({"guess": 0.9}).given == {"memory": "3", "guess": 0.9, "seed": 0}


def test_a_point_is_measured_once(task, storage, tmp_path, monkeypatch):
    monkeypatch.setattr("tsadbench.tuning.objective.Box", NotingBox)
    diary = tmp_path / "diary"
    found = run_study(task(f"Counts[diary={diary}]", trials=6, objective="heldout"), storage, print)
    assert len(found) == 6
    guesses = [point["guess"] for point in parameters(found)]
    assert set(guesses) == {0.5, -0.5}
    assert fits(diary) == 2 * 2  # points by folds
    assert found["value"].groupby(guesses).nunique().tolist() == [1, 1]


def test_an_interrupt_ends_the_points_in_progress_and_they_do_not_count(task, storage, tmp_path, monkeypatch):
    monkeypatch.setattr("tsadbench.tuning.objective.Box", NotingBox)
    diary = tmp_path / "diary"
    seen = []
    tuned = task(f"Waits[diary={diary}]", trials=3, jobs=2)

    def interrupt():
        while not diary.exists():
            time.sleep(0.05)
        seen.extend(boxes())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_study(tuned, storage, print)
    study = optuna.load_study(study_name=tuned.study, storage=storage)
    assert 1 <= len(study.trials) <= 2
    assert all(trial.state is TrialState.FAIL and "state" not in trial.user_attrs for trial in study.trials)
    assert seen, "no box had been open"
    assert not boxes(), "a box is left"


def test_failures_are_counted_and_reported_and_do_not_end_the_study(task, storage):
    found = run_study(task("Fails", trials=8, objective="heldout"), storage, print)
    failed = found[[point["guess"] > 0 for point in parameters(found)]]
    assert 1 < len(failed) < 8
    assert set(failed["state"]) == {"error"}
    assert (found["state"] == "error").sum() == len(failed)
    assert all(re.search(r"ValueError.*tunable\.py:\d+", reason) for reason in failed["reason"])
    assert n_counted(found) == 8
    assert best_and_defaults(found, task("Fails", objective="heldout"))["parameters"]["best"]["guess"] <= 0


def test_a_point_over_its_time_is_a_timeout(task, storage):
    found = run_study(task("Fails[how=sleep]", trials=1, timeout=1.0), storage, print)
    assert found["state"].tolist() == ["timeout"]
    assert "1 s" in found["reason"][0]
    assert best_and_defaults(found, task("Fails[how=sleep]")).empty


def test_the_best_of_equals_is_the_first(task):
    columns = {"state": ["complete"] * 3 + ["pruned"], "value": [0.5, 0.7, 0.7, np.nan], "parameters": [{}] * 4}
    points = pd.DataFrame(columns).rename_axis("number")
    for objective, best in (("injection", 1), ("heldout", 0)):
        assert best_and_defaults(points, task("Guess", objective=objective))["number"]["best"] == best


@pytest.mark.parametrize("url", ["nonsense", "sqlite://me:secret@localhost/x", "sqlite:////no/such/folder/x"])
def test_an_unavailable_storage_is_reported_without_its_password(task, url):
    with pytest.raises(UsageError) as caught:
        run_study(task("Guess"), url, print)
    assert caught.value.field == "storage"
    assert ("localhost" in str(caught.value), "secret" in str(caught.value)) == ("localhost" in url, False)


def test_a_database_that_fails_during_the_search_is_reported(task, storage):
    def fails(*_):
        with closing(sqlite3.connect(storage.removeprefix("sqlite:///"))) as database:
            database.execute("DROP TABLE trials")

    with pytest.raises(UsageError) as caught:
        run_study(task("Guess", trials=3, objective="heldout"), storage, fails)
    assert caught.value.field == "storage"
