from __future__ import annotations

import dataclasses
import gc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.helpers.data import make_data
from tests.helpers.plans import make_plan, run_trial
from tsadbench import Detector
from tsadbench.execution.identity import identity
from tsadbench.execution.record import Record
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.results.judging import judge_all
from tsadbench.results.trial_result import TrialResult
from tsadbench.results.verification import verify
from tsadbench.sandbox import Crossing
from tsadbench.utils.progress import progress
from tsadbench_protocols import pot

pytestmark = pytest.mark.usefixtures("tiny_plugin")


class Spy(Detector):
    """Prints everything that it receives."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def _fit(self, recordings):
        progress(1, 2, "half")
        for one in recordings:
            print("fit", one.id, one.n_rows)

    def _score(self, recording):
        print("score", recording.id, recording.n_rows)
        return recording.values.sum(axis=1)


def session_name():
    """Build the name at run time, so that no module contains it."""
    return "".join(map(chr, range(97, 123, 2)))


class Digs(Detector):
    """Searches every container of its process for a session's name, and for its sensors', which it was given."""

    def _fit(self, recordings):
        self._dig(recordings)

    def _score(self, recording):
        self._dig([recording])
        return recording.values.sum(axis=1)

    def _dig(self, recordings):
        texts = {text for one in gc.get_objects() if isinstance(one, dict | list | tuple | set) for text in _texts(one)}
        print(f"sensors: {int(set(recordings[0].sensors) <= texts)}, session: {int(session_name() in texts)}")


def _texts(container):
    items = [*container, *container.values()] if isinstance(container, dict) else [*container]
    return [item for item in items if isinstance(item, str)]


class Broken(Detector):
    """Fails as ``how`` says, or else states facts about its fit."""

    def __init__(self, *, how: str = "") -> None:
        self.how = how

    def _fit(self, recordings):
        if self.how == "raise":
            raise RuntimeError("no convergence")
        self.n_rows_ = sum(recording.n_rows for recording in recordings)

    def _score(self, recording):
        ways = {
            "shape": np.zeros(3),
            "late": np.where(np.arange(recording.n_rows) < 39, np.nan, recording.values[:, 0]),
            "nothing": np.full(recording.n_rows, np.nan),
            "huge": np.where(np.arange(recording.n_rows) % 2, 1.7e308, -1.7e308),
        }
        return ways.get(self.how, recording.values.sum(axis=1))

    def _training_facts(self):
        loss = float("nan") if self.how == "nan" else np.float64(0.5)
        return {"n_rows": self.n_rows_, "share_seen": 0.25, "loss": loss}


class Lies(Broken):
    """Bypasses the checks of `Detector.training_facts`."""

    def training_facts(self):
        return {"<script>": "alert"}


def plan_of(detector, data, **options):
    return make_plan([detector], dataset=data, floors=False, **options)


def test_a_detector_sees_training_rows_then_test_rows_in_the_secret_order(small_data):
    plan = plan_of(Spy, small_data)
    reports = []
    outcome = run_trial(plan.trials[0], plan, lambda *report: reports.append(report))
    seen = [(what, name) for what, name, *_ in map(str.split, outcome.log.splitlines())]
    order = Crossing(small_data.dataset.sensors, outcome.record.manifest["crossing"]).order(3)
    tests = [("score", ("f1", "f2", "g1")[i]) for i in order]
    # The first rows of a training recording once more, for the replay audit.
    copied, *train = [("score", "n1"), ("score", "n1"), ("score", "n2")]
    assert seen == [("fit", "n1"), ("fit", "n2"), copied, *train, *tests]
    assert reports == [(1, 2, "half")]
    assert outcome.record.status == "ok"
    assert list(outcome.scores) == ["train/all/n1", "train/all/n2", "test/all/f1", "test/all/f2", "test/all/g1"]
    assert_array_equal(outcome.scores["test/all/g1"], small_data.dataset.test[2].values.sum(axis=1))


def test_calibration_recordings_are_scored_among_the_test_recordings(tmp_path):
    """The last fifth of 6,000 rows sets the threshold; its scores are stored, judged again and verified."""
    data = make_data(seed=2, n_rows=3000)
    plan = plan_of(Spy, data, settings=["strict.calibration=held-out"])
    store = Store.create(tmp_path / "runs")
    (record,) = run_plan(plan, store)
    seen = [
        (what, name, int(n_rows)) for what, name, n_rows, *_ in map(str.split, store.log(record.trial).splitlines())
    ]
    trained = [("n1", 3000), ("n2[0:1700]", 1700)]
    before = [*(("fit", *one) for one in trained), ("score", "n1", 200), *(("score", *one) for one in trained)]
    asked = [*(("score", name, 3000) for name in ("f1", "f2", "g1")), ("score", "n2[1800:3000]", 1200)]
    order = Crossing(data.dataset.sensors, record.manifest["crossing"]).order(4)
    assert seen == [*before, *(asked[i] for i in order)]
    last = data.dataset.train[1].values[1800:].sum(axis=1)
    scores = store.scores(record)
    assert_array_equal(scores["calibration/all/n2[1800:3000]"], last)
    threshold = pot.fit(last[30:])
    assert record.thresholds[0].threshold == threshold
    assert record.rows_scored == 3000 + 1700 + 1200 + sum(one.n_rows for one in data.dataset.test)
    assert {one.verdict for one in verify(store, lambda _: data)} == {"same"}
    (judged,) = judge_all(store, lambda _: data)
    assert (judged.verdict, judged.record.rows_scored) == ("same", record.rows_scored)
    assert_array_equal(TrialResult(record, store, data).calibration_scores("all"), last[30:])


def test_the_record_describes_the_trial(small_data):
    plan = plan_of("distance[power=3.0]", small_data, threads=2, settings=["strict.q=0.002"])
    record = run_trial(plan.trials[0], plan).record
    assert (record.detector, record.label, record.family) == ("distance", "distance[power=3.0]", "statistics")
    assert record.parameters["power"] == 3.0
    assert (record.dataset, record.protocol, record.seed, record.threads) == ("small", "strict[q=0.002]", 0, 2)
    assert list(record.splits) == ["overall", "f", "g"]
    assert record.splits["overall"].n_rows == 3 * 170
    assert record.splits["overall"].n_anomalous == 3 * 40
    assert record.splits["f"].metrics["auroc"] > 0.99
    assert record.thresholds[0].threshold.q == 0.002
    assert record.fit_seconds > 0
    assert record.peak_memory_mib > 10
    assert record.manifest["versions"]["numpy"] == np.__version__
    assert record.manifest["data_hash"] == small_data.dataset.content_hash


def test_the_record_keeps_what_a_detector_states_about_each_of_its_fits(small_data):
    plan = plan_of(Broken, small_data)
    record = run_trial(plan.trials[0], plan).record
    n_rows = sum(recording.n_rows for recording in plan.episodes[0].train)
    facts = {"n_rows": n_rows, "share_seen": 0.25, "loss": 0.5}
    assert [(fit.episode, fit.facts) for fit in record.training] == [("all", facts)]
    assert Record.from_json(record.to_json(), "here") == record
    several = plan_of(Broken, small_data, protocol="skab", settings=["skab.train_rows=100"])
    fits = run_trial(several.trials[0], several).record.training
    assert [fit.episode for fit in fits] == [episode.id for episode in several.episodes]
    assert [fit.facts["n_rows"] for fit in fits] == [100] * 3


@pytest.mark.parametrize(
    ("detector", "status", "reason"),
    [
        (Broken(how="raise"), "error", "no convergence"),
        (Broken(how="shape"), "invalid", "Broken.score"),
        (Broken(how="nothing"), "invalid", "score"),
        pytest.param(Broken(how="huge"), "invalid", "spread", marks=pytest.mark.filterwarnings("ignore:overflow")),
        (Broken(how="late"), "invalid", "322"),
        (Broken(how="nan"), "invalid", "training_facts"),
        (Lies, "error", "channel"),
    ],
)
def test_a_detectors_fault_is_a_status_with_a_reason_and_no_metrics(small_data, detector, status, reason):
    plan = plan_of(detector, small_data)
    outcome = run_trial(plan.trials[0], plan)
    assert outcome.record.status == status
    assert reason in outcome.record.reason
    assert outcome.record.splits == {}
    assert outcome.scores == {}


def test_identities_differ_in_whatever_determines_the_result(small_data):
    def name(detector="distance", seed=0, **options):
        plan = make_plan([detector], dataset=small_data, floors=False, seeds=2, **options)
        return identity(plan.trials[seed], plan).trial

    same = name()
    assert name() == same
    others = {
        name("distance[power=3.0]"),
        name(threads=2),
        name(settings=["strict.q=0.002"]),
        name("largest"),
        name("noisy"),
        name("noisy", seed=1),
    }
    assert len(others | {same}) == 7


def test_sessions_and_entities_reach_no_detector_and_no_identity(small_data):
    dataset = small_data.dataset
    ids = [recording.id for recording in (*dataset.train, *dataset.test)]
    names = {"sessions": dict.fromkeys(ids, session_name()), "entities": dict.fromkeys(ids, session_name())}
    declared = small_data._replace(dataset=dataclasses.replace(dataset, **names))
    plain, with_names = (make_plan([Digs], dataset=data, floors=False) for data in (small_data, declared))
    outcome = run_trial(with_names.trials[0], with_names)
    assert outcome.record.status == "ok"
    # It found the sensors' names, so it would have found the session's.
    assert "sensors: 1, session: 0" in outcome.log
    assert "session: 1" not in outcome.log
    assert outcome.record.trial == identity(plain.trials[0], plain).trial
