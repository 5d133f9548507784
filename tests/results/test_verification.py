"""`tsadbench verify` on edited and forged stores, and `--redo`, which runs trials again."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.plans import make_plan
from tests.helpers.stored import stored
from tests.helpers.trials import DISTANCE
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.identity import scoring_identity, trial_name
from tsadbench.execution.judging import arrays_hash, judge_again, scored_episodes
from tsadbench.execution.record import Record
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store

DATASET = "pumploop"
LABELS = ("t2[smoothing=3]", "all-positive", "max-z", "random")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> SimpleNamespace:
    """A store of four trials, and the plan that made it."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    plan = make_plan(list(LABELS), dataset=DATASET, floors=False, seeds=1)
    records = run_plan(plan, Store.create(folder))
    assert {record.status for record in records} == {"ok"}
    return SimpleNamespace(path=folder, plan=plan)


@pytest.fixture
def runs(made, tmp_path) -> Path:
    shutil.copytree(made.path, tmp_path / "runs")
    return tmp_path / "runs"


def one(runs: Path, label: str = LABELS[0]) -> Record:
    return next(record for record in Store.open(runs).records() if record.label == label)


def write(runs: Path, old: Record, new: Record) -> None:
    """Replace a record."""
    files = stored(runs, old.trial)
    files.record.unlink()
    files.scores.rename(runs / "scores" / f"{new.scoring}.npz")
    Store.open(runs).put(new)


def renamed(record: Record) -> Record:
    """Return a record with the scoring identity and the name computed from its fields."""
    scoring = scoring_identity(record.label, record.dataset, record.manifest)
    return replace(record, scoring=scoring, trial=trial_name(scoring, record.protocol))


def faults(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(("differs: ", "cannot be checked: "))]


def test_an_honest_store_is_as_recorded_and_repeats_to_the_bit(runs, tsadbench):
    kept, before = Store.open(runs).records(), {file: file.read_bytes() for file in runs.rglob("*.npz")}
    found = tsadbench("verify", runs)
    assert (found.code, faults(found.out)) == (0, [])
    assert re.search(r"^4 \D*4 \D*0 \D*0 ", found.out, re.M)
    redone = tsadbench("verify", runs, "--redo", "all", "--tolerance", "0")
    assert redone.code == 0, redone.out
    assert redone.out.count("repeats to the bit") == len(LABELS)
    assert {file: file.read_bytes() for file in runs.rglob("*.npz")} == before
    measured = dict.fromkeys(
        ("fit_seconds", "score_seconds", "fit_cpu_seconds", "score_cpu_seconds", "peak_memory_mib")
    )
    now = [replace(record, **measured) for record in Store.open(runs).records()]
    assert now == [replace(record, **measured) for record in kept]


def test_measurements_are_claims_until_a_redo_replaces_them(runs, tsadbench):
    record = one(runs, "max-z")
    claims = {"fit_seconds": 1e-9, "peak_memory_mib": 1.0, "seal": "sealed", "seal_reason": "", "replay": None}
    write(runs, record, replace(record, **claims))
    scoring = (twin := renamed(replace(record, seed=1, manifest={**record.manifest, "seed": 1}))).scoring
    shutil.copy(stored(runs, record.trial).scores, runs / "scores" / f"{scoring}.npz")
    Store.open(runs).put(twin)
    found = tsadbench("verify", runs)
    assert re.search("recomputed: .*metrics; its maker's word: .*seconds.*seal", found.out)
    redone = tsadbench("verify", runs, "--redo", "all")
    assert re.search(r"max-z .*\b1 of 2\b", redone.out)  # it is deterministic: seed 1 is refused
    again = one(runs, "max-z")
    assert again.fit_seconds > 1e-6
    assert again.peak_memory_mib > 10
    assert again.replay == record.replay


def test_a_pipe_in_the_place_of_a_file_is_an_edit_and_blocks_nothing(runs, tsadbench):
    place = runs / "logs/a log.txt"
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place)
    found = tsadbench("verify", runs)
    assert found.code == 1
    assert f"edited: {place.relative_to(runs)}" in found.out
    assert re.search(r"^4 trials: ", found.out, re.M)


def test_an_identity_forged_with_the_label_does_not_match_the_parameters(runs, tsadbench):
    record = one(runs)
    assert record == renamed(record), "this test computes identities as runs do"
    write(runs, record, renamed(replace(record, label="t2[smoothing=5]")))
    found = tsadbench("verify", runs)
    assert found.code == 1
    assert any("parameters" in line for line in faults(found.out)), found.out


def changed_scores(made: SimpleNamespace, runs: Path, change: Callable[[str, np.ndarray], np.ndarray]) -> Record:
    """Change the scores of the first trial, judge them and update their hash."""
    store, plan, record = Store.open(runs), made.plan, one(runs)
    scores = {name: change(name, values.copy()) for name, values in store.scores(record).items()}
    np.savez(stored(runs, record.trial).scores, **scores)
    scored = scored_episodes(scores, plan.episodes, None)
    judged = judge_again(record, scored, plan.protocol, plan.data, record.judging)
    judged = replace(judged, manifest={**judged.manifest, "scores_hash": arrays_hash(scores)})
    write(runs, record, judged)
    return judged


def labels(name: str, values: np.ndarray) -> np.ndarray:
    """Return the scores of a detector that knows the labels."""
    data = load_dataset(DATASET)(DataOptions())
    role, _, recording = name.split("/", 2)
    if role != "test":
        return 1e-3 * np.arange(len(values)) / max(1, len(values))
    return data.labels.rows[recording].astype(np.float64)


def test_scores_that_are_the_labels_need_a_redo_which_finds_them(made, runs, tsadbench):
    forged = changed_scores(made, runs, labels)
    assert forged.splits["overall"].metrics["auroc"] == 1.0
    assert tsadbench("verify", runs).code == 0, "nothing but a run can know"
    redone = tsadbench("verify", runs, "--redo", "all")
    assert redone.code == 1
    told = [line for line in redone.out.splitlines() if line.startswith(f"differs: {forged.trial}")]
    assert any(re.search(r"overall.*auroc.* 1\.0\b", line) for line in told)
    assert re.search(r"^4 .* 3 \D*0 .*1e-06\D* 1 \D*0 ", redone.out, re.M)


def test_as_many_trials_as_asked_for_are_drawn_and_named(runs, tsadbench):
    redone = tsadbench("verify", runs, "--redo", "3")
    assert redone.code == 0
    drawn = redone.out.splitlines()[0].removeprefix("run again: ").split(", ")
    assert len(set(drawn)) == 3
    assert set(drawn) <= {record.trial for record in Store.open(runs).records()}
    for wrong in ("0", "many"):
        assert tsadbench("verify", runs, f"--redo={wrong}").code == 2


def test_last_digits_may_differ_and_the_tolerance_is_the_users(made, runs, tsadbench):
    changed_scores(made, runs, lambda _, values: values * (1 + 1e-9))
    redone = tsadbench("verify", runs, "--redo", "all")
    assert redone.code == 0, redone.out
    (line,) = (line for line in redone.out.splitlines() if line.startswith("repeats within tolerance"))
    assert " 1e-09 " in line
    strict = tsadbench("verify", runs, "--redo", "all", "--tolerance", "0")
    assert strict.code == 1
    assert "1 differ" in strict.out
    changed_scores(made, runs, lambda _, values: values * (1 + 1e-4))  # thresholds move as well
    assert tsadbench("verify", runs, "--redo", "all").code == 1
    assert tsadbench("verify", runs, "--redo", "all", "--tolerance", "1e-3").code == 0


def test_a_redo_runs_no_code_that_is_not_trusted_and_passes_over_what_is_broken(tmp_path, tsadbench):
    runs = tmp_path / "runs"
    records = run_plan(make_plan([DISTANCE, "max-z"], dataset=DATASET, floors=False), Store.create(runs))
    trial = {record.label: record.trial for record in records}
    os.truncate(stored(runs, trial["max-z"]).scores, 900)
    found = tsadbench("verify", runs, "--redo", "all")
    assert found.code == 1
    (line,) = (line for line in found.out.splitlines() if line.startswith(f"cannot be repeated: {trial[DISTANCE]}"))
    assert "--detector" in line
    trusted = tsadbench("verify", runs, "--redo", "all", "--detector", DISTANCE)
    assert trusted.code == 1
    assert re.search(r"\): 1 ", trusted.out)
    assert f"cannot be repeated: {trial['max-z']}" in trusted.out


def test_other_versions_and_code_are_named_as_possible_causes(made, runs, tsadbench):
    record = changed_scores(made, runs, lambda _, values: values * 1.5)
    versions = {**record.manifest["versions"], "numpy": "1.0"}
    others = {**record.manifest, "versions": versions, "sources": {"mine": "0" * 24}}
    write(runs, record, replace(record, manifest=others))
    redone = tsadbench("verify", runs, "--redo", "all")
    assert redone.code == 1
    assert re.search(rf"numpy 1\.0\b.*{np.__version__}", redone.out)
    assert "module mine" in redone.out
    found = tsadbench("verify", runs)
    assert "code of t2" in found.out


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"seed": 10**12}, "seed"), ({"label": "t2[smoothing=-4]"}, "smoothing"), ({"protocol": "strikt"}, "strikt")],
)
def test_a_forged_record_only_ends_its_own_repetition(runs, tsadbench, changes, told):
    record = one(runs)
    write(runs, record, replace(record, **changes))
    redone = tsadbench("verify", runs, "--redo", "all")
    assert redone.code == 1
    (line,) = (line for line in redone.out.splitlines() if line.startswith(f"cannot be repeated: {record.trial}"))
    assert told in line
    assert "3 equal to the bit" in redone.out
