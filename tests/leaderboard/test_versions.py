"""Trials judged by two versions of a protocol never share a table, a comparison or a baseline."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tests.helpers.records import record
from tests.helpers.stored import stored
from tsadbench import Leaderboard, UsageError
from tsadbench.analysis.diagnostics import with_diagnostics
from tsadbench.analysis.stored import select
from tsadbench.errors import StoreError
from tsadbench.execution.record import Record
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.leaderboard.frame import places
from tsadbench.leaderboard.regression import run_again
from tsadbench.results.judging import judge_all, judge_outdated
from tsadbench.results.trial_result import TrialResult


def older(made: Record, **changes: object) -> Record:
    return replace(made, protocol_version=1, **changes)


@pytest.fixture
def mixed() -> Leaderboard:
    return Leaderboard.from_records(
        [
            record("now", auprc=0.6),
            record("floor", floor=True, auprc=0.5, auroc=0.4, mcc=0.1),
            older(record("then", auprc=0.9)),
            older(record("second", auprc=0.8)),
            older(record("broken", status="timeout")),
        ]
    )


def test_each_version_has_its_table_its_places_and_its_floors(mixed):
    tables = {key: [*table["detector"]] for key, table in mixed.frames().items()}
    # Failed trials were not judged: they are listed with the newest version.
    assert tables == {
        ("d", "strict 2", "overall"): ["now", "floor", "broken"],
        ("d", "strict 1", "overall"): ["then", "second"],
    }
    new, old = mixed.frames().values()
    assert list(places(old, "auprc", "higher")) == [1, 2]
    assert list(places(new, "auprc", "higher")) == [0, 0, 0]  # one detector is compared with no other
    assert mixed.frame.set_index("detector")["below_floor"]["then"] is None  # its version has no floor
    texts = (mixed.to_markdown(), mixed.to_latex())
    assert all("strict 1" in text and "strict 2" in text for text in texts)
    assert len({*re.findall(r"\\label\{(.*?)\}", mixed.to_latex())}) == 2


def test_a_folder_holds_tables_of_one_version(mixed, tmp_path):
    with pytest.raises(UsageError, match="strict 1.*strict 2"):
        mixed.write(tmp_path)
    assert not list(tmp_path.iterdir())
    (alone,) = (board for key, board in mixed.alone().items() if key[1] == "strict 1")
    assert tmp_path / "d" / "strict" / "overall.csv" in alone.write(tmp_path)


def test_an_older_table_is_no_baseline(tmp_path):
    Leaderboard.from_records([older(record("t2", dataset="pumploop"))]).write(tmp_path)
    with pytest.raises(UsageError, match="strict 1"):
        run_again(tmp_path, run=lambda plan: ())


class TestOlderStores:
    """A store with trials judged by version 1, some of them without scores."""

    @pytest.fixture
    def data(self):
        return make_data()

    @pytest.fixture
    def store(self, tmp_path, data) -> Store:
        store = Store.create(tmp_path / "runs")
        kept, gone = run_plan(make_plan(["tests.helpers.tiny:Distance", "max-z"], dataset=data, floors=False), store)
        for made in (kept, gone):
            store.put(older(made, judging="by the rules of then"))
        stored(store.path, gone.trial).scores.unlink()
        return store

    def test_scores_that_are_kept_are_judged_again_and_the_others_stay(self, store, data):
        before = {one.label: one for one in store.records()}
        records, n_left = judge_outdated(store.records(), store, lambda _: data)
        versions = {one.label: one.protocol_version for one in records}
        assert (versions, n_left) == ({"tests.helpers.tiny:Distance": 2, "max-z": 1}, 1)
        assert {one.label: one.protocol_version for one in store.records()} == versions
        assert {one.label: one for one in store.records()}["max-z"] == before["max-z"]
        assert [one.trial for one in records] == [one.trial for one in before.values()]
        verdicts = {one.record.label: one.verdict for one in judge_all(store, lambda _: data)}
        assert verdicts == {"tests.helpers.tiny:Distance": "same", "max-z": "cannot be judged"}

    def test_a_comparison_leaves_the_older_out(self, store, data):
        records, _ = judge_outdated(store.records(), store, lambda _: data)
        chosen = select(store.path, everything=True)
        assert [*chosen.rows["detector"]] == ["tests.helpers.tiny:Distance"]
        with pytest.raises(UsageError, match="max-z"):
            select(store.path, detectors=["max-z"])
        board = with_diagnostics(Leaderboard.from_records(records), store, lambda _: data, ("operational",))
        found = board.frame[board.frame["split"] == "overall"].set_index("detector")["diagnostic_found_mean"].notna()
        assert found.to_dict() == {"tests.helpers.tiny:Distance": True, "max-z": False}

    def test_scores_are_not_combined_with_metrics_of_other_rules(self, store, data):
        (made,) = (one for one in store.records() if one.label != "max-z")
        with pytest.raises(StoreError, match="strict 1"):
            TrialResult(made, store, data)
