"""A submission is written, verified, kept and shown; its trust is what was done about it."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.submissions import DETECTOR, LOAD, copied, report_of, run_drift, submitted
from tsadbench.base.recording import as_recording
from tsadbench.errors import StoreError, UsageError
from tsadbench.execution.check_reports import keep
from tsadbench.execution.run_store import Store
from tsadbench.execution.trial import Outcome
from tsadbench.leaderboard.submitted import acceptance_comment
from tsadbench.results.bank.parquet_form import read_bank_file
from tsadbench.results.shipped import stored_records
from tsadbench.results.submissions.code import code_of, foreign_code_fault, importable, label_here
from tsadbench.results.submissions.form import STATEMENT, statement_fault, submitted_label_fault
from tsadbench.results.submissions.listed import keep_verified, ranked_submissions, read_submission
from tsadbench.results.submissions.making import submit
from tsadbench.results.submissions.rerun import outcome_of, rerun
from tsadbench.results.submissions.verification import verified


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder outside of the repository, with the detector and its runs."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="module")
def store(place) -> Store:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        return run_drift(place)


@pytest.fixture(scope="module")
def submission(store, place) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        return submitted(store, "drift", place / "submissions", pretrained_on=["TSB"])


def test_the_files_hold_what_the_detector_gives_and_nothing_of_the_machine(submission, place):
    (file,) = (submission / "scores").iterdir()
    held = read_bank_file(file.read_bytes(), "-")
    sys.path.insert(0, str(place))
    try:
        from drift import Drift
    finally:
        sys.path.remove(str(place))
    data = LOAD("pumploop").dataset
    detector = Drift().fit(list(data.train))
    for recording in data.test[:3]:
        (name,) = (one for one in held.scores if one.startswith("test/") and one.endswith(f"/{recording.id}"))
        assert np.array_equal(held.scores[name], detector.score(as_recording(recording)).astype(np.float32))
    everything = b"".join(one.read_bytes() for one in submission.rglob("*") if one.is_file())
    assert str(place).encode() not in everything
    assert "command" not in held.record.manifest
    assert (submission / "code" / "drift.py").read_text() == DETECTOR


def test_a_sound_submission_is_verified_and_rests_reported_until_that_is_written_down(submission, tmp_path):
    tables = tmp_path / "tables"
    (tables / "submissions").mkdir(parents=True)
    here = copied(submission, tables / "submissions")
    assert {record.trust for record in read_submission(here).records} == {"reported"}
    assert ranked_submissions(tables) == {}
    with verified(here, LOAD) as found:
        assert found.faults == []
        assert [record.label for record in found.records.values()] == ["drift.py:Drift"]
    keep_verified(here, outcome_of(found, []))
    (record,) = read_submission(here).records
    assert (record.trust, record.pretrained_on) == ("recomputed", ("UCR archive", "TSB"))
    assert set(ranked_submissions(tables)) == {("pumploop", "strict")}
    # What was written down is about this content.
    description = here / "submission.json"
    description.write_text(description.read_text().replace('"TSB"', '"none"'))
    assert {one.trust for one in read_submission(here).records} == {"reported"}
    records = here / "trials.jsonl"
    records.write_text(records.read_text().replace('"auroc":0.', '"auroc":0.9'))
    with pytest.raises(StoreError, match=r"trials\.jsonl: its SHA-256"):
        read_submission(here)


def test_its_code_runs_again_sealed_and_gives_the_scores(submission):
    with verified(submission, LOAD) as found:
        (again,) = rerun(found, LOAD)
    assert found.faults == []
    assert again.repeated is not None
    assert (again.repeated.seal, again.repeated.difference) == ("sealed", 0.0)
    (row,) = outcome_of(found, [again]).rows
    assert (row.trust, row.rerun) == ("rerun", again.record.trial)


def test_the_comment_shows_new_rows_beside_floors_and_neighbours(submission):
    (record,) = read_submission(submission).records
    committed = stored_records("pumploop", "strict")
    text = acceptance_comment(
        "drift", [replace(record, trust="recomputed")], [report_of(record)], lambda *_: committed, ["a remark"]
    )
    lines = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
    floors = {one.label for one in committed if one.floor}
    at = next(place for place, name in enumerate(lines) if "drift.py:Drift" in name)
    assert {"≈", "◈"} <= set(lines[at].split(" "))
    beside = lines[at - 2 : at] + lines[at + 1 : at + 3]
    assert not any(name.split(" ")[-1] in floors for name in beside)
    auprc = {
        name: float(row.split(" | ")[6].partition("(")[0].rstrip("↓"))
        for name, row in zip(lines[2:], [line for line in text.splitlines() if line.startswith("| ")][2:], strict=True)
    }
    order = [auprc[name] for name in lines[at - 2 : at + 3]]
    assert order == sorted(order, reverse=True)
    assert len({name.split(" ")[-1] for name in lines} & floors) >= 1
    assert "- a remark" in text
    assert "1 recomputed" in text


def test_what_cannot_be_verified_is_not_submitted(store, place, tmp_path, monkeypatch):
    monkeypatch.chdir(place)
    with pytest.raises(UsageError, match="expected 1 to 63 small letters"):
        submit(store, "../x", tmp_path, LOAD)
    for option, wrong in (
        ("--name", {"name": "Jane Doe"}),
        ("--pretrained-on", {"pretrained_on": [""]}),
        ("--signed-by", {"signed_by": "<b>Jane"}),
        ("--signed-by", {"signed_by": "  "}),
    ):
        with pytest.raises(UsageError, match=f"^{option}: (?!.*--)"):
            submit(**{"store": store, "name": "x", "folder": tmp_path, "load": LOAD} | wrong)
    with pytest.raises(UsageError, match="has no detector t2"):
        submit(store, "x", tmp_path, LOAD, detectors=["t2"])
    (record,) = store.records()
    unchecked = Store.create(tmp_path / "unchecked")
    unchecked.add(Outcome(record, store.scores(record.trial)))
    with pytest.raises(UsageError, match="no report of its checks"):
        submit(unchecked, "x", tmp_path, LOAD)
    keep(report_of(record, results={"works": "pass", "future": "fail"}), unchecked.path)
    with pytest.raises(UsageError, match="it fails the checks future"):
        submit(unchecked, "x", tmp_path, LOAD)
    broken = Store.create(tmp_path / "broken")
    broken.add(Outcome(replace(record, status="timeout", reason="slow", splits={}, thresholds=()), {}))
    keep(report_of(record), broken.path)
    with pytest.raises(UsageError, match="timeout"):
        submit(broken, "x", tmp_path, LOAD)
    assert not (tmp_path / "x").exists()


def test_a_statement_is_signed_by_name_and_day_and_word_for_word(submission):
    text, description = (submission / STATEMENT).read_text(), (submission / "submission.json").read_bytes()
    assert statement_fault(text, description, "drift") == ""
    assert "not signed" in statement_fault(text.replace("Jane Doe", ""), description, "drift")
    assert "expected a day" in statement_fault(text.replace("2026", "sometime"), description, "drift")
    assert "markup" in statement_fault(text.replace("Jane Doe", "<b>Jane"), description, "drift")
    assert "a word of it" in statement_fault(text.replace("were not edited", "were edited"), description, "drift")
    assert "a word of it" in statement_fault(text, description + b" ", "drift")


@pytest.mark.parametrize(
    "label", ["../plugin/x.py:X", "/home/jane/x.py:X", "~/x.py:X", "a/../b.py:X", "<script>", "x\x1b[2J", "x|y", "x`y"]
)
def test_labels_that_lead_elsewhere_or_are_no_plain_text_are_none(label):
    assert submitted_label_fault(label)


def test_a_package_is_taken_along_and_found_behind_what_is_installed(tmp_path, monkeypatch):
    package = tmp_path / "site" / "strangers_package"
    (package / "parts").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "parts" / "__init__.py").write_text("")
    (package / "parts" / "drift.py").write_text(DETECTOR)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_bytes(b"x")
    monkeypatch.syspath_prepend(tmp_path / "site")
    code, files = code_of("strangers_package.parts.drift:Drift[power=3]")
    assert code == "strangers_package.parts.drift:Drift"
    assert sorted(files) == [
        "code/strangers_package/__init__.py",
        "code/strangers_package/parts/__init__.py",
        "code/strangers_package/parts/drift.py",
    ]
    with importable(tmp_path, code):
        assert sys.path[-1] == str(tmp_path / "code")
    assert str(tmp_path / "code") not in sys.path
    assert label_here("name[power=3]", code, tmp_path) == "strangers_package.parts.drift:Drift[power=3]"
    assert code_of("t2") == ("shipped", {})
    # Installed here as well, it must be the same to the byte; names of Python's and of installed packages are refused.
    shutil.copytree(tmp_path / "site", tmp_path / "code")
    assert foreign_code_fault(code, tmp_path) == ""
    (tmp_path / "code" / "strangers_package" / "parts" / "drift.py").write_text(f"{DETECTOR}# more\n")
    assert "another package" in foreign_code_fault(code, tmp_path)
    for taken in ("json:X", "numpy.core:X", "tsadbench_more:X", "sitecustomize:X"):
        assert foreign_code_fault(taken, tmp_path)
    (package / "fast.so").write_bytes(b"")
    with pytest.raises(UsageError, match=r"fast\.so.*--closed"):
        code_of("strangers_package.parts.drift:Drift")


def test_json_of_the_description_is_plain(submission):
    content = json.loads((submission / "submission.json").read_text())
    assert content["detectors"] == [
        {"label": "drift.py:Drift", "code": "code/drift.py:Drift", "pretrained_on": ["TSB"]}
    ]
    assert set(content["files"]) == {
        path.relative_to(submission).as_posix()
        for path in submission.rglob("*")
        if path.is_file() and path.name not in ("submission.json", "statement.txt")
    }
