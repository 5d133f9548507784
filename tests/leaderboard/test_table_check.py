"""`tsadbench verify --table`: an emitted table against the store, in each format."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.plans import make_plan
from tsadbench.execution.check_reports import keep
from tsadbench.execution.checking import subject_of
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.table_check import check_table
from tsadbench.leaderboard.table_reading import read_tables

ENDINGS = {"csv": "csv", "json": "json", "markdown": "md", "latex": "tex"}
LABELS = ["t2", "t2[mean=10]", "max-z", "random"]
NUMBER = re.compile(r"(?<=[ .,\d(-])\d(?=[\d,) %&|\\}\n<*]|$)")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("table") / "runs"
    records = run_plan(make_plan(LABELS, dataset="pumploop", floors=False, seeds=2), Store.create(folder))
    assert {record.status for record in records} == {"ok"}
    return folder


@pytest.fixture(scope="module")
def board(runs) -> Leaderboard:
    return Leaderboard.from_records(Store.open(runs).records())


def emitted(board: Leaderboard, form: str, folder: Path, *, split: str = "overall") -> Path:
    (one,) = [table for (_, _, name), table in board.alone().items() if name == split]
    texts = {"csv": one.to_csv, "json": one.to_json, "markdown": one.to_markdown, "latex": one.to_latex}
    file = folder / "pumploop" / "strict" / f"{split}.{ENDINGS[form]}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(texts[form]())
    return file


@pytest.mark.parametrize("form", ENDINGS)
def test_what_is_emitted_is_read_back_whole_and_agrees(board, form, tmp_path):
    file = emitted(board, form, tmp_path)
    (table,) = read_tables(file.read_text(), form)
    assert set(table.rows) == set(LABELS)
    checked = check_table(file, board)
    assert checked.faults == ()
    assert (checked.n_tables, checked.n_rows) == (1, len(LABELS))
    auprc = {row.label: row.metrics["auprc"].mean for row in board.rows if row.split == "overall"}
    columns = {"csv": "auprc_mean", "json": "metrics.auprc.mean", "markdown": "AUPRC", "latex": "AUPRC"}
    for label, cells in table.rows.items():
        number = re.search(r"\d?\.\d+", cells[columns[form]])
        assert number is not None
        assert float(number[0]) == pytest.approx(auprc[label], abs=5e-5)


@pytest.mark.parametrize("form", ENDINGS)
def test_every_edited_digit_of_a_row_is_found(board, form, tmp_path):
    file = emitted(board, form, tmp_path)
    text = file.read_text()
    lines = text.splitlines(keepends=True)
    of_rows = [i for i, line in enumerate(lines) if is_of_a_row(form, line)]
    assert len(of_rows) >= len(LABELS)
    for i in of_rows[:: 7 if form == "json" else 1]:
        for place in list(NUMBER.finditer(lines[i]))[::3]:
            digit = str((int(place[0]) + 1) % 10)
            edited = lines[i][: place.start()] + digit + lines[i][place.end() :]
            file.write_text("".join([*lines[:i], edited, *lines[i + 1 :]]))
            assert check_table(file, board).faults, edited


def is_of_a_row(form: str, line: str) -> bool:
    if form == "json":
        return bool(re.search(r'": -?\d', line)) and "schema" not in line and "core_minutes" not in line
    return line.startswith({"csv": ("t2", "max-z", "random"), "markdown": "| ", "latex": r"\texttt"}[form]) and (
        "detector" not in line and "---" not in line
    )


@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_a_row_removed_added_twice_or_moved_is_found(board, form, tmp_path):
    file = emitted(board, form, tmp_path)
    lines = file.read_text().splitlines(keepends=True)
    first, second, *_ = [i for i, line in enumerate(lines) if is_of_a_row(form, line)]

    def faults(*changed: str) -> tuple[str, ...]:
        file.write_text("".join(changed))
        return check_table(file, board).faults

    removed = faults(*lines[:first], *lines[first + 1 :])
    assert len(removed) == 1
    assert removed[0].endswith("the store has it, the table does not")
    again = faults(*lines[:first], lines[first], *lines[first:])
    assert any("row 2 of this name" in fault for fault in again)
    other = faults(*lines[:first], lines[first].replace("t2", "t3"), *lines[first:])
    assert any(fault.startswith("row t3") and fault.endswith("the store has no such row") for fault in other)
    swapped = faults(*lines[:first], lines[second], lines[first], *lines[second + 1 :])
    assert swapped == ("the rows stand in another order than by the store",)


MARKS = [("markdown", "↓"), ("markdown", "**"), ("latex", r"$\downarrow$"), ("latex", r"\textbf"), ("csv", "ok")]


@pytest.mark.parametrize(("form", "mark"), MARKS)
def test_a_removed_mark_is_found(board, form, mark, tmp_path):
    for split in board.rows[0].records[0].splits:
        file = emitted(board, form, tmp_path, split=split)
        lines = file.read_text().splitlines(keepends=True)
        marked = [i for i, line in enumerate(lines) if is_of_a_row(form, line) and mark in line]
        if marked:
            break
    i = marked[0]
    assert check_table(file, board).faults == ()
    file.write_text("".join([*lines[:i], lines[i].replace(mark, ""), *lines[i + 1 :]]))
    assert check_table(file, board).faults


def test_a_table_of_another_protocol_or_split_is_not_taken_for_the_stores(board, tmp_path):
    for form, wrong in (("markdown", "split overall"), ("latex", "split overall"), ("json", '"split": "overall"')):
        file = emitted(board, form, tmp_path)
        file.write_text(file.read_text().replace(wrong, wrong.replace("overall", "valve9")))
        (fault,) = check_table(file, board).faults
        assert fault.endswith("the store has none of this data set, protocol and split")
    file = emitted(board, "csv", tmp_path)
    elsewhere = tmp_path / "pumploop" / "skab" / "overall.csv"
    elsewhere.parent.mkdir()
    shutil.copy(file, elsewhere)
    assert check_table(elsewhere, board).faults


def test_marks_by_the_stores_own_reports_of_checks_are_expected(runs, tmp_path, tsadbench):
    copy = shutil.copytree(runs, tmp_path / "runs")
    failed = replace(subject_of("t2"), results={"prefix": "fail"}, reasons={"prefix": "it looks ahead"})
    keep(failed, copy)
    shown = tsadbench("leaderboard", copy, "--split", "overall", "--format", "markdown").out
    assert "✗ t2 |" in shown
    (tmp_path / "table.md").write_text(shown)
    found = tsadbench("verify", copy, "--table", tmp_path / "table.md")
    assert (found.code, "0 differences" in found.out) == (0, True), found.out


def test_the_command_says_what_differs_and_what_it_could_not_compare(runs, board, tmp_path, tsadbench):
    written = tsadbench("leaderboard", runs, "--write", tmp_path / "tables")
    assert written.code == 0
    for ending in ("csv", "md", "json"):
        done = tsadbench("verify", runs, "--table", tmp_path / f"tables/pumploop/strict/overall.{ending}")
        assert (done.code, done.err) == (0, ""), done.out
        assert "0 differences" in done.out
    alias = ["--alias", "t2=Ours", "--columns", "auprc,auroc"]
    file = tmp_path / "ours.md"
    file.write_text(tsadbench("leaderboard", runs, "--split", "overall", "--format", "markdown", *alias).out)
    lacking = tsadbench("verify", runs, "--table", file, "--alias", "t2=Ours")
    assert lacking.code == 0, lacking.out
    assert "note: the table lacks columns, which were not compared: Precision, Recall" in lacking.out
    assert "row Ours: the store has no such row" in tsadbench("verify", runs, "--table", file).out
    file.write_text(re.sub(r"(\| Ours \| \D*\.)", r"\g<1>9", file.read_text()))
    edited = tsadbench("verify", runs, "--table", file, "--alias", "t2=Ours")
    assert edited.code == 1
    assert "differs: row Ours, AUPRC: '" in edited.out


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        ("hello", "x.txt", "expected a table as CSV, JSON"),
        ("{", "x.json", "expected a table as json"),
        ("", "x.md", "found none"),
    ],
)
def test_what_is_no_table_is_one_line(runs, tmp_path, tsadbench, content, name, told):
    (tmp_path / name).write_text(content)
    done = tsadbench("verify", runs, "--table", tmp_path / name)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert tsadbench("verify", runs, "--table", tmp_path / "none.md").code == 2
    assert tsadbench("verify", runs, "--table", tmp_path / name, "--redo", "1").code == 2
