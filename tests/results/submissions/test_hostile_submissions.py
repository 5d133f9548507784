"""Each kind of bad submission is refused, with a reason for the file that is to blame."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.submissions import (
    DETECTOR,
    LOAD,
    copied,
    forged,
    report_of,
    run_drift,
    score_file,
    signed_again,
    submitted,
)
from tsadbench.base.protocol import SplitJudgement
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.execution.trial import Outcome
from tsadbench.leaderboard.submitted import refusal_comment
from tsadbench.results.bank.parquet_form import read_bank_file
from tsadbench.results.judging import Judge
from tsadbench.results.submissions import folder as files
from tsadbench.results.submissions.rerun import rerun
from tsadbench.results.submissions.verification import verified


@pytest.fixture(scope="module")
def submission(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("elsewhere")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        return submitted(run_drift(place), "drift", place)


@pytest.fixture
def hostile(submission, tmp_path) -> Path:
    return copied(submission, tmp_path)


def refusals(hostile: Path) -> dict[str, str]:
    with verified(hostile, LOAD) as found:
        assert found.refused == bool(found.faults)
    texts: dict[str, str] = {}
    for fault in found.faults:
        assert fault.file.isprintable()
        assert fault.reason.isprintable()
        texts[fault.file] = f"{texts.get(fault.file, '')} {fault.reason}"
    assert all(texts)
    assert "refused" in refusal_comment("drift", found.faults)
    return texts


def the_scores(hostile: Path) -> str:
    return f"scores/{score_file(hostile).name}"


def test_one_byte_of_the_scores(hostile):
    file = score_file(hostile)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    assert "it was edited" in refusals(hostile)[the_scores(hostile)]


def shifted(scores):
    return {name: values + (np.arange(len(values)) % 7 == 0) for name, values in scores.items()}


def test_scores_whose_digests_were_computed_anew(hostile):
    forged(hostile, scores=shifted, checksums=False)
    found = refusals(hostile)
    assert list(found) == [the_scores(hostile)]
    assert "hash is another" in found[the_scores(hostile)]
    assert "auroc on overall: recorded" in found[the_scores(hostile)] or "threshold of" in found[the_scores(hostile)]


def test_scores_whose_checksums_were_computed_anew_give_other_metrics(hostile):
    forged(hostile, scores=shifted)
    assert "found" in refusals(hostile)[the_scores(hostile)]


def better(record: Record) -> Record:
    judged = record.splits["overall"]
    raised = SplitJudgement({**judged.metrics, "auroc": 0.99}, judged.n_rows, judged.n_anomalous, judged.coverage)
    return replace(record, splits={**record.splits, "overall": raised})


def test_metrics_that_the_scores_do_not_give(hostile):
    forged(hostile, better)
    assert "auroc on overall: recorded 0.99" in refusals(hostile)[the_scores(hostile)]


def test_a_table_that_is_not_of_the_score_files(hostile):
    file = hostile / "trials.jsonl"
    file.write_text(better(Record.from_json(file.read_text().strip(), "-")).to_json(indent=None) + "\n")
    signed_again(hostile)
    assert "not those of the score files" in refusals(hostile)["trials.jsonl"]


@pytest.mark.parametrize("which", ["rows", "a recording", "more"])
def test_rows_and_recordings_that_are_missing_or_too_many(hostile, which):
    def less(scores):
        name = next(one for one in scores if one.startswith("test/"))
        if which == "more":
            return {**scores, f"{name}-again": scores[name]}
        rest = {one: values for one, values in scores.items() if one != name}
        return {**rest, name: scores[name][:-5]} if which == "rows" else rest

    forged(hostile, scores=less)
    expected = {"rows": "expected", "a recording": "it lacks the scores", "more": "it has besides the scores"}[which]
    assert expected in refusals(hostile)[the_scores(hostile)]


def test_a_split_that_is_left_out(hostile):
    def fewer(record):
        return replace(record, splits={name: one for name, one in record.splits.items() if name != "leak"})

    forged(hostile, fewer)
    assert "split leak: not recorded" in refusals(hostile)[the_scores(hostile)]


@pytest.mark.parametrize("key", ["data_hash", "labels_hash"])
def test_other_data_or_labels(hostile, key):
    forged(hostile, lambda one: replace(one, manifest={**one.manifest, key: "0" * 64}))
    assert "here are not those it was made with" in refusals(hostile)[the_scores(hostile)]


def test_another_version_of_the_data_set(hostile):
    forged(hostile, lambda one: replace(one, dataset_version=7))
    assert "run on version 7 of pumploop, and version" in refusals(hostile)[the_scores(hostile)]


def test_code_that_fails_a_check_or_that_nobody_checked(hostile):
    record = Record.from_json((hostile / "trials.jsonl").read_text().strip(), "-")
    failing = report_of(record, results={"works": "pass", "future": "fail"}, reasons={"future": "it looks ahead"})
    (hostile / "checks.jsonl").write_text(failing.to_json())
    signed_again(hostile)
    assert "drift.py:Drift fails the checks future" in refusals(hostile)["checks.jsonl"]
    (hostile / "checks.jsonl").write_text(report_of(record, code_hash="0" * 64).to_json())
    signed_again(hostile)
    assert "no report of today's checks vouches" in refusals(hostile)["checks.jsonl"]


@pytest.mark.parametrize("most", ["MOST_FILE_BYTES", "MOST_BYTES", "MOST_FILES"])
def test_more_than_the_budget(hostile, most):
    if most == "MOST_FILES":
        for i in range(files.MOST_FILES + 1):
            (hostile / "code" / f"x{i}.py").touch()
    else:
        size = files.MOST_FILE_BYTES
        for i in range(1 if most == "MOST_FILE_BYTES" else files.MOST_BYTES // size + 1):
            with (hostile / "code" / f"x{i}.npy").open("wb") as stream:
                stream.truncate(size + (most == "MOST_FILE_BYTES"))  # a hole: it takes no room on the disk
    found = refusals(hostile)
    assert "expected at most" in found.get("code/x0.npy", "") + found.get(".", "") or "more than" in found["."]


LINKS: dict[str, Callable[[Path], None]] = {
    "trials.jsonl": lambda file: (file.unlink(), file.symlink_to("/etc/passwd")),
    "code/there": lambda file: file.symlink_to("/etc"),
    "code/pipe.py": lambda file: os.mkfifo(file),
    "code/.hidden.py": lambda file: file.write_text(""),
    "code/a b.py": lambda file: file.write_text(""),
    "code/x\u202ey.py": lambda file: file.write_text(""),
    "code/<img src=x>.py": lambda file: file.write_text(""),
    "code/fast.so": lambda file: file.write_text(""),
    "code/x.pth": lambda file: file.write_text("import os"),
    "more.json": lambda file: file.write_text("{}"),
    "scores/x.parquet": lambda file: file.write_text(""),
    "other": lambda file: file.mkdir(),
}


@pytest.mark.parametrize("name", LINKS)
def test_links_devices_and_odd_names(hostile, name):
    LINKS[name](hostile / name)
    found = refusals(hostile)
    assert any(reason for file, reason in found.items() if file.startswith(name.partition("\u202e")[0])), found


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "scores/../../x", "code/../x.py", "C:\\x"])
def test_paths_that_lead_out(hostile, path):
    def listed(content):
        content["files"][path] = "0" * 64

    signed_again(hostile, listed)
    assert path in refusals(hostile)

    def of_a_trial(content):
        content["trials"] = dict.fromkeys(content["trials"], path)

    signed_again(hostile, of_a_trial)
    assert "missing" in refusals(hostile)[path]

    def of_code(content):
        content["detectors"][0]["code"] = f"{path}:Drift"

    signed_again(hostile, of_code)
    assert "code:" in refusals(hostile)["submission.json"]


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a\x1b[2J", "javascript:alert(1)", "\u202eevil"])
@pytest.mark.parametrize("where", ["label", "corpus", "family", "manifest", "split"])
def test_script_and_control_characters_in_names(hostile, where, text):
    if where == "label":
        signed_again(hostile, lambda content: content["detectors"][0].update(label=text))
    elif where == "corpus":
        signed_again(hostile, lambda content: content["detectors"][0].update(pretrained_on=[text]))
    elif where == "family":
        forged(hostile, lambda one: replace(one, family=text))
    elif where == "manifest":
        forged(hostile, lambda one: replace(one, manifest={**one.manifest, "platform": text}))
    else:
        forged(hostile, lambda one: replace(one, splits={**one.splits, text: one.splits["overall"]}))
    found = refusals(hostile)
    assert found
    assert "<script>" not in refusal_comment("drift", [files.Fault(*one) for one in found.items()])


FORGERIES: dict[str, Callable[[Record], Record]] = {
    "label": lambda one: replace(one, label="drift.py:Drift[power=3.0]"),
    "seed": lambda one: replace(one, seed=one.seed + 1),
    "threads": lambda one: replace(one, threads=8),
    "code": lambda one: replace(one, manifest={**one.manifest, "code_hash": "0" * 64}),
    "versions": lambda one: replace(
        one, manifest={**one.manifest, "versions": {**one.manifest["versions"], "numpy": "1"}}
    ),
    "a floor": lambda one: replace(one, floor=True),
    "trust": lambda one: replace(one, trust="recomputed"),
    "a shipped detector": lambda one: replace(one, label="t2", detector="t2"),
    "another's prior": lambda one: replace(one, label="drift.py:Drift[prior=/etc/passwd]"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_records(hostile, what):
    forged(hostile, FORGERIES[what])
    assert refusals(hostile)


def test_a_record_that_was_edited_by_hand(hostile):
    forged(hostile, lambda one: replace(one, fit_seconds=0.001), checksums=False)
    assert "its checksum is not that" in refusals(hostile)[the_scores(hostile)]


@pytest.mark.parametrize("name", ["submission.json", "trials.jsonl", "checks.jsonl", "statement.txt"])
@pytest.mark.parametrize("content", [None, b"", b"[" * 100_000, b"\xff\xfe", b'{"schema": 1}\n'])
def test_files_that_are_missing_or_are_no_such_file(hostile, name, content):
    file = hostile / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    if name in ("trials.jsonl", "checks.jsonl"):
        signed_again(hostile)
    assert name in refusals(hostile)


def test_a_folder_of_another_name_and_a_link_to_one(hostile, tmp_path):
    other = hostile.rename(tmp_path / "other")
    assert "its name is drift" in refusals(other)["submission.json"]
    (tmp_path / "link").symlink_to(other)
    assert "expected a folder" in refusals(tmp_path / "link")["."]


def test_scores_that_no_detector_gave_are_found_by_running_its_code(hostile):
    labels = LOAD("pumploop").labels.rows
    held = read_bank_file(score_file(hostile).read_bytes(), "-")

    def cheated(scores):
        return {
            name: values
            if not name.startswith("test/")
            else values + 1000.0 * labels[name.removeprefix("test/all/")].astype(float)
            for name, values in scores.items()
        }

    store = Store.create(hostile.parent / "judged")
    store.add(Outcome(held.record, {name: np.asarray(one) for name, one in cheated(held.scores).items()}))
    judged = Judge(LOAD).again(held.record, store)
    assert judged.splits["overall"].metrics["auroc"] > 0.95
    forged(hostile, lambda _: judged, cheated)
    with verified(hostile, LOAD) as found:
        assert found.faults == []  # nothing stored can show it
        (again,) = rerun(found, LOAD)
    assert [fault.file for fault in found.faults] == [the_scores(hostile)] * len(found.faults)
    assert "its scores differ" in again.faults[0].reason


def test_code_that_did_not_make_the_scores_is_not_even_run(hostile):
    file = hostile / "code" / "drift.py"
    file.write_text(DETECTOR.replace("np.abs((recording", "2 * np.abs((recording"))
    signed_again(hostile)
    with verified(hostile, LOAD) as found:
        assert found.faults == []
        (again,) = rerun(found, LOAD)
    assert again.repeated is None
    assert "is not what made its trials" in found.faults[0].reason


def test_a_row_of_a_name_that_is_committed_already(hostile, tmp_path):
    tables = tmp_path / "tables" / "pumploop" / "strict"
    tables.mkdir(parents=True)
    (tables / "records.jsonl").write_text((hostile / "trials.jsonl").read_text())
    with verified(hostile, LOAD, tmp_path / "tables") as found:
        pass
    assert "has a row already" in found.faults[0].reason
    assert json.loads((hostile / "submission.json").read_text())["name"] == "drift"
