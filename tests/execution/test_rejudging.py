"""Scores are expensive, judging is cheap: other rules judge stored scores, and nothing is fitted again."""

from __future__ import annotations

import importlib
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.counting import Telling
from tests.helpers.fits import NotingBox, fits
from tests.helpers.packages import write_package
from tests.helpers.plans import make_plan
from tests.helpers.stored import stored
from tsadbench import Labels
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import BrokenTrialError
from tsadbench.execution.record import Record
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.results.judging import judge_all
from tsadbench.results.trial_result import TrialResult

RULES = """
    from dataclasses import replace

    from tsadbench_protocols.strict import Strict

    FACTOR = 1.0


    class Rules(Strict):
        def judge(self, scored, labels):
            judgement = super().judge(scored, labels)
            splits = {
                name: replace(split, metrics={**split.metrics, "mcc": split.metrics["mcc"] * FACTOR})
                for name, split in judgement.splits.items()
            }
            return replace(judgement, splits=splits)
    """


@pytest.fixture
def diary(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr("tsadbench.execution.trial.Box", NotingBox)
    return tmp_path / "diary.txt"


@pytest.fixture
def planned(diary, small_data):
    def planned(protocol="strict", data=small_data, **settings):
        detectors = [Telling(diary=str(diary)), "tests.helpers.tiny:Everything"]
        return make_plan(detectors, dataset=data, protocol=protocol, floors=False, **settings)

    return planned


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.create(tmp_path / "runs")


def found(records) -> list[object]:
    return [(record.status, record.splits, record.thresholds) for record in records]


def arrays(store: Store, record: Record) -> dict[str, bytes]:
    return {name: values.tobytes() for name, values in {**store.scores(record), **store.contributions(record)}.items()}


def test_other_parameters_of_a_protocol_fit_nothing(planned, store, diary, tmp_path):
    before = run_plan(planned(), store)
    assert fits(diary) == 1
    after = run_plan(planned(settings=["strict.q=0.01"]), store)
    assert fits(diary) == 1
    afresh = run_plan(planned(settings=["strict.q=0.01"]), Store.create(tmp_path / "other"))
    assert fits(diary) == 2
    assert found(after) == found(afresh)
    assert [record.trial for record in after] == [record.trial for record in afresh]
    assert after[0].thresholds != before[0].thresholds
    assert after[0].protocol == "strict[q=0.01]"
    assert len(store.records()) == 4
    for old, new in zip(before, after, strict=True):
        assert arrays(store, old) == arrays(store, new)
        assert old.scoring == new.scoring
        assert old.judging != new.judging
    assert run_plan(planned(), store) == before


def test_the_threads_that_were_asked_for_last_count(planned, store):
    first = run_plan(planned(), store)
    other = run_plan(planned(threads=2), store)
    assert {one.threads for one in store.records()[-len(other) :]} == {2}
    run_plan(planned(), store)
    assert {one.trial for one in store.records()[-len(first) :]} == {one.trial for one in first}
    assert len(store.about().planned) == len(first)


def test_other_labels_fit_nothing(planned, store, diary, small_data):
    run_plan(planned(), store)
    rows = {name: np.roll(rows, 7) for name, rows in small_data.labels.rows.items()}
    dataset = replace(small_data.dataset, version=2, notes=("corrected",))
    other = LabelledDataset(dataset, Labels(rows, small_data.labels.splits))
    after = run_plan(planned(data=other), store)
    assert fits(diary) == 1
    assert {(one.dataset_version, one.notes) for one in after} == {(2, ("corrected",))}
    assert found(after) == found(run_plan(planned(data=other), None))
    assert after[0].manifest["labels_hash"] == other.labels.content_hash
    assert len(store.records()) == 2


def test_a_record_with_the_scores_of_another_run_is_run_again(planned, store, diary):
    """Two runs write one store: the scores of the second may stand beside the record of the first."""
    before = run_plan(planned(), store)
    changed = {name: 2.0 * values for name, values in store.scores(before[0]).items()}
    np.savez(store.path / "scores" / f"{before[0].scoring}.npz", **changed)
    with pytest.raises(BrokenTrialError, match=before[0].trial):
        TrialResult(before[0], store, planned().data)
    assert found(run_plan(planned(), store)) == found(before)
    assert fits(diary) == 2


class TestChangedRules:
    @pytest.fixture
    def rules(self, tmp_path, monkeypatch):
        """Writes a plugin protocol whose metric depends on a factor, and undoes its import."""
        site = tmp_path / "site"
        write_package(site, "own_rules", "[tsadbench.protocols]\nown = own_rules:Rules\n", "")
        monkeypatch.syspath_prepend(site)

        def write(factor: float, more: str = "") -> None:
            text = textwrap.dedent(RULES).replace("FACTOR = 1.0", f"FACTOR = {factor}")
            (site / "own_rules.py").write_text(text + more)
            sys.modules.pop("own_rules", None)
            importlib.invalidate_caches()

        write(1.0)
        return write

    def test_a_run_after_a_changed_metric_fits_nothing(self, planned, store, diary, rules):
        before = run_plan(planned("own"), store)
        rules(0.5)
        after = run_plan(planned("own"), store)
        assert fits(diary) == 1
        assert [record.trial for record in after] == [record.trial for record in before]
        for old, new in zip(before, after, strict=True):
            for split, judged in new.splits.items():
                expected = old.splits[split].metrics["mcc"]
                assert judged.metrics["mcc"] == (None if expected is None else expected * 0.5)
        assert store.records() == tuple(sorted(after, key=lambda record: (record.manifest["started"], record.trial)))

    def test_judge_all_judges_all_stored_trials_again(self, planned, store, diary, rules, small_data):
        (before, _) = run_plan(planned("own"), store)
        run_plan(planned(), store)
        assert {judged.verdict for judged in judge_all(store, lambda _: small_data)} == {"same"}
        rules(0.5)
        verdicts = [(judged.record.protocol, judged.verdict) for judged in judge_all(store, lambda _: small_data)]
        # The MCC of a detector that flags every row is 0 under both rules.
        assert sorted(verdicts) == [("own", "changed"), ("own", "same"), ("strict", "same"), ("strict", "same")]
        after = store.find(before.trial)
        assert after.splits["overall"].metrics["mcc"] == before.splits["overall"].metrics["mcc"] * 0.5
        assert {judged.verdict for judged in judge_all(store, lambda _: small_data)} == {"same"}
        assert fits(diary) == 1, "both protocols train on the same rows"


def test_scores_that_are_cut_off_are_made_again(planned, store, diary, small_data):
    records = run_plan(planned(), store)
    for record in records:
        stored(store.path, record.trial).scores.write_bytes(b"PK\x03\x04 cut off")
    assert {judged.verdict for judged in judge_all(store, lambda _: small_data)} == {"cannot be judged"}
    run_plan(planned(settings=["strict.q=0.01"]), store)
    assert fits(diary) == 2


def test_a_trial_that_other_rules_called_invalid_can_be_judged_again(planned, store, small_data):
    (before, *_) = run_plan(planned(), store)
    invalid = replace(before, status="invalid", reason="nothing to judge", splits={}, thresholds=())
    store.put(invalid)
    assert {judged.record.status for judged in judge_all(store, lambda _: small_data)} == {"ok"}
    after = store.find(before.trial)
    assert (after.status, after.reason, after.splits) == ("ok", None, before.splits)
