"""`tsadbench rank`: places, and how stable they are over resampled sessions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tsadbench as package
from tests.helpers.plans import make_plan
from tsadbench import Dataset, Detector, Labels, Recording, Traits, UsageError
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store

SENSORS = ("truth", "opposite", "half")
HERE = "tests.analysis.significance.test_rank"


class Sensor(Detector):
    """Uses one sensor as the score."""

    traits = Traits(memory=0)

    def __init__(self, *, column: int = 0) -> None:
        self.column = column

    def _fit(self, recordings):
        pass

    def _score(self, recording):
        return recording.values[:, self.column]


def plant(*, n_sessions: int = 8, each: int = 2) -> LabelledDataset:
    """Return recordings: in anomalies sensor 0 rises, sensor 1 falls, and sensor 2 rises in odd sessions only."""
    rng = np.random.default_rng(0)
    test, labels, sessions = [], {}, {"normal": "before"}
    for number in range(n_sessions * each):
        anomalous = np.zeros(100, dtype=bool)
        anomalous[50:75] = True
        session = number // each
        shift = np.array([4.0, -1.0, 1.0 if session % 2 else -1.0])
        values = anomalous[:, None] * shift + rng.normal(size=(100, 3))
        name = f"r{number}"
        test.append(Recording(name, values, SENSORS, np.arange(100.0) + 1e4 * number))
        labels[name], sessions[name] = anomalous, f"s{session}"
    splits = {"overall": tuple(labels), "first": ("r0", "r1"), "even": ("r0", "r1", "r4", "r5")}
    train = (Recording("normal", rng.normal(size=(300, 3)), SENSORS, np.arange(300.0) - 1e6),)
    dataset = Dataset("rankable", train, tuple(test), splits, sessions=sessions)
    return LabelledDataset(dataset, Labels(labels, splits))


PLANT = plant()
TRUTH, OPPOSITE, HALF = (f"{HERE}:Sensor{options}" for options in ("", "[column=1]", "[column=2]"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("rank") / "runs"
    plan = make_plan([HALF, OPPOSITE, TRUTH, "max-z", "l2-z"], dataset=PLANT, floors=False, seeds=2)
    run_plan(plan, Store.create(folder))
    return folder


def places(ranks, split: str = "overall"):
    (ranking,) = (one for one in ranks.rankings if f"split {split}," in one.frames[0].title)
    return {place.detector: place for place in ranking.to_frame().itertuples()}


def test_plain_ranks_follow_from_the_records(runs):
    found = package.rank(runs, splits=["overall", "even"])
    records = Store.open(runs).records()
    for split in ("overall", "even"):
        means = {}
        for record in records:
            means.setdefault(record.label, []).append(record.splits[split].metrics["auprc"])
        order = sorted(means, key=lambda label: -np.mean(means[label]))
        assert list(places(found, split)) == order
        assert [place.rank for place in places(found, split).values()] == [1, 2, 3, 4, 5]
        alone = [label for label in order if label not in ("max-z", "l2-z")]
        assert [places(found, split)[label].detector_rank for label in alone] == [1, 2, 3]
        assert places(found, split)[order[0]].value == pytest.approx(np.mean(means[order[0]]))
    assert places(found)["max-z"].floor
    assert np.isnan(places(found)[TRUTH].rank_low)
    assert np.isnan(places(found)["max-z"].detector_rank)
    only = package.rank(runs, splits=["even"], detectors=["l2-z"])
    assert list(places(only, "even")) == ["l2-z"]
    assert places(only, "even")["l2-z"].rank == places(found, "even")["l2-z"].rank


def test_the_shares_are_counted_against_the_best_floor_of_each_resample(runs):
    """Expected values come from the stored scores, resample by resample."""
    from sklearn.metrics import average_precision_score

    from tsadbench.analysis.significance.resampling import draw

    found = places(package.rank(runs, stability=True, dataset=PLANT, splits=["even"], resamples=60, seed=4), "even")
    drawn = draw([[0, 1], [2, 3]], 60, seed=4)
    names = PLANT.dataset.splits["even"]
    store = Store.open(runs)
    values: dict[str, list[list[float]]] = {}
    for record in store.records():
        scores = store.scores(record)
        of_resamples = []
        for column in drawn.T:
            taken = [name for name, times in zip(names, column, strict=True) for _ in range(int(times))]
            truth = np.concatenate([PLANT.labels.rows[name][30:] for name in taken])
            of_resamples.append(
                average_precision_score(truth, np.concatenate([scores[f"test/all/{name}"][30:] for name in taken]))
            )
        values.setdefault(record.label, []).append(of_resamples)
    means = {label: np.round(np.mean(seeds, axis=0), 9) for label, seeds in values.items()}
    best = np.maximum(means["max-z"], means["l2-z"])
    for label in (TRUTH, HALF, OPPOSITE):
        assert found[label].beats_floors == pytest.approx(np.mean(means[label] > best))
        assert found[label].value_low == pytest.approx(np.quantile(means[label], 0.05), abs=1e-6)
        ranks = [1 + sum(means[other][i] > means[label][i] for other in means) for i in range(60)]
        bounds = np.quantile(ranks, (0.05, 0.95))
        assert (found[label].rank_low, found[label].rank_high) == pytest.approx(tuple(bounds))


def test_few_sessions_get_a_warning_and_one_is_not_resampled(runs):
    found = package.rank(runs, stability=True, dataset=PLANT, resamples=20)
    overall, first, even = found.rankings
    assert not overall.to_frame().empty
    assert "2 sessions" in even.sentences[1]
    assert first.to_frame().empty
    assert "one session" in first.sentences[1]
    with pytest.raises(UsageError, match=r"rankable, first: 1"):
        package.rank(runs, stability=True, dataset=PLANT, splits=["first"])


def test_nothing_is_ranked_where_no_row_is_anomalous(tmp_path):
    labelled = plant(n_sessions=3).dataset
    normal = {one.id: np.zeros(one.n_rows, dtype=bool) for one in labelled.test}
    data = LabelledDataset(labelled, Labels(normal, labelled.splits))
    run_plan(make_plan([TRUTH], dataset=data, floors=False, seeds=1), Store.create(tmp_path / "runs"))
    (ranking, *_) = package.rank(tmp_path / "runs", stability=True, dataset=data).rankings
    assert ranking.to_frame().empty


def test_lower_values_rank_first_if_lower_is_better(tmp_path):
    data = plant(n_sessions=3)  # small: skab fits every recording
    plan = make_plan([TRUTH, OPPOSITE], dataset=data, protocol="skab", floors=False, settings=["skab.train_rows=40"])
    run_plan(plan, Store.create(tmp_path / "runs"))
    found = package.rank(
        tmp_path / "runs", metric="mar", stability=True, dataset=data, splits=["overall"], resamples=200
    )
    rows = places(found)
    assert rows[TRUTH].value < rows[OPPOSITE].value
    assert (rows[TRUTH].rank, rows[OPPOSITE].rank) == (1, 2)
    assert np.isnan(rows[OPPOSITE].beats_floors)  # no floor takes part
