"""leaderboards/replace.py: trials of a store replace committed ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.plans import make_plan
from tests.helpers.scripts import load_script
from tsadbench import Leaderboard
from tsadbench.base.dataset import DataOptions
from tsadbench.cli.actions.board import write_unit_values
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.records_file import RECORDS
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.results.unit_values import RECORDINGS
from tsadbench.utils.shipped_tables import LEADERBOARDS

replace = load_script(LEADERBOARDS / "replace.py")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    store = Store.create(tmp_path_factory.mktemp("stores") / "runs")
    run_plan(make_plan(["max-z", "random"], dataset="pumploop", seeds=(0, 1), floors=False, contributions=False), store)
    return store


@pytest.fixture
def tables(store, tmp_path) -> Path:
    board = Leaderboard.from_records(store.readable())
    board.write(tmp_path)
    write_unit_values(board, store, lambda name: load_dataset(name)(DataOptions()), tmp_path)
    return tmp_path


def test_another_trial_is_replaced_with_its_metrics_by_recording_and_others_stay(store, tables):
    files = [tables / "pumploop" / "strict" / name for name in (RECORDS, RECORDINGS)]
    before = [file.read_text() for file in files]
    assert replace.main([str(store.path), "--tables", str(tables), "--write"]) == 0
    assert [file.read_text() for file in files] == before

    records = [json.loads(line) for line in before[0].splitlines()]
    (older,) = [one for one in records if one["label"] == "random" and one["seed"] == 1]
    edited = before[0].replace(older["trial"], "0" * len(older["trial"]))
    files[0].write_text(edited)
    files[1].write_text("".join(f"{line}\n" for line in before[1].splitlines() if '"random","seed":1' not in line))
    assert replace.main([str(store.path), "--tables", str(tables)]) == 0
    assert files[0].read_text() == edited
    assert replace.main([str(store.path), "--tables", str(tables), "--write"]) == 0
    assert [file.read_text() for file in files] == before


def test_a_table_of_other_data_is_refused(store, tables, capsys):
    files = [tables / "pumploop" / "strict" / name for name in (RECORDS, RECORDINGS)]
    for file in files:
        text = file.read_text().replace('"data_hash":"', '"data_hash":"00')
        file.write_text(text.replace('"trial":"', '"trial":"ff'))
    before = [file.read_text() for file in files]
    assert replace.main([str(store.path), "--tables", str(tables), "--write"]) == 2
    assert "data_hash is not that of the committed table" in capsys.readouterr().err
    assert [file.read_text() for file in files] == before
