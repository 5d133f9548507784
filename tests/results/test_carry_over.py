"""Committed records are carried over to today's identities, and nothing else of them changes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.helpers.plans import make_plan
from tests.helpers.scripts import load_script
from tsadbench.execution.record import Record
from tsadbench.execution.records_file import RECORDS
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.board import Leaderboard

SCRIPTS = Path(__file__).parents[2] / "leaderboards"


def script(name):
    module = load_script(SCRIPTS / f"{name}.py")
    return lambda *arguments: module.main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def carry_over():
    return script("carry_over")


@pytest.fixture(scope="module")
def emit():
    return script("emit")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store, and the lines of its records as today's code writes them."""
    store = Store.create(tmp_path_factory.mktemp("made") / "runs")
    plan = make_plan(
        ["tests.helpers.tiny:Distance", "tests.helpers.tiny:Noisy", "max-z"],
        dataset="pumploop",
        floors=False,
        seeds=2,
        contributions=False,
    )
    return store.path, [record.to_json(indent=None) for record in run_plan(plan, store)]


def old(line: str) -> str:
    """Return a record's line as it was before: under other hashes, its scored rows not counted."""
    line = re.sub(r',"rows_scored":[1-9]\d*', "", line)
    line = re.sub(r'"(trial|code_hash)":"[0-9a-f]+"', r'"\1":"0123"', line)
    return re.sub(r',"scoring":"\w+","judging":"\w+"\}$', "}", line)


@pytest.fixture
def tables(made, tmp_path):
    _, lines = made
    file = tmp_path / "pumploop" / "strict" / RECORDS
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{old(line)}\n" for line in lines))
    return file


def test_hashes_become_todays_rows_are_counted_and_nothing_else_changes(made, tables, tmp_path, carry_over, capsys):
    store, lines = made
    before = tables.read_text()
    assert "rows_scored" not in before
    assert carry_over("--tables", tmp_path, "--check", store) == 0
    assert tables.read_text() == before, "without --write nothing is written"
    assert carry_over("--tables", tmp_path, "--check", store, "--write") == 0
    assert tables.read_text() == "".join(f"{line}\n" for line in lines)
    assert carry_over("--tables", tmp_path, "--write") == 0
    assert tables.read_text() == "".join(f"{line}\n" for line in lines)
    printed = capsys.readouterr().out
    assert "pumploop/strict, tests.helpers.tiny:Noisy, seed 1: equal to the bit" in printed
    assert "pumploop/strict: 4 records carried over, 0 refused" in printed


def test_with_only_the_records_of_other_labels_stay_as_they_are(made, tables, tmp_path, carry_over, capsys):
    store, lines = made
    chosen = [line if '"label":"max-z"' in line else old(line) for line in lines]
    assert chosen != lines
    assert carry_over("--tables", tmp_path, "--only", "max", "--check", store, "--write") == 0
    assert tables.read_text() == "".join(f"{line}\n" for line in chosen)
    assert "pumploop/strict: 1 records carried over, 0 refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pattern", "replacement", "reason"),
    [
        (r'"auroc":0\.(\d)', r'"auroc":0.1\1', "fitted again it gives another result: auroc on"),
        (r'"value":(\d)', r'"value":1\1', "fitted again it gives another result: threshold of all"),
        (r'"label":"[^"]*Distance"', '"label":"distanc"', "there is no detector 'distanc'"),
        (r'"power":2', '"power":3', "parameters: recorded"),
        (r'"data_hash":"\w', '"data_hash":"x', "data: recorded"),
        (r'"numpy":"', '"numpy":"0', "versions: recorded"),
        (r'"status":"ok","reason":null', '"status":"error","reason":"no"', "status: recorded error"),
    ],
)
def test_a_record_of_another_trial_or_result_is_refused(
    made, tables, tmp_path, carry_over, capsys, pattern, replacement, reason
):
    store, _ = made
    before = tables.read_text()
    first, *rest = before.splitlines(keepends=True)
    changed = re.sub(pattern, replacement, first, count=1)
    assert changed != first
    tables.write_text(changed + "".join(rest))
    assert carry_over("--tables", tmp_path, "--check", store, "--write") == 1
    assert reason in capsys.readouterr().out
    assert tables.read_text() == changed + "".join(rest)


def test_a_record_of_another_machine_is_held_against_the_code_that_made_it(
    made, tables, tmp_path, tmp_path_factory, carry_over, capsys
):
    store, lines = made
    elsewhere = tables.read_text().replace('"auroc":0.', '"auroc":0.1')
    tables.write_text(elsewhere)
    assert carry_over("--tables", tmp_path, "--check", store) == 1
    assert carry_over("--tables", tmp_path, "--check", store, "--before", store) == 1, "not the code of the record"
    earlier = tmp_path_factory.mktemp("earlier") / "runs"
    shutil.copytree(store, earlier)
    for file in earlier.glob("*/record.json"):
        file.write_text(re.sub(r'"code_hash": "[0-9a-f]+"', '"code_hash": "0123"', file.read_text()))
    assert carry_over("--tables", tmp_path, "--check", store, "--before", earlier, "--write") == 0
    assert "equal to the bit to what the code of the record gives on the same machine" in capsys.readouterr().out
    carried = "".join(f"{line}\n" for line in lines).replace('"auroc":0.', '"auroc":0.1')
    assert tables.read_text() == carried


def test_tables_are_written_anew_from_records_alone(made, tmp_path, emit):
    _, lines = made
    folder = tmp_path / "pumploop" / "strict"
    folder.mkdir(parents=True)
    (folder / RECORDS).write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / RECORDS).write_text("not for these tables")
    assert emit("--tables", tmp_path) == 0
    records = [Record.from_json(line, "line") for line in lines]
    for (_, _, split), board in Leaderboard.from_records(records).alone().items():
        assert (folder / f"{split}.csv").read_text() == board.to_csv()
        assert (folder / f"{split}.md").read_text() == board.to_markdown()
        assert (folder / f"{split}.json").read_text() == board.to_json()
    assert (folder / RECORDS).read_text() == "".join(f"{line}\n" for line in lines)
    assert [file.name for file in (tmp_path / "paper").iterdir()] == [RECORDS]
