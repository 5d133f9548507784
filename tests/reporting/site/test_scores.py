"""The scores of recordings that pages draw, compared with the score bank and the committed metrics."""

from __future__ import annotations

import base64
import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.data import make_data
from tests.helpers.few_tables import few_tables
from tests.reporting.site.conftest import BANKED
from tests.reporting.site.test_files import read
from tsadbench.base.recording import Recording
from tsadbench.datasets import location
from tsadbench.errors import BrokenTrialError, DataNotFoundError, UsageError
from tsadbench.reporting.site import scores
from tsadbench.reporting.site.build import write_site
from tsadbench.reporting.site.scores import Bank, Scores, scores_of
from tsadbench.reporting.site.source import read_tables
from tsadbench.results.bank.folder import BankFolder
from tsadbench.results.trial_result import ScoredRecording
from tsadbench.utils.shipped_tables import LEADERBOARDS

WARM_UP = 30  # rows of strict's recordings that do not count


def numbers(packed: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed), dtype="<f4")


def flags(packed: str, n: int) -> np.ndarray:
    return np.unpackbits(np.frombuffer(base64.b64decode(packed), dtype=np.uint8))[:n].astype(bool)


def of(tables: Path, bank: Bank) -> Scores:
    (table,) = read_tables(tables)
    found = scores_of(table, bank)
    assert found is not None
    return found


def committed(label: str) -> tuple[float, dict[str, dict[str, float | None]]]:
    """Return a row's threshold, and its metrics by recording."""
    folder = LEADERBOARDS / "pumploop" / "strict"
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    header, *lines = [json.loads(line) for line in (folder / "recordings.jsonl").read_text().splitlines()]
    (threshold,) = next(one["thresholds"] for one in records if (one["label"], one["seed"]) == (label, 0))
    values = next(one["values"] for one in lines if (one["label"], one["seed"]) == (label, 0))
    return threshold["threshold"]["value"], {
        unit["recordings"][0]: dict(zip(header["metrics"], row, strict=True))
        for unit, row in zip(header["units"], values, strict=True)
        if len(unit["recordings"]) == 1
    }


def test_a_recording_s_file_holds_the_thresholds_and_flags_of_the_table_s_rows(scored_site):
    folder = scored_site / "data" / "pumploop-strict-2"
    listed = read(folder / "recordings.js")
    assert {name: listed["scores"]["seeds"][name] for name in BANKED} == dict.fromkeys(BANKED, 0)
    assert len(listed["scores"]["seeds"]) == len(BANKED)
    for label in ("t2", "pca"):
        threshold, by_recording = committed(label)
        assert len(by_recording) == len(listed["recordings"]) > 20
        for recording in listed["recordings"]:
            one = read(folder / "scores" / f"{recording['scores']}.js")["detectors"][label]
            assert one["threshold"] == threshold
            expected = by_recording[recording["id"]]
            if one["curves"] is None:
                assert expected["auprc"] is None
            else:
                assert one["curves"]["point"]["recall"] == pytest.approx(expected["recall"], abs=1e-6)
                precision = one["curves"]["point"]["precision"] or 0.0  # None where no row is flagged
                assert precision == pytest.approx(expected["precision"] or 0.0, abs=1e-6)
            assert one["n_flagged"] == pytest.approx(expected["flagged"] * recording["n_rows"], abs=0.01)


def test_a_fresh_page_shows_the_best_rows_and_the_best_floor_that_the_bank_has(scored_site):
    with (LEADERBOARDS / "pumploop" / "strict" / "overall.csv").open(encoding="utf-8") as stream:
        auprc = {row["detector"]: float(row["auprc_mean"]) for row in csv.DictReader(stream)}
    usual = read(scored_site / "data" / "pumploop-strict-2" / "recordings.js")["scores"]["usual"]
    assert usual == [
        *sorted(("t2", "pca"), key=auprc.__getitem__, reverse=True),
        max(("max-z", "all-positive"), key=auprc.__getitem__),
    ]


def test_thinned_scores_keep_every_peak_and_every_flag(scored_tables, monkeypatch):
    monkeypatch.setattr(scores, "_POINTS", 60)
    bank = Bank.open(scored_tables / "bank")
    found = of(scored_tables, bank)
    store = BankFolder(scored_tables / "bank")
    (trial,) = [trial for trial, entry in store.entries.items() if entry.label == "t2"]
    threshold = store.record(trial).thresholds[0].threshold.value
    labels = bank.load("pumploop").labels.rows
    for name, recording in found.recordings.items():
        rows = store.scores(trial)[f"test/all/{name}"]
        one = recording["detectors"]["t2"]
        points = numbers(one["scores"])
        assert len(points) == 60 < len(rows)
        assert (np.nanmax(points), np.nanmin(points)) == (np.nanmax(rows), np.nanmin(rows))
        starts = numbers(recording["rows"])[::2].astype(int)
        counted = np.arange(len(rows)) >= WARM_UP
        for packed, mask in (
            (one["flagged"], (rows > threshold) & counted),
            (recording["anomalous"], labels[name]),
            (recording["evaluated"], counted),
        ):
            assert flags(packed, 30).tolist() == [part.any() for part in np.split(mask, starts[1:])]


def missing(name: str):
    raise DataNotFoundError(f"{name}: not here")


@pytest.mark.parametrize(
    ("load", "why"), [(missing, "the data set was not at hand"), (lambda _: make_data(), "was another one")]
)
def test_without_the_data_set_scores_stand_without_labels_and_it_is_said(scored_tables, load, why):
    bank = replace(Bank.open(scored_tables / "bank"), load=load)
    found = of(scored_tables, bank)
    assert why in found.unlabelled
    (trial,) = [trial for trial, entry in bank.store.entries.items() if entry.label == "t2"]
    threshold = bank.store.record(trial).thresholds[0].threshold.value
    for name, recording in found.recordings.items():
        rows = bank.store.scores(trial)[f"test/all/{name}"]
        one = recording["detectors"]["t2"]
        assert (recording["anomalous"], recording["evaluated"], one["curves"]) == (None, None, None)
        assert one["n_flagged"] == np.count_nonzero(rows > threshold)
        assert np.array_equal(numbers(one["scores"]), rows.astype(np.float32), equal_nan=True)


def test_of_several_seeds_the_lowest_that_the_bank_has_is_shown(tmp_path):
    (table,) = read_tables(few_tables(tmp_path / "tables", ("skab/strict",), ("vanilla-ae",)))
    (row,) = table.main
    assert len(row.records) == 5
    trials = {("skab", "strict 2", "vanilla-ae", seed): f"trial-{seed}" for seed in (4, 2, 3)}
    trials["skab", "strict 1", "vanilla-ae", 0] = "of-other-rules"
    found = scores._lowest(row, Bank(None, trials, missing))
    assert found is not None
    assert (found[0].seed, found[1]) == (2, "trial-2")


def test_a_data_set_is_never_downloaded_for_labels(scored_tables, tmp_path, monkeypatch):
    monkeypatch.delenv("TSADBENCH_DATA", raising=False)
    monkeypatch.setattr(location.pooch, "os_cache", lambda name: tmp_path / name)
    monkeypatch.setattr(location, "download", lambda *_: pytest.fail("it was downloaded"))
    monkeypatch.setattr(location, "require_answer", lambda *_: pytest.fail("a server was asked"))
    with pytest.raises(DataNotFoundError):
        Bank.open(scored_tables / "bank").load("skab")


def test_a_damaged_file_and_a_folder_that_is_no_bank_are_errors(scored_tables, tmp_path):
    bank = Path(shutil.copytree(scored_tables / "bank", tmp_path / "damaged"))
    file = bank / next(one.file for one in BankFolder(bank).index.entries if one.label == "t2")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(BrokenTrialError, match="SHA-256 is another than that of the index"):
        write_site(scored_tables, tmp_path / "site", bank=bank)
    with pytest.raises(UsageError, match="index of a score bank"):
        write_site(scored_tables, tmp_path / "site", bank=tmp_path)


def test_files_of_other_trials_than_the_table_s_are_left_out_and_named(scored_tables, tmp_path):
    tables = Path(shutil.copytree(scored_tables, tmp_path / "tables"))
    file = tables / "pumploop" / "strict" / "records.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()]
    bank = replace(Bank.open(tables / "bank"), load=missing)
    for labels in (("pca",), BANKED):
        for one in records:
            if one["label"] in labels:
                one["thresholds"][0]["threshold"]["value"] += 1
        file.write_text("".join(json.dumps(one) + "\n" for one in records))
        found = of(tables, bank)
        assert set(found.others) == set(labels)
        assert set(found.seeds) == set(BANKED) - set(labels)
        assert bool(found.recordings) == (labels != BANKED)


def test_a_recording_s_file_stays_small_with_fifty_rows():
    generator = np.random.default_rng(0)
    n = 5_000
    recording = Recording("long", np.zeros((n, 1)), ("sensor",), np.arange(n, dtype=np.float64))
    held = None
    for i in range(50):
        truth = ScoredRecording(
            recording, generator.random(n) < 0.3, generator.standard_normal(n), np.ones(n, dtype=bool), "all", 2.0, None
        )
        one = scores._Scored("long", truth.scores, 2.0, truth)
        held = held or scores._OneRecording(one)
        held.add(f"detector-{i}[parameter={i}]", one)
    assert held is not None
    assert len(json.dumps(held.content())) < 300_000
