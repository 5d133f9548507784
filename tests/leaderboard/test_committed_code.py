"""The committed rows against the code that is here."""

from __future__ import annotations

from tsadbench.execution.records_file import RECORDS, read_records
from tsadbench.registry import locate
from tsadbench.sandbox.describing import describe
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.shipped_tables import LEADERBOARDS


def test_every_committed_trial_was_made_by_the_code_that_is_here():
    """Else a row could be the mean of two detectors: its seeds would be of different code."""
    files = [file for file in LEADERBOARDS.rglob(RECORDS) if not file.is_relative_to(LEADERBOARDS / "v1")]
    assert len(files) > 10
    of_target = grouped(
        ((file.parent, record) for file in files for record in read_records(file)),
        lambda found: parse_label(found[1].label).target,
    )
    older = [
        f"{folder.relative_to(LEADERBOARDS)}: {record.label}, seed {record.seed}"
        for target, trials in of_target.items()
        for code in [describe(locate(target)).code_hash]
        for folder, record in trials
        if record.manifest["code_hash"] != code
    ]
    assert older == []
