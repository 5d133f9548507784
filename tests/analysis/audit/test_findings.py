"""Findings as they ship: written, read again by data set and version, and told in one line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.helpers.protocol_plant import plant, recording
from tsadbench.analysis.audit import audit
from tsadbench.analysis.audit.findings import (
    SHIPPED,
    Finding,
    shipped_findings,
    shipped_note,
    summary,
    write_shipped,
)
from tsadbench.datasets.suites import suite_named
from tsadbench.utils.markdown import plain

GOOD = Finding("gaps", "good", "Time runs without gaps.")
NOTE = Finding("shift", "note", "A long sentence.", "somewhat moved")
FAULTS = (Finding("position", "fault", "A longer one.", "position tells"), Finding("max-z", "fault", "Another."))


def test_a_summary_names_faults_alone_and_says_if_there_is_none():
    assert summary([GOOD, *FAULTS, NOTE, Finding("x", "fault", "…", "x is odd")]) == "position tells; x is odd"
    assert summary([GOOD, NOTE]) == "no fault found"


def test_writing_replaces_a_data_sets_findings_and_keeps_the_others(tmp_path):
    file = tmp_path / "findings.json"
    write_shipped({"b": (1, [GOOD]), "a": (2, [NOTE])}, file)
    write_shipped({"b": (3, FAULTS)}, file)
    content = json.loads(file.read_text("utf-8"))
    assert (content["schema"], list(content["datasets"])) == (1, ["a", "b"])
    assert content["datasets"]["b"]["version"] == 3
    assert content["datasets"]["b"]["summary"] == "position tells"
    assert content["datasets"]["a"]["findings"] == [
        {"about": "shift", "grade": "note", "sentence": "A long sentence.", "brief": "somewhat moved"}
    ]


def test_findings_of_another_version_or_an_unknown_data_set_are_none():
    assert shipped_findings("skab") == shipped_findings("skab", 1) != ()
    assert shipped_findings("skab", 10_000) == shipped_findings("no such data set") == ()
    assert shipped_note("skab", 10_000) == shipped_note("no such data set") == ""


def test_a_note_is_one_line_that_names_the_page():
    note = shipped_note("skab")
    assert note.startswith("skab: ")
    assert note.endswith("(docs/audits/skab.md).")
    assert "\n" not in note
    assert "; ;" not in note


def test_every_finding_that_ships_has_a_page_and_a_known_grade():
    names = list(json.loads(SHIPPED.read_text("utf-8"))["datasets"])
    assert names == sorted(suite_named("all").datasets)
    for name in names:
        assert (Path(__file__).parents[3] / "docs" / "audits" / f"{name}.md").is_file()
        assert {one.grade for one in shipped_findings(name)} <= {"good", "note", "fault"}
        assert all(not one.brief for one in shipped_findings(name) if one.grade == "good")


def test_no_good_finding_of_an_audit_has_a_brief():
    found = audit(plant((recording("free", 200),), (recording("a", 100, seed=2),), {"a": slice(0, 60)}))
    assert {one.grade for one in found.findings} > {"good", "fault"}
    assert all(one.brief == "" for one in found.findings if one.grade == "good")
    assert "60.0% of the test rows are anomalous" in summary(found.findings)


def test_the_list_of_findings_is_what_ships():
    page = (Path(__file__).parents[3] / "docs" / "audits" / "README.md").read_text("utf-8")
    for name in suite_named("all").datasets:
        assert f"* {plain(f'{name}: {summary(shipped_findings(name))}')}\n" in page
