"""Findings as they ship: written, read again by data set and version, and told in one line."""

from __future__ import annotations

import json

from tsadbench.analysis.audit.findings import Finding, shipped_findings, shipped_note, summary, write_shipped

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
