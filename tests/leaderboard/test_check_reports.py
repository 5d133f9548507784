"""Check reports: kept by identity, listed, and shown in tables, for rows that pass, fail or were not checked."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from tests.helpers.detectors import load_detector
from tests.helpers.records import record
from tsadbench import Leaderboard
from tsadbench.execution.identity import code_of
from tsadbench.execution.record import RECORDS, read_records
from tsadbench.execution.store import Store
from tsadbench.leaderboard.checks import (
    CHECKS_VERSION,
    FILE,
    CheckReport,
    keep,
    read_reports,
    shipped_reports,
    write_reports,
)
from tsadbench.leaderboard.frame import rows, trials
from tsadbench.testing import all_checks
from tsadbench.utils.files import LEADERBOARDS
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.source_digest import digest_of, source_of

DISTANCE = "tests.helpers.tiny:Distance"


def report(label="a", code="c1", failed=(), **changes):
    results = {"works": "pass", "prefix": "pass", **dict.fromkeys(failed, "fail")}
    made = CheckReport(
        label=label, code_hash=digest_of({"m": code}), checks=CHECKS_VERSION, full=False, day="2026-11-22",
        results=results, reasons={},
    )  # fmt: skip
    return made.model_copy(update=changes)


def trial(label="a", seed=0, code="c1", **fields):
    return replace(record(label, seed, **fields), manifest={"sources": {"m": code}})


def board_of(folder, *records):
    return Leaderboard.from_records(records, checked_in=folder)


class TestIdentity:
    def test_a_store_keeps_one_report_of_each(self, tmp_path):
        keep(report(), tmp_path)
        keep(report(failed=["prefix"]), tmp_path)
        keep(report("b"), tmp_path)
        assert {(one.label, one.failed) for one in read_reports(tmp_path)} == {("a", ("prefix",)), ("b", ())}


class TestVerdict:
    @pytest.mark.parametrize(
        ("reports", "records", "checked", "failed"),
        [
            ([], [trial()], "no", ()),
            ([report()], [trial()], "pass", ()),
            ([report(failed=["prefix"])], [trial()], "fail", ("prefix",)),
            ([report("b")], [trial()], "no", ()),
            ([report(code="c2")], [trial()], "no", ()),
            ([report(checks=CHECKS_VERSION - 1)], [trial()], "no", ()),
            ([report()], [trial(seed=0), trial(seed=1, code="c2")], "no", ()),
            ([report(), report(code="c2")], [trial(seed=0), trial(seed=1, code="c2")], "pass", ()),
            ([report(), report(failed=["pure"], full=True)], [trial()], "fail", ("pure",)),
        ],
    )
    def test_of_a_row(self, reports, records, checked, failed):
        row = rows(trials(records, reports=reports)).iloc[0]
        assert (row["checked"], row["failed_checks"]) == (checked, failed)


class TestTables:
    @pytest.fixture
    def board(self, tmp_path):
        keep(report("good"), tmp_path)
        keep(report("bad", failed=["prefix", "state"]), tmp_path)
        failed = replace(trial("broken", status="error"), reason="it broke")
        return board_of(tmp_path, trial("good"), trial("bad"), trial("unknown"), trial("fl", floor=True), failed)

    def test_csv_and_json_have_a_column_and_keys(self, board):
        lines = list(csv.DictReader(io.StringIO(board.to_csv())))
        expected = {"good": "pass", "bad": "fail", "unknown": "no", "fl": "no", "broken": "no"}
        assert {line["detector"]: line["checked"] for line in lines} == expected
        rows = {row["label"]: row for row in json.loads(board.to_json())["rows"]}
        assert {label: row["checked"] for label, row in rows.items()} == expected
        assert rows["bad"]["failed_checks"] == ["prefix", "state"]
        assert rows["good"]["failed_checks"] == []

    def test_written_tables_include_their_reports_and_can_be_written_again(self, board, tmp_path):
        written = board.write(tmp_path / "tables")
        assert tmp_path / "tables" / FILE in written
        found = read_reports(tmp_path / "tables")
        assert [(one.label, one.failed) for one in found] == [("bad", ("prefix", "state")), ("good", ())]
        again = board_of(tmp_path / "tables", *board.records)
        assert again.to_csv() == board.to_csv()
        board.write(tmp_path / "tables")
        assert read_reports(tmp_path / "tables") == found


class TestForeignStores:
    """Untrusted folders: files that are not reports are ignored, and end no command."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text[:-20],
            lambda text: text.replace('"label":"a"', '"label":"a\\u001b[2J"'),
            lambda text: text.replace('"label"', '"schema":1,"label"'),
            lambda text: "x" * 2**21,
        ],
    )
    def test_a_file_that_is_not_a_report(self, tmp_path, change):
        file = keep(report(), tmp_path)
        changed = change(file.read_text())
        assert changed != file.read_text()
        file.write_text(changed)
        assert read_reports(tmp_path) == ()
        assert [*board_of(tmp_path, trial()).frame["checked"]] == ["no"]

    def test_links_are_not_followed(self, tmp_path):
        elsewhere = keep(report(), tmp_path / "elsewhere")
        (tmp_path / "file" / "checks").mkdir(parents=True)
        (tmp_path / "file" / "checks" / elsewhere.name).symlink_to(elsewhere)
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "checks").symlink_to(elsewhere.parent)
        assert read_reports(tmp_path / "file") == ()
        assert read_reports(tmp_path / "folder") == ()

    def test_the_valid_lines_of_a_damaged_report_file_count(self, tmp_path):
        good = write_reports([report()], tmp_path).read_text()
        (tmp_path / FILE).write_text("{}\n\x1b\n" + good)
        assert read_reports(tmp_path) == (report(),)


class TestCommandLine:
    def test_a_report_is_kept_listed_shown_and_used(self, tmp_path, tsadbench, monkeypatch):
        monkeypatch.chdir(tmp_path)
        done = tsadbench("check", DISTANCE)
        assert done.code == 0
        skipped = ["borders", "seed", "scoring-parameters"]
        assert f"{len(all_checks()) - len(skipped)} pass, {len(skipped)} skip" in done.out
        assert all(f" {check.id} " in done.out and check.sentence in done.out for check in all_checks())
        assert (not (tmp_path / "runs").exists(), "runs" in done.err.splitlines()[-1]) == (True, True)
        runs = Store.create(tmp_path / "runs").path
        label = f"{DISTANCE}[power=3]"
        checked = tsadbench("check", f"{DISTANCE}[power=3.0]")
        assert checked.code == 0
        (found,) = read_reports(runs)
        assert (found.label, found.failed, found.full) == (label.replace("=3", "=3.0"), (), False)
        assert list(found.results) == [check.id for check in all_checks()]
        assert "tsadbench runs show runs" in checked.err
        shown = tsadbench("runs", "show", runs, found.identity[:8])
        assert json.loads(shown.out)["results"] == found.results
        common = ("--dataset", "pumploop", "--seeds", 1, "--no-floors", "--out", runs, "--format", "json")
        ran = tsadbench("run", "-d", f"{DISTANCE}[power=3.0]", "-d", DISTANCE, *common)
        rows = {row["label"]: row["checked"] for row in json.loads(ran.out)["rows"]}
        assert rows == {found.label: "pass", DISTANCE: "no"}
        assert len(Store.open(runs).trials()) == 2


class TestCommitted:
    def test_every_row_of_the_current_code_has_a_report_of_all_checks(self):
        known = {(one.label, one.code_hash) for one in shipped_reports() if one.checks == CHECKS_VERSION}
        every = (one for file in LEADERBOARDS.rglob(RECORDS) for one in read_records(file))
        records = [one for one in every if "size=paper" not in one.label]
        targets = {one.label: parse_label(one.label).target for one in records}
        current = {label: source_of(load_detector(target)).digest for label, target in targets.items()}
        rows = {(one.label, code_of(one.manifest)) for one in records} & {*current.items()}
        assert len(rows) > 50
        assert rows <= known, "run python leaderboards/checks.py, then make tables"

    def test_reports_are_whole_and_sorted(self, tmp_path):
        ids = [check.id for check in all_checks()]
        assert all(list(one.results) == ids for one in shipped_reports()), "raise CHECKS_VERSION, run checks.py"
        file = write_reports(shipped_reports(), tmp_path)
        assert file.read_bytes() == (LEADERBOARDS / FILE).read_bytes()
