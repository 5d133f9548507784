"""`tsadbench compare` on stores that runs have written."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import tsadbench as package
from tests.helpers.plans import make_plan
from tests.helpers.tiny import Largest
from tsadbench import Dataset, Detector, Labels, MissingExtraError, Recording, Traits, UsageError
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store

SENSORS = ("flow", "pressure")
N_ROWS = 120
QUIET = "quiet"


class Fragile(Detector):
    """Scores a row by its largest value; with seed 1 it does not converge."""

    traits = Traits(stochastic=True)

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def _fit(self, recordings):
        if self.seed == 1:
            raise RuntimeError("no convergence")

    def _score(self, recording):
        return recording.values.max(axis=1)


def plant() -> LabelledDataset:
    """Return thirteen test recordings: r0 and r1 are from one day, and one has no anomaly."""
    rng = np.random.default_rng(0)
    test, labels = [], {}
    for number in range(13):
        name = QUIET if number == 12 else f"r{number}"
        values = rng.normal(size=(N_ROWS, 2))
        anomalous = np.zeros(N_ROWS, dtype=bool)
        time = np.arange(N_ROWS) + 1000.0 * number
        if name != QUIET:
            anomalous[60:90] = True
            values[60:90] += rng.uniform(0.0, 3.0)
        test.append(Recording(name, values, SENSORS, time=time))
        labels[name] = anomalous
    everything = tuple(labels)
    splits = {"overall": everything, "few": everything[:4], "quiet": (QUIET,)}
    train = (Recording("normal", rng.normal(size=(300, 2)), SENSORS, time=np.arange(300) - 1e6),)
    sessions = {name: "day" if name in ("r0", "r1") else name for name in ("normal", *labels)}
    return LabelledDataset(Dataset("plant", train, tuple(test), splits, sessions=sessions), Labels(labels, splits))


PLANT = plant()
# SECOND is a floor that is not registered, so plans accept it only as a class.
FIRST, SECOND = "tests.helpers.tiny:Distance", "tests.helpers.tiny:Largest"
SEEDED = "tests.helpers.tiny:Noisy"  # stochastic: a trial per seed


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A store with three detectors on the plant (`Noisy` with two seeds), and `Fragile`, one of whose seeds failed."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    plan = make_plan([FIRST, Largest, SEEDED, Fragile], dataset=PLANT, floors=False, seeds=2, timeout=120)
    run_plan(plan, Store.create(folder), jobs=2)
    return folder


def compare(store: Path, *detectors: str, **options):
    return package.compare(store, detectors, dataset=PLANT, **options)


class TestNumbers:
    def test_they_come_from_stored_scores_seeds_averaged_within_a_recording(self, made):
        found = compare(made, SEEDED, FIRST)
        store = Store.open(made)
        expected = {}
        for label in (SEEDED, FIRST):
            of_seeds = [store.scores(record) for record in store.records() if record.label == label]
            assert len(of_seeds) == (2 if label == SEEDED else 1)
            for names in [("r0", "r1"), *((name,) for name in PLANT.labels.rows if name != QUIET)]:
                anomalous = np.concatenate([PLANT.labels.rows[name][30:] for name in names])
                values = [
                    average_precision_score(anomalous, np.concatenate([one[f"test/all/{name}"][30:] for name in names]))
                    for one in of_seeds
                ]
                expected[names, label] = np.mean(values)
        assert found.recordings["left_out"].ne("").tolist() == [False] * 12 + [True]
        for unit, *values in found.recordings[["recording", SEEDED, FIRST]].to_numpy()[:12]:
            assert values == pytest.approx([expected[(unit,), label] for label in (SEEDED, FIRST)])
        (pair,) = found.pairs.itertuples()
        # The two recordings of one day are judged together: their rows are pooled, as in a split.
        sessions = [("r0", "r1"), *((f"r{number}",) for number in range(2, 12))]
        differences = [expected[names, SEEDED] - expected[names, FIRST] for names in sessions]
        assert list(found.units[SEEDED] - found.units[FIRST]) == pytest.approx(differences)
        assert pair.mean_difference == pytest.approx(np.mean(differences))
        assert pair.n_units == 11

    def test_recordings_of_a_session_count_once_unless_told_otherwise(self, made):
        found = compare(made, SECOND, FIRST)
        assert list(found.recordings["session"][:3]) == ["day", "day", "r2"]
        assert len(found.units) == 11
        assert re.search(r"\b12 .*\b11 sessions", found.tables[0].title)
        alone = compare(made, SECOND, FIRST, independent=True)
        assert len(alone.units) == 12

    def test_a_split_of_few_recordings_is_described_but_not_tested(self, made):
        found = compare(made, FIRST, SEEDED, split="few")
        assert list(found.recordings["recording"]) == ["r0", "r1", "r2", "r3"]
        assert found.conclusions[0].startswith("Described")
        assert found.to_frame()[["p", "p_holm", "low", "high"]].isna().all(axis=None)
        pairs, _, sessions, _ = json.loads(found.to_json())["tables"]
        assert (pairs["rows"][0]["p"], pairs["rows"][0]["wilcoxon"]) == (None, None)
        values = {label: found.recordings[label].iloc[2] for label in (FIRST, SEEDED)}
        assert sessions["rows"][1] == {"session": "r2", **values}


class TestFailures:
    def test_a_detector_with_a_failed_seed_is_a_row_that_says_so(self, made):
        found = compare(made, FIRST, "tests.analysis.significance.test_compare:Fragile", SEEDED)
        bad = found.detectors.iloc[1]
        assert (bad["status"], bad["seeds"]) == ("error", 2)
        assert np.isnan([bad["auprc"], bad["median"]]).all()
        assert list(found.units) == [FIRST, SEEDED]
        assert any("no convergence" in note for note in found.sentences)
        assert "| error | - | - |" in found.to_markdown()


class TestWrongInputs:
    @pytest.mark.parametrize(
        ("detectors", "options", "name"),
        [
            ([FIRST], {}, FIRST),
            ([FIRST, FIRST], {}, FIRST),
            ([FIRST, f"{FIRST}s"], {}, f"{FIRST}s"),
            ([FIRST, SECOND], {"metric": "aupr"}, "aupr"),
            ([FIRST, SECOND], {"metric": "flagged"}, "flagged"),
            ([FIRST, SECOND], {"split": "fev"}, "fev"),
            ([FIRST, SECOND], {"split": "quiet"}, "auprc"),
            ([FIRST, SECOND], {"protocol": "published"}, "published"),
            ([FIRST, SECOND], {"rope": 1.5}, "1.5"),
        ],
    )
    def test_they_are_named(self, made, detectors, options, name):
        with pytest.raises(UsageError, match=name):
            compare(made, *detectors, **options)

    def test_other_data_than_the_trials(self, made):
        changed = PLANT.dataset.test[0]
        other = Recording(changed.id, changed.values + 1.0, SENSORS, time=changed.time)
        dataset = replace(PLANT.dataset, test=(other, *PLANT.dataset.test[1:]))
        with pytest.raises(package.DataError, match="hash"):
            package.compare(made, [FIRST, SECOND], dataset=LabelledDataset(dataset, PLANT.labels))

    def test_without_the_extra_two_detectors_are_compared_but_three_need_it(self, made, monkeypatch):
        monkeypatch.setitem(sys.modules, "statsmodels.stats.multitest", None)
        assert len(compare(made, FIRST, SECOND).pairs) == 1
        with pytest.raises(MissingExtraError, match=r"pip install 'tsadbench\[stats\]'"):
            compare(made, FIRST, SECOND, SEEDED)
