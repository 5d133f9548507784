"""Metrics by recording and session that ship: what the scores say, and what `compare --against` makes of them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

import tsadbench as package
from tests.helpers.plans import make_plan
from tsadbench import DataError, Labels, StoreError, UsageError
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import load_dataset
from tsadbench.datasets.sessions import sessions_of
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.leaderboard.shipped import (
    DECIMALS,
    RECORDINGS,
    UnitValues,
    session_counts,
    stored_records,
    stored_values,
    units_of,
    write_values,
)
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.files import LEADERBOARDS

FILES = sorted(LEADERBOARDS.glob(f"*/*/{RECORDINGS}"))
ROUNDING = 10.0**-DECIMALS
OWN, SHIPPED = "max-z[mean=3]", ("max-z", "l2-z", "random")


@pytest.fixture(scope="module")
def pumploop() -> LabelledDataset:
    return load_dataset("pumploop")(DataOptions())


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A store of one own detector on pumploop, and one that also has rows that ship, run again."""
    folder = tmp_path_factory.mktemp("own")
    for name, detectors in (("own", [OWN]), ("both", [OWN, *SHIPPED])):
        plan = make_plan(detectors, dataset="pumploop", floors=False, contributions=False, seeds=3)
        assert {record.status for record in run_plan(plan, Store.create(folder / name))} == {"ok"}
    return folder


@pytest.fixture
def shipped(tmp_path, monkeypatch) -> Path:
    """A copy of pumploop's leaderboard that ships, to be spoilt."""
    folder = tmp_path / "shipped" / "pumploop" / "strict"
    folder.mkdir(parents=True)
    for name in ("records.jsonl", RECORDINGS):
        (folder / name).write_text((LEADERBOARDS / "pumploop" / "strict" / name).read_text())
    monkeypatch.setattr("tsadbench.leaderboard.shipped.LEADERBOARDS", tmp_path / "shipped")
    return folder / RECORDINGS


class TestCommitted:
    def test_every_row_under_strict_has_its_values(self):
        assert {file.parts[-3] for file in FILES} == {
            file.parts[-3] for file in LEADERBOARDS.glob("*/strict/records.jsonl")
        }
        for file in FILES:
            records = [one for one in stored_records(file.parts[-3], file.parts[-2]) if one.status == "ok"]
            values = UnitValues.read(file)
            assert [record.label for record in records if not values.holds(record)] == [], file
            assert len(values.trials) == len(records)
            assert {record.protocol_version for record in records} == {values.about["protocol_version"]}
            assert {record.manifest["data_hash"] for record in records} == {values.about["data_hash"]}
            assert {record.manifest["labels_hash"] for record in records} == {values.about["labels_hash"]}

    def test_splits_of_one_unit_say_what_the_tables_say(self):
        """A split that is one unit was judged as such when the row was made."""
        compared = 0
        for file in FILES:
            values = UnitValues.read(file)
            for record in stored_records(file.parts[-3], file.parts[-2]):
                whole = record.splits.get("overall")
                if record.status != "ok" or whole is None or whole.entities:
                    continue
                rows = sum(n for members, (n, _) in values.units.items() if len(members) == 1)
                assert rows == whole.n_rows
                flagged = [
                    one.metrics["flagged"] * one.n_rows
                    for one in values.judge(record, {str(u): u for u in values.units if len(u) == 1}).values()
                ]
                assert sum(flagged) / rows == pytest.approx(whole.metrics["flagged"], abs=1e-6)
                compared += 1
        assert compared > 300


class TestValues:
    def test_they_are_the_metrics_of_the_scores(self, runs, pumploop):
        store = Store.open(runs / "both")
        values = UnitValues.read(LEADERBOARDS / "pumploop" / "strict" / RECORDINGS)
        shipped = {(one.label, one.seed): one for one in stored_records("pumploop", "strict")}
        units = {str(i): unit for i, unit in enumerate(units_of(pumploop.dataset))}
        assert max(map(len, units.values())) > 1
        for record in store.records():
            if record.label == OWN:
                continue
            found = values.judge(shipped[record.label, record.seed], units)
            scores = store.scores(record)
            for name in list(units)[:: 1 + len(units) // 12]:
                rows = [pumploop.labels.rows[one][30:] for one in units[name]]
                given = [scores[f"test/all/{one}"][30:] for one in units[name]]
                anomalous = np.concatenate(rows)
                assert found[name].n_rows == len(anomalous)
                assert found[name].n_anomalous == anomalous.sum()
                if 0 < anomalous.sum() < len(anomalous):
                    expected = average_precision_score(anomalous, np.concatenate(given))
                    assert found[name].metrics["auprc"] == pytest.approx(expected, abs=1e-6)

    def test_they_tell_how_many_sessions_there_are(self, pumploop):
        session_of = sessions_of(pumploop.dataset)
        n_sessions = len({session_of[one.id] for one in pumploop.dataset.test})
        assert session_counts(LEADERBOARDS, "pumploop") == {"overall": n_sessions}

    def test_a_file_holds_what_was_judged_and_the_lines_of_others(self, runs, pumploop, tmp_path):
        committed = (LEADERBOARDS / "pumploop" / "strict" / RECORDINGS).read_text()
        file = tmp_path / RECORDINGS
        file.write_text(committed)
        store = Store.open(runs / "own")
        (record,) = store.records()
        results = [TrialResult(record, store, pumploop)]
        for _ in range(2):  # the second time, its own line is replaced
            lines = write_values(file, results, pumploop).read_text().splitlines()
            _, *others = (json.loads(line) for line in lines if OWN not in line)
            about, *before = map(json.loads, committed.splitlines())
            for one in others:  # metrics that are newer than the committed file are undefined there
                one["values"] = [row[: len(about["metrics"])] for row in one["values"]]
            assert others == before
            assert len(lines) == len(before) + 2
        groups = {"all of leak": pumploop.dataset.splits["leak"][:1], "one": ("valve1/0",)}
        expected = results[0].judge(groups)
        for name, judged in UnitValues.read(file).judge(record, groups).items():
            for metric, value in expected[name].metrics.items():
                assert judged.metrics[metric] == (None if value is None else pytest.approx(value, abs=ROUNDING))
        file.write_text(committed.replace('"data_hash":"', '"data_hash":"x'))
        with pytest.raises(UsageError, match="data_hash"):
            write_values(file, results, pumploop)

    def test_the_command_writes_them_beside_the_records(self, runs, tmp_path, tsadbench):
        done = tsadbench("leaderboard", runs / "own", "--write", tmp_path)
        assert done.code == 0
        file = tmp_path / "pumploop" / "strict" / RECORDINGS
        assert f"{file}\n" in done.err
        (record,) = Store.open(runs / "own").records()
        assert UnitValues.read(file).holds(record)
        assert not UnitValues.read(file).holds(replace(record, splits={"leak": record.splits["overall"]}))


class TestAgainst:
    def test_figures_are_those_of_one_store(self, runs):
        """The shipped rows were fitted on another machine: floors are the same to the last bits."""
        against = package.compare(runs / "own", [OWN, *SHIPPED], against="strict")
        within = package.compare(runs / "both", [OWN, *SHIPPED])
        assert list(against.inference.units.columns) == [OWN, *SHIPPED]
        assert against.inference.units.to_numpy() == pytest.approx(within.inference.units.to_numpy(), abs=ROUNDING)
        pd.testing.assert_frame_equal(against.recordings, within.recordings, rtol=0, atol=ROUNDING)
        assert against.inference.conclusions == within.inference.conclusions
        names = ["first", "second", "mean_difference", "p_holm", "rank_biserial"]
        found, expected = (one.inference.pairs[names] for one in (against, within))
        pd.testing.assert_frame_equal(found, expected, rtol=1e-6, atol=2 * ROUNDING)
        new = ["stored", "events_at_1", "events_at_01"]  # the committed rows lack what is newer than they are
        metrics, expected = against.detectors.drop(columns=new), within.detectors.drop(columns=new)
        pd.testing.assert_frame_equal(metrics, expected, rtol=0, atol=ROUNDING)
        assert against.detectors["stored"].tolist() == [False, True, True, True]

    def test_a_split_and_recordings_by_themselves(self, runs):
        for options in ({"split": "leak"}, {"independent": True}, {"split": "air", "metric": "auroc"}):
            against = package.compare(runs / "own", [OWN, "max-z"], against="strict", **options)
            within = package.compare(runs / "both", [OWN, "max-z"], **options)
            assert against.inference.units.to_numpy() == pytest.approx(within.inference.units.to_numpy(), abs=ROUNDING)

    def test_the_command_line(self, runs, tsadbench):
        done = tsadbench(
            "compare", runs / "own", OWN, "max-z", "--against", "strict", "--format", "json"
        )  # fmt: skip
        content = json.loads(done.out)
        assert [(one["label"], one["stored"]) for one in content["tables"][1]["rows"]] == [
            (OWN, False),
            ("max-z", True),
        ]
        done = tsadbench("compare", runs / "own", OWN, "max-z", "--against", "strict", "--format", "csv")
        assert [row["second"] for row in csv.DictReader(io.StringIO(done.out))] == ["max-z"]

    @pytest.mark.parametrize(
        ("detectors", "against", "message"),
        [
            ((OWN, "max-y"), "strict", "max-y"),
            (("max-z", "random"), "strict", "max-z, random"),
            ((OWN, "max-z"), "strickt", "strickt"),
        ],
    )
    def test_what_is_not_there(self, runs, tsadbench, detectors, against, message):
        done = tsadbench("compare", runs / "own", *detectors, "--against", against)
        assert (done.code, done.out) == (2, "")
        assert message in " ".join(done.err.split())

    def test_other_data_and_stale_values_are_refused(self, shipped, pumploop):
        record = next(one for one in stored_records("pumploop", "strict") if one.label == "max-z")
        assert stored_values(pumploop, "strict").holds(record)
        with pytest.raises(UsageError, match="max-z"):
            stored_values(pumploop, "strict").judge(replace(record, splits={"leak": record.splits["overall"]}), {})
        inverted = {name: ~rows for name, rows in pumploop.labels.rows.items()}
        other = LabelledDataset(pumploop.dataset, Labels(inverted, pumploop.labels.splits))
        with pytest.raises(DataError, match="pumploop"):
            stored_values(other, "strict")
        shipped.write_text(shipped.read_text().replace('"values":[[', '"values":[[0,', 1))
        with pytest.raises(StoreError, match=RECORDINGS):
            stored_values(pumploop, "strict")
        shipped.unlink()
        with pytest.raises(UsageError, match="pumploop"):
            stored_values(pumploop, "strict")
