"""Findings that ship with the package: looked up by data set and version, and summarised in one line."""

from __future__ import annotations

from tsadbench.analysis.audit.findings import Finding, shipped_findings, shipped_note, summary

GOOD = Finding("gaps", "good", "Time runs without gaps.")
NOTE = Finding("shift", "note", "A long sentence.", "somewhat moved")
FAULTS = (Finding("position", "fault", "A longer one.", "position tells"), Finding("max-z", "fault", "Another."))


def test_a_summary_names_only_faults_or_says_that_there_is_none():
    assert summary([GOOD, *FAULTS, NOTE, Finding("x", "fault", "…", "x is odd")]) == "position tells; x is odd"
    assert summary([GOOD, NOTE]) == "no fault found"


def test_another_version_or_an_unknown_data_set_has_no_findings():
    assert shipped_findings("skab") == shipped_findings("skab", 1) != ()
    assert shipped_findings("skab", 10_000) == shipped_findings("no such data set") == ()
    assert shipped_note("skab", 10_000) == shipped_note("no such data set") == ""
