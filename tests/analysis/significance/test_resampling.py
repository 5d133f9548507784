"""Metrics of resamples, against the protocol's own judge on recordings that occur several times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.plans import make_plan
from tsadbench import Dataset, Detector, Labels, Recording, Traits
from tsadbench.analysis.significance.resampling import draw, resampled
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.results.trial_result import TrialResult

SENSORS = ("flow", "pressure")


class Silent(Detector):
    """Coarse scores with many ties; NaN for the first and last rows outside training."""

    def __init__(self, *, first: int = 0, last: int = 0) -> None:
        self.first = first
        self.last = last

    def declared_traits(self):
        return Traits(memory=self.first, look_ahead=self.last)

    def _fit(self, recordings):
        pass

    def _score(self, recording):
        (scores,) = self._training_scores([recording])
        scores[: self.first] = np.nan
        scores[len(scores) - self.last :] = np.nan
        return scores

    def _training_scores(self, recordings):
        return [np.round(recording.values[:, 0], 1) for recording in recordings]


def plant() -> LabelledDataset:
    """Seven recordings of 120 to 180 rows; one without anomaly."""
    rng = np.random.default_rng(2)
    test, labels = [], {}
    for number in range(7):
        n_rows = 120 + 10 * number
        anomalous = np.zeros(n_rows, dtype=bool)
        anomalous[70 : 70 + 8 * number] = True
        values = rng.normal(size=(n_rows, 2)) + 0.2 * number
        values[anomalous] += 0.9
        test.append(Recording(f"r{number}", values, SENSORS, np.arange(n_rows) + 1e4 * number))
        labels[f"r{number}"] = anomalous
    splits = {"overall": tuple(labels)}
    train = (Recording("normal", rng.normal(size=(400, 2)), SENSORS, np.arange(400) - 1e6),)
    return LabelledDataset(Dataset("plant", train, tuple(test), splits), Labels(labels, splits))


PLANT = plant()
NAMES = PLANT.dataset.splits["overall"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return a function that runs a detector under a protocol once and returns its result."""
    stores: dict[tuple[str, str], Store] = {}
    folder: Path = tmp_path_factory.mktemp("stores")

    def of(detector: str, protocol: str) -> TrialResult:
        if (detector, protocol) not in stores:
            settings = ["skab.train_rows=60"] if protocol == "skab" else []
            name = f"tests.analysis.significance.test_resampling:{detector}"
            plan = make_plan([name], dataset=PLANT, protocol=protocol, floors=False, settings=settings)
            store = Store.create(folder / str(len(stores)))
            run_plan(plan, store)
            stores[detector, protocol] = store
        store = stores[detector, protocol]
        (record,) = store.records()
        assert record.status == "ok", record.reason
        return TrialResult(record, store, PLANT)

    return of


def by_the_judge(result: TrialResult, drawn: np.ndarray) -> pd.DataFrame:
    """Judge each resample; a recording drawn twice is listed twice."""
    of_each = [[name for name, n in zip(NAMES, column, strict=True) for _ in range(int(n))] for column in drawn.T]
    return pd.DataFrame([result.judge({"drawn": names})["drawn"].metrics for names in of_each]).astype(float)


DRAWN = draw([[0, 1], [2, 3, 4], [5], [6]], 15, seed=3)


@pytest.mark.parametrize("protocol", ["strict", "published", "skab"])
@pytest.mark.parametrize("detector", ["Silent", "Silent[first=50]", "Silent[first=80,last=30]"])
def test_metrics_of_resamples_match_the_judge(stored, detector, protocol, monkeypatch):
    result, asked = stored(detector, protocol), list[object]()
    resamples, whole = by_the_judge(result, DRAWN), by_the_judge(result, np.ones((7, 1)))
    judge = result.judge
    monkeypatch.setattr(result, "judge", lambda splits: asked.append(splits) or judge(splits))
    for metric in (one.name for one in result.protocol.metrics if one.name not in ("events_at_01", "auprc_mean10")):
        found = resampled(result, metric, NAMES, DRAWN)
        assert found[1:] == pytest.approx(resamples[metric].tolist(), abs=1e-6, nan_ok=True), metric
        assert found[0] == pytest.approx(whole[metric][0], abs=1e-12), metric
        # Only events are judged resample by resample: they are no sums over rows.
        assert len(asked) == 1 or metric.startswith("events"), metric
        asked.clear()


class TestDraws:
    SESSIONS = ([0, 1, 2], [3], [4, 5])

    def test_draws_have_as_many_sessions_and_recordings_as_the_data(self):
        drawn = draw(self.SESSIONS, 500)
        times = np.stack([drawn[members].sum(axis=0) / len(members) for members in self.SESSIONS])
        assert (times == np.round(times)).all()
        assert (times.sum(axis=0) == 3).all()
        assert times.max() == 3
