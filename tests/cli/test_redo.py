"""`tsadbench runs redo`: one trial again, compared to the bit, without touching the evidence."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.plans import make_plan
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("redo") / "runs"
    run_plan(make_plan(["t2", "random"], dataset="pumploop", floors=False, seeds=2), Store.create(folder))
    return folder


@pytest.fixture
def runs(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "runs"))


def one(runs: Path, label: str, seed: int = 0) -> Record:
    return next(record for record in Store.open(runs).records() if (record.label, record.seed) == (label, seed))


def contents(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_an_honest_trial_repeats_to_the_bit_and_its_store_is_only_read(runs, tmp_path, tsadbench):
    record, before = one(runs, "random", seed=1), contents(runs)
    done = tsadbench("runs", "redo", runs, record.trial[:10], "--out", tmp_path / "again")
    assert done.code == 0, done.out
    assert f"repeats to the bit: {record.trial}" in done.out
    assert contents(runs) == before
    (again,) = Store.open(tmp_path / "again").records()
    assert (again.trial, again.seed, again.threads) == (record.trial, record.seed, record.threads)
    assert (again.splits, again.thresholds) == (record.splits, record.thresholds)
    assert again.manifest["scores_hash"] == record.manifest["scores_hash"]


def test_the_last_digit_of_a_score_or_a_metric_is_a_difference(runs, tsadbench):
    record = one(runs, "t2")
    file = runs / record.trial / "scores.npz"
    with np.load(file) as arrays:
        scores = {name: arrays[name].copy() for name in arrays.files}
    tested = next(name for name in scores if name.startswith("test/"))
    scores[tested][50] = np.nextafter(scores[tested][50], np.inf)
    np.savez(file, **scores)
    done = tsadbench("runs", "redo", runs, record.trial)
    assert done.code == 1
    assert "its scores differ from those of its repetition by up to" in done.out


def test_an_edited_metric_and_other_versions_are_named(runs, tsadbench):
    record = one(runs, "t2")
    overall = record.splits["overall"]
    metrics = {**overall.metrics, "auroc": np.nextafter(overall.metrics["auroc"], 1.0)}
    manifest = {
        **record.manifest,
        "loaded": {"aeon": "1.5.0"},
        "versions": {**record.manifest["versions"], "numpy": "1.0"},
    }
    edited = replace(record, splits={**record.splits, "overall": replace(overall, metrics=metrics)}, manifest=manifest)
    (runs / record.trial / "record.json").write_text(edited.to_json())
    done = tsadbench("runs", "redo", runs, record.trial)
    assert done.code == 1
    assert f"auroc on overall: recorded {metrics['auroc']}, found {overall.metrics['auroc']}" in done.out
    assert f"numpy 1.0, here {np.__version__}" in done.out
    assert "aeon 1.5.0, here None" in done.out


def test_wrong_usage_is_one_line(runs, tsadbench):
    record = one(runs, "t2")
    for arguments, told in (
        (["nonsense"], "has no trial 'nonsense'"),
        ([""], "matches 3 trials"),
        ([record.trial, "--out", runs], "it is the store that holds the trial"),
    ):
        done = tsadbench("runs", "redo", runs, *arguments)
        assert done.code == 2
        assert told in done.err
