"""Tables on narrow terminals: nothing is cut, and what is the same everywhere stands in the title."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from tests.helpers.records import record
from tsadbench import Leaderboard
from tsadbench.execution.record import read_records
from tsadbench.leaderboard.terminal import terminal
from tsadbench.utils.files import LEADERBOARDS


def shown(board: Leaderboard, width: int) -> str:
    output = io.StringIO()
    console = Console(file=output, width=width)
    for table in terminal(board.rows, width):
        console.print(table)
    return output.getvalue()


@pytest.fixture(scope="module")
def committed() -> Leaderboard:
    return Leaderboard.from_records(read_records(LEADERBOARDS / "asd" / "strict" / "records.jsonl"))


@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_names_and_deviations_stay_whole(committed, width):
    text = shown(committed, width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    names = {row.label for row in committed.rows if row.ok and not row.floor}
    assert "dprgm[max_steps=200,node_weights=off]" in names
    for name in names:
        assert all(part in text for part in re.split(r"(?<=[,\[])", name)), name


@pytest.mark.parametrize("width", [80, 240])
def test_means_have_their_whole_deviation(width):
    seeds = [(0, 0.81, 0.7), (1, 0.89, 0.72), (2, 0.85, 0.71)]
    board = Leaderboard.from_records([record("noisy", seed, auroc=a, auprc=p) for seed, a, p in seeds])
    text = shown(board, width)
    # statistics.stdev of the three
    assert ".850(.040)" in text or ".8500(.0400)" in text
    assert ".710(.010)" in text or ".7100(.0100)" in text
