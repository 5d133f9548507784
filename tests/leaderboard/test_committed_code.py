"""Committed records come from the current code, and contain no paths of the machines that made them."""

from __future__ import annotations

import json

from tests.helpers.detectors import load_detector
from tests.helpers.records import strings
from tsadbench.execution.identity import code_of
from tsadbench.execution.record import RECORDS, read_records
from tsadbench.utils.files import LEADERBOARDS
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.source_digest import source_of
from tsadbench.utils.text import without_folders

# Tables with rows from older code. Remove a table after `make leaderboards` has run it again; add one if a change to
# shared code makes its rows outdated.
OLDER: set[str] = set()


def test_all_tables_except_the_older_ones_come_from_the_current_code():
    files = sorted(LEADERBOARDS.rglob(RECORDS))
    assert len(files) > 10
    of_target = grouped(
        ((file.parent.relative_to(LEADERBOARDS).as_posix(), one) for file in files for one in read_records(file)),
        lambda found: parse_label(found[1].label).target,
    )
    older = {
        table: f"{record.label}, seed {record.seed}"
        for target, trials in of_target.items()
        for code in [source_of(load_detector(target)).digest]
        for table, record in trials
        if code_of(record.manifest) != code
    }
    assert older.keys() == OLDER, older


def test_no_string_of_a_committed_record_is_an_absolute_path():
    lines = [line for file in LEADERBOARDS.rglob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    texts = {text for line in lines for text in strings(json.loads(line))}
    assert len(texts) > 1000
    assert [text for text in texts if text.startswith(("/", "~")) or without_folders(text) != text] == []
