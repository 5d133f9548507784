"""The scores of recordings that pages draw, compared with the score bank and the committed metrics."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.data import make_data
from tests.reporting.site.conftest import BANKED
from tests.reporting.site.test_files import read
from tsadbench.errors import DataNotFoundError
from tsadbench.reporting.site import scores
from tsadbench.reporting.site.scores import Bank, Scores, scores_of
from tsadbench.reporting.site.source import read_tables
from tsadbench.results.bank import BankFolder
from tsadbench.utils.files import LEADERBOARDS

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


def test_thinned_scores_keep_every_peak_and_every_flag(scored_tables, monkeypatch):
    monkeypatch.setattr(scores, "_POINTS", 60)
    bank = Bank.open(scored_tables / "bank")
    found = of(scored_tables, bank)
    store = BankFolder(scored_tables / "bank")
    (trial,) = [trial for trial in store.trials() if store.record(trial).label == "t2"]
    threshold = store.record(trial).thresholds[0].threshold.value
    labels = bank.load("pumploop").labels.rows
    for name, recording in found.recordings.items():
        rows = store.scores(store.record(trial))[f"test/all/{name}"]
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
    (trial,) = [trial for trial in bank.store.trials() if bank.store.record(trial).label == "t2"]
    threshold = bank.store.record(trial).thresholds[0].threshold.value
    for name, recording in found.recordings.items():
        rows = bank.store.scores(bank.store.record(trial))[f"test/all/{name}"]
        one = recording["detectors"]["t2"]
        assert (recording["anomalous"], recording["evaluated"], one["curves"]) == (None, None, None)
        assert one["n_flagged"] == np.count_nonzero(rows > threshold)
        assert np.array_equal(numbers(one["scores"]), rows.astype(np.float32), equal_nan=True)
