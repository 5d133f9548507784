"""`tsadbench verify --table`: a table in a file against the store, as CSV and as Markdown."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.helpers.plans import make_plan
from tsadbench.errors import UsageError
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.regression import check_table

LABELS = ["t2", "max-z", "random"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("table") / "runs"
    run_plan(make_plan(LABELS, dataset="pumploop", floors=False, seeds=2), Store.create(folder))
    return folder


@pytest.fixture(scope="module")
def board(runs) -> Leaderboard:
    return Leaderboard.from_records(Store.open(runs).records(), ["overall"])


@pytest.fixture(scope="module")
def written(board, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    board.write_tables(folder)
    return folder


@pytest.fixture(params=["csv", "md"])
def file(request, written, tmp_path) -> Path:
    """Return a copy of the table of all test recordings."""
    return Path(shutil.copy(written / f"pumploop/strict/overall.{request.param}", tmp_path))


def test_a_true_table_has_no_difference(board, file):
    faults, n_cells = check_table(file, board)
    assert faults == []
    assert n_cells >= 10 * len(LABELS)


def test_every_changed_digit_is_found_and_named(board, file):
    text = file.read_text()
    (row,) = re.findall(r"^(?:\| \S+ \| t2 \||.*,t2,).*", text, re.M)
    digits = [found.start() for found in re.finditer(r"\d", row) if found.start() > row.index("t2") + 1]
    assert len(digits) > 40
    for place in digits[::7]:
        edited = row[:place] + str((int(row[place]) + 1) % 10) + row[place + 1 :]
        file.write_text(text.replace(row, edited))
        (fault,) = check_table(file, board)[0]
        assert fault.startswith("row t2, ")


def test_missing_renamed_and_repeated_rows_are_found(board, file):
    text = file.read_text()
    (row,) = re.findall(r"^(?:\| \S+ \| t2 \||.*,t2,).*\n", text, re.M)
    for changed, named in (
        (text.replace(row, ""), ["t2"]),
        (text.replace(row, row.replace("t2", "t3")), ["t2", "t3"]),
        (text.replace(row, row + row), ["t2"]),
    ):
        file.write_text(changed)
        assert [fault.split(":")[0] for fault in check_table(file, board)[0]] == [f"row {name}" for name in named]


def test_fewer_digits_and_fewer_columns_agree_and_other_columns_do_not(board, tmp_path):
    frame = board.to_frame()[["dataset", "protocol", "split", "detector", "auprc_mean"]]
    short = tmp_path / "short.csv"
    frame.round(3).to_csv(short, index=False)
    assert check_table(short, board) == ([], len(LABELS))
    frame.assign(luck=1).to_csv(short, index=False)
    assert [fault.split(":")[0] for fault in check_table(short, board)[0]] == ["column luck"]


def test_a_file_that_is_not_a_table_of_the_store_is_refused(board, file, tmp_path):
    for name, content in (("x.txt", "hello"), ("x.md", ""), ("x.csv", "a,b\n1,2\n")):
        (tmp_path / name).write_text(content)
        with pytest.raises(UsageError, match=name):
            check_table(tmp_path / name, board)
    file.write_text(re.sub("(split |,)overall,", r"\1other,", file.read_text()))
    with pytest.raises(UsageError, match=file.name):
        check_table(file, board)


def test_the_command_ends_with_1_if_the_table_was_edited(runs, file, tsadbench):
    assert tsadbench("verify", runs, "--table", file).code == 0
    file.write_text(file.read_text().replace("max-z", "max-y"))
    assert tsadbench("verify", runs, "--table", file).code == 1
