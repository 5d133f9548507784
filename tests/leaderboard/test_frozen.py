"""Versions of the leaderboards: what is frozen stays, and a changelog says what has moved."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.committed import commit, made
from tests.helpers.scripts import load_script
from tsadbench.execution.records_file import RECORDS, read_records
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.results.bank.index import BankIndex
from tsadbench.utils.shipped_tables import LEADERBOARDS

SCRIPTS = Path(__file__).parents[2] / "leaderboards"
VALUES = {"t2": 0.5, "cva": 0.4, "max-z": 0.3, "random": 0.2}


def script(name, *arguments) -> int:
    return load_script(SCRIPTS / f"{name}.py").main([str(argument) for argument in arguments])


def emit(top: Path, records) -> None:
    for file in [*top.glob("*/*/*.csv"), *top.glob(f"*/*/{RECORDS}")]:
        file.unlink()
    commit(top, records)
    Leaderboard.from_records(records).write(top)


@pytest.fixture
def top(tmp_path) -> Path:
    """Two tables, frozen as version 1."""
    emit(tmp_path, [*made("first", VALUES), *made("second", VALUES)])
    assert script("freeze", "--tables", tmp_path, "--version", 1) == 0
    return tmp_path


def seeds(dataset: str, label: str, values) -> list:
    (one,) = made(dataset, {label: values[0]})
    return [
        replace(made(dataset, {label: value})[0], seed=seed, trial=f"{one.trial}-{seed}")
        for seed, value in enumerate(values)
    ]


def test_committed_frozen_versions_are_as_they_were_frozen():
    assert script("freeze", "--check") == 0


def test_the_committed_index_of_the_bank_is_of_committed_trials():
    known = {}
    for file in LEADERBOARDS.glob(f"*/*/{RECORDS}"):
        known |= {one.trial: (one.dataset, one.protocol, one.label, one.seed) for one in read_records(file)}
    entries = BankIndex.read(LEADERBOARDS / "bank.json").entries
    assert len(entries) > 40
    for entry in entries:
        assert known[entry.trial] == (entry.dataset, entry.protocol, entry.label, entry.seed)


def test_a_frozen_folder_holds_the_tables_and_their_digests(top):
    noted = json.loads((top / "v1" / "frozen.json").read_text())
    assert noted["version"] == 1
    assert set(noted["datasets"]) == {"first", "second"}
    assert noted["suites"]["plants"]["version"] >= 1
    (table,) = (top / "v1" / "first").glob("*/*.csv")
    assert table.read_bytes() == (top / table.relative_to(top / "v1")).read_bytes()
    assert table.relative_to(top / "v1").as_posix() in noted["files"]
    assert script("freeze", "--tables", top, "--check") == 0


@pytest.mark.parametrize("edit", ["a byte", "gone", "new", "digest too", "no note"])
def test_any_edit_of_a_frozen_folder_is_found(top, edit, capsys):
    (table,) = (top / "v1" / "first").glob("*/*.csv")
    note = top / "v1" / "frozen.json"
    if edit == "gone":
        table.unlink()
    elif edit == "new":
        (top / "v1" / "first" / "more.csv").write_text("x")
    elif edit == "no note":
        note.unlink()
    else:
        content = bytearray(table.read_bytes())
        content[-3] ^= 1
        table.write_bytes(content)
    if edit == "digest too":
        noted = json.loads(note.read_text())
        noted["files"] = load_script(SCRIPTS / "freeze.py").digests(top / "v1")
        note.write_text(json.dumps(noted, indent=1) + "\n")
    assert script("freeze", "--tables", top, "--check") == 1
    assert str(note if edit in ("digest too", "no note") else top / "v1" / "first") in capsys.readouterr().err


def test_versions_are_frozen_in_order_and_once(top, capsys):
    for version in (1, 3):
        assert script("freeze", "--tables", top, "--version", version) == 2
        assert "expected 2" in capsys.readouterr().err
    assert not (top / "v3").exists()


def test_the_changelog_says_what_is_new_gone_and_moved_and_keeps_the_reasons(top, capsys):
    values = {"t2": 0.6, "max-z": 0.3, "random": 0.2, "pca": 0.1}
    emit(top, [*made("first", values), *made("second", VALUES)])
    assert script("changes", "--tables", top, "--write") == 0
    text = (top / "CHANGELOG.md").read_text()
    new_section = text[text.index("## Since v1") : text.index("## v1")]
    assert "### first/" in new_section
    assert "### second/" not in new_section
    assert "- new: `pca`\n" in new_section
    assert "- gone: `cva`\n" in new_section
    assert "auprc 0.5000 is now 0.6000" in new_section
    assert "max-z" not in new_section
    assert script("freeze", "--tables", top, "--version", 2) == 2
    assert "1 reasons are not written yet" in capsys.readouterr().err
    (top / "CHANGELOG.md").write_text(text.replace("_to be written_", "t2 had a bug,\nand cva was withdrawn."))
    assert script("changes", "--tables", top, "--write") == 0
    assert "Why: t2 had a bug,\nand cva was withdrawn." in (top / "CHANGELOG.md").read_text()
    assert script("freeze", "--tables", top, "--version", 2) == 0
    text = (top / "CHANGELOG.md").read_text()
    assert [line[:5] for line in text.splitlines() if line.startswith("## ")] == ["## v2", "## v1"]
    assert "t2 had a bug" in text
    assert script("freeze", "--tables", top, "--check") == 0


def test_an_outdated_changelog_cannot_be_frozen(top, capsys):
    emit(top, [*made("first", {**VALUES, "t2": 0.9}), *made("second", VALUES)])
    assert script("freeze", "--tables", top, "--version", 2) == 2
    assert "make changes" in capsys.readouterr().err


def test_a_row_moves_by_more_than_its_seeds_spread(tmp_path, capsys):
    def table(shift: float) -> list:
        noisy = seeds("first", "noisy", (0.50 + shift, 0.52 + shift))
        return [*made("first", VALUES), *noisy, *seeds("first", "calm", (0.50 + shift, 0.502 + shift))]

    emit(tmp_path, table(0.0))
    assert script("freeze", "--tables", tmp_path, "--version", 1) == 0
    emit(tmp_path, table(0.01))
    capsys.readouterr()
    assert script("changes", "--tables", tmp_path) == 0
    printed = capsys.readouterr().out
    assert "`calm`" in printed
    assert "(seeds 0.0014)" in printed
    assert "`noisy`" not in printed


def test_other_rules_and_other_data_are_not_compared(top, capsys):
    rules = made("first", {**VALUES, "t2": 0.9}, protocol_version=7)
    data = made("second", {**VALUES, "t2": 0.9}, dataset_version=2)
    emit(top, [*rules, *data])
    assert script("changes", "--tables", top) == 0
    printed = capsys.readouterr().out
    assert "are now 7\n" in printed
    assert "- not compared: the data set was version 1 and is now 2" in printed
    assert "moved" not in printed


def test_contents_that_change_under_the_same_version_are_refused(top, capsys):
    changed = made("first", VALUES, manifest={"data_hash": "another"})
    emit(top, [*changed, *made("second", VALUES)])
    assert script("freeze", "--tables", top, "--check") == 1
    assert "datasets first: changed since it was frozen as version 1; raise its version" in capsys.readouterr().err
    emit(top, [*made("first", VALUES, manifest={"data_hash": "another"}, dataset_version=2), *made("second", VALUES)])
    assert script("freeze", "--tables", top, "--check") == 0


def test_every_committed_row_says_its_versions():
    for file in LEADERBOARDS.glob("*/*/*.csv"):
        if file.parts[-3] != "suites":
            with file.open(encoding="utf-8", newline="") as stream:
                assert all(int(row["protocol_version"]) >= 1 for row in csv.DictReader(stream)), file
