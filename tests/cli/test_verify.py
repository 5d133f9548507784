"""`tsadbench verify` on edited and forged stores, and `--redo`, which runs trials again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.plans import make_plan
from tests.helpers.trials import DISTANCE
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.provenance import scoring_identity, trial_name
from tsadbench.execution.record import Record
from tsadbench.execution.rejudging import judged_again
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.execution.score_arrays import arrays_hash

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
    """Write a record in the place of another, its folder renamed with it."""
    folder = runs / old.trial
    if new.trial != old.trial:
        folder = folder.rename(runs / new.trial)
    (folder / "record.json").write_text(new.to_json())


def sealed(record: Record) -> Record:
    """Return a record with the checksum that somebody would forge who knows how."""
    return replace(record, manifest={**record.manifest, "checksum": record.checksum})


def renamed(record: Record) -> Record:
    """Return a record whose scoring identity and name are those of its fields."""
    manifest = record.manifest
    versions = {name: version for name, version in manifest["versions"].items() if name != "python"}
    scoring = scoring_identity(
        label=record.label,
        priors=manifest["priors"],
        code=manifest["code_hash"],
        libraries={**versions, **manifest["adapted"], **manifest["imported"]},
        dataset=record.dataset,
        data=manifest["data_hash"],
        episodes=manifest["episodes_hash"],
        seed=record.seed,
        threads=record.threads,
    )
    return sealed(replace(record, scoring=scoring, trial=trial_name(scoring, record.protocol)))


def faults(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(("differs: ", "cannot be checked: "))]


def test_an_honest_store_is_as_recorded_and_what_is_not_known_is_said(runs, tsadbench):
    found = tsadbench("verify", runs)
    assert (found.code, faults(found.out)) == (0, [])
    counts, last = found.out.splitlines()[-2:]
    assert counts == "4 trials: 4 as recorded, 0 differ, 0 cannot be checked"
    assert last.startswith("verified: ")
    assert f"not verifiable without running: that the detectors made these scores (tsadbench verify {runs}" in last
    assert one(runs) == renamed(one(runs)), "this test computes identities and checksums as runs do"


EDITS: dict[str, Callable[[Record], Record]] = {
    "label": lambda record: replace(record, label="t2[smoothing=5]"),
    "seed": lambda record: replace(record, seed=3),
    "threads": lambda record: replace(record, threads=4),
    "parameters": lambda record: replace(record, parameters={**record.parameters, "smoothing": 9}),
    "family": lambda record: replace(record, family="graph"),
    "floor": lambda record: replace(record, floor=True),
    "look_ahead": lambda record: replace(record, look_ahead=record.look_ahead + 1),
    "detector": lambda record: replace(record, detector="max-z"),
    "leaky": lambda record: replace(record, leaky="nothing"),
    "notes": lambda record: replace(record, notes=("the best",)),
    "fit_seconds": lambda record: replace(record, fit_seconds=1e-3),
    "peak_memory_mib": lambda record: replace(record, peak_memory_mib=1.0),
    "seal": lambda record: replace(record, seal="sealed" if record.seal == "guarded" else "guarded"),
    "versions": lambda record: replace(record, manifest={**record.manifest, "versions": {"numpy": "3.0"}}),
    "crossing": lambda record: replace(record, manifest={**record.manifest, "crossing": "0" * 32}),
    "protocol_version": lambda record: replace(record, protocol_version=1),
    "scoring": lambda record: replace(record, scoring="0" * 24),
}


@pytest.mark.parametrize("field", EDITS)
def test_every_edited_field_is_told(runs, tsadbench, field):
    record = one(runs)
    write(runs, record, EDITS[field](record))
    found = tsadbench("verify", runs)
    assert found.code == 1
    assert any(record.trial in line for line in faults(found.out)), found.out
    assert "3 as recorded, 1 differ" in found.out


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("label", "its scoring identity is not that of its label, data, code, versions, seed and threads"),
        ("seed", "its scoring identity is not"),
        ("threads", "its scoring identity is not"),
        ("parameters", "parameters: recorded"),
        ("family", "family: recorded 'graph', expected"),
        ("floor", "floor: recorded True, expected False"),
        ("look_ahead", "look_ahead: recorded"),
        ("detector", "its detector is max-z, its label t2"),
        ("leaky", "leaky: recorded 'nothing', expected ''"),
        ("protocol_version", "protocol_version: recorded 1, expected"),
        ("scoring", "its name is not that of its scoring identity and protocol"),
    ],
)
def test_what_decides_the_scores_is_told_even_with_a_forged_checksum(runs, tsadbench, field, told):
    record = one(runs)
    write(runs, record, sealed(EDITS[field](record)))
    found = tsadbench("verify", runs)
    assert found.code == 1
    assert any(told in line for line in faults(found.out)), found.out


def test_an_identity_that_is_forged_with_the_label_is_not_that_of_the_parameters(runs, tsadbench):
    record = one(runs)
    write(runs, record, renamed(replace(record, label="t2[smoothing=5]")))
    found = tsadbench("verify", runs)
    assert found.code == 1
    assert any("parameters: recorded" in line for line in faults(found.out)), found.out


def test_records_from_before_parts_were_kept_are_checked_as_far_as_that_goes(runs, tsadbench):
    for record in Store.open(runs).records():
        gone = ("checksum", "priors", "imported", "episodes_hash", "scores_hash", "contributions_hash", "crossing")
        manifest = {key: value for key, value in record.manifest.items() if key not in gone}
        write(runs, record, replace(record, manifest=manifest))
    found = tsadbench("verify", runs)
    assert (found.code, faults(found.out)) == (0, [])
    assert "note: its checksums cannot be checked: it is from before all parts were kept (4 trials)" in found.out
    old = one(runs)
    write(runs, old, replace(old, seed=old.seed + 1, manifest={**old.manifest, "seed": old.seed + 1}))
    edited = tsadbench("verify", runs)
    assert edited.code == 1
    assert any("its scoring identity is not" in line for line in faults(edited.out))


def changed_scores(
    made: SimpleNamespace, runs: Path, change: Callable[[str, np.ndarray], np.ndarray], *, forged: bool
) -> Record:
    """Change the scores of the first trial and judge them; forged: with their hash and the record's checksum."""
    store, plan, record = Store.open(runs), made.plan, one(runs)
    scores = {name: change(name, values.copy()) for name, values in store.scores(record.trial).items()}
    thresholds = scores.pop("thresholds")
    np.savez(runs / record.trial / "scores.npz", **scores, thresholds=thresholds)
    (runs / record.trial / "contributions.npz").unlink(missing_ok=True)
    judged = judged_again(record, store, plan.protocol, plan.episodes, plan.data.labels, None)
    if forged:
        judged = sealed(replace(judged, manifest={**judged.manifest, "scores_hash": arrays_hash(scores)}))
    write(runs, record, judged)
    return judged


def labels(name: str, values: np.ndarray) -> np.ndarray:
    """Return what a detector would score that knows the labels."""
    data = load_dataset(DATASET)(DataOptions())
    role, _, recording = name.split("/", 2) if "/" in name else (name, "", "")
    if role != "test":
        return 1e-3 * np.arange(len(values)) / max(1, len(values))
    return data.labels.rows[recording].astype(np.float64)


def test_edited_scores_whose_metrics_were_computed_again_are_told(made, runs, tsadbench):
    changed_scores(made, runs, lambda _, values: values * 2, forged=False)
    found = tsadbench("verify", runs)
    assert found.code == 1
    assert any("its scores are not those that its run wrote" in line for line in faults(found.out))


def test_scores_that_are_the_labels_need_a_redo_which_finds_them(made, runs, tsadbench):
    forged = changed_scores(made, runs, labels, forged=True)
    assert forged.splits["overall"].metrics["auroc"] == 1.0
    found = tsadbench("verify", runs)
    assert (found.code, faults(found.out)) == (0, []), "nothing but a run can know"
    assert "not verifiable without running" in found.out.splitlines()[-1]
    redone = tsadbench("verify", runs, "--redo", "all")
    assert redone.code == 1
    told = [line for line in redone.out.splitlines() if line.startswith(f"differs: {forged.trial}")]
    assert "its scores differ from those of its repetition" in told[0]
    assert any("auroc on overall: recorded 1.0, found" in line for line in told)
    assert "3 equal to the bit, 0 within the tolerance of 1e-06, 1 differ, 0 cannot be repeated" in redone.out


def test_an_honest_store_repeats_to_the_bit(runs, tsadbench):
    redone = tsadbench("verify", runs, "--redo", "all")
    assert redone.code == 0, redone.out
    assert redone.out.count("repeats to the bit") == len(LABELS)
    assert redone.out.splitlines()[-1].endswith(
        "4 equal to the bit, 0 within the tolerance of 1e-06, 0 differ, 0 cannot be repeated"
    )
    assert " sealed" in redone.out or " guarded" in redone.out


def test_as_many_trials_as_asked_for_are_drawn_and_named(runs, tsadbench):
    trials = {record.trial for record in Store.open(runs).records()}
    redone = tsadbench("verify", runs, "--redo", "2")
    assert redone.code == 0
    drawn = redone.out.splitlines()[0].removeprefix("run again: ").split(", ")
    assert len(drawn) == len(set(drawn)) == 2
    assert set(drawn) <= trials
    assert "2 trials run again" in redone.out.splitlines()[-1]
    assert tsadbench("verify", runs, "--redo", "99").out.splitlines()[-1].startswith("4 trials run again")


@pytest.mark.parametrize("number", ["0", "-1", "many", "1.5", ""])
def test_a_wrong_number_is_one_line(runs, tsadbench, number):
    found = tsadbench("verify", runs, f"--redo={number}")
    assert found.code == 2
    assert "expected a number of trials, at least 1, or all" in found.err


def test_last_digits_may_differ_and_the_tolerance_is_the_users(made, runs, tsadbench):
    changed_scores(made, runs, lambda _, values: values * (1 + 1e-9), forged=True)
    redone = tsadbench("verify", runs, "--redo", "all")
    assert redone.code == 0, redone.out
    (line,) = (line for line in redone.out.splitlines() if line.startswith("repeats within tolerance"))
    assert "largest difference 1e-09 of their range" in line
    strict = tsadbench("verify", runs, "--redo", "all", "--tolerance", "0")
    assert strict.code == 1
    assert "1 differ" in strict.out


def test_a_redo_runs_no_code_that_is_not_trusted_and_passes_over_what_is_broken(tmp_path, tsadbench):
    runs = tmp_path / "runs"
    records = run_plan(make_plan([DISTANCE, "max-z"], dataset=DATASET, floors=False), Store.create(runs))
    trial = {record.label: record.trial for record in records}
    found = tsadbench("verify", runs, "--redo", "all")
    assert found.code == 1
    assert f"cannot be repeated: {trial[DISTANCE]}" in found.out
    assert "is not registered here, and --trust-code is not given" in found.out
    assert tsadbench("verify", runs, "--redo", "all", "--trust-code").code == 0
    os.truncate(runs / trial["max-z"] / "scores.npz", 900)
    broken = tsadbench("verify", runs, "--redo", "all", "--trust-code")
    assert broken.code == 1
    assert "1 equal to the bit" in broken.out
    assert f"cannot be repeated: {trial['max-z']}" in broken.out


def test_other_versions_and_code_are_named_as_possible_causes(made, runs, tsadbench):
    record = changed_scores(made, runs, lambda _, values: values * 1.5, forged=True)
    manifest = {**record.manifest, "versions": {**record.manifest["versions"], "numpy": "1.0"}, "code_hash": "0" * 24}
    file = runs / record.trial / "record.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "manifest": manifest}))
    redone = tsadbench("verify", runs, "--redo", "all")
    assert redone.code == 1
    assert f"possible cause: it was made with other versions: numpy 1.0, here {np.__version__}" in redone.out
    assert "possible cause: the code of t2 here is not what made it" in redone.out


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"seed": 10**12}, "is deterministic and has no seed"),
        ({"manifest": {"crossing": "../x"}}, "expected 32 hexadecimal digits"),
        ({"threads": 0}, "threads"),
        ({"label": "t2[smoothing=-4]"}, "smoothing"),
        ({"protocol": "strikt"}, "there is no protocol"),
        ({"dataset": "nowhere"}, "there is no data set"),
    ],
)
def test_what_a_forged_record_asks_for_ends_its_repetition_alone(runs, tsadbench, changes, told):
    record = one(runs)
    changes = {**changes, "manifest": {**record.manifest, **changes.get("manifest", {})}}
    write(runs, record, replace(record, **changes))
    redone = tsadbench("verify", runs, "--redo", "all")
    assert redone.code == 1
    (line,) = (line for line in redone.out.splitlines() if line.startswith(f"cannot be repeated: {record.trial}"))
    assert told in line
    assert "3 equal to the bit" in redone.out


def test_a_redo_has_the_limits_of_a_run(runs, tsadbench):
    redone = tsadbench("verify", runs, "--redo", "all", "--timeout", "0.001")
    assert redone.code == 1
    assert "run again it ends with status timeout" in redone.out


@pytest.mark.parametrize("options", [(), ("--rerun",)])
def test_a_folder_that_is_neither_a_store_nor_a_submission_is_called_neither(tsadbench, tmp_path, options):
    for folder in (tmp_path, tmp_path / "missing"):
        done = tsadbench("verify", folder, *options)
        assert (done.code, done.out) == (2, "")
        assert f"{folder} holds neither a run store nor a submission" in done.err


@pytest.mark.parametrize("wrong", [("--timeout", "nan"), ("--memory", "0")])
def test_a_wrong_limit_is_a_wrong_option_and_no_trial_that_differs(made, tsadbench, wrong):
    done = tsadbench("verify", made.path, "--redo", "1", *wrong)
    assert (done.code, done.out) == (2, "")
    assert f"{wrong[0][2:]}: expected a number greater than 0, found {wrong[1]}" in done.err


@pytest.mark.parametrize("place", [".", "tables"])
def test_tables_are_not_written_into_a_store(runs, tsadbench, place):
    before = sorted(runs.rglob("*"))
    done = tsadbench("leaderboard", runs, "--write", runs / place)
    assert (done.code, done.out) == (2, "")
    assert f"{runs} is a run store; choose a folder of its own" in done.err
    done = tsadbench("run", "-d", "max-z", "--dataset", DATASET, "--no-floors", "--out", runs, "--write", runs / place)
    assert (done.code, done.out) == (2, "")
    assert sorted(runs.rglob("*")) == before
