"""Tables of a data set with entities: means and spreads over entities, next to tables without entities."""

from __future__ import annotations

import csv
import io
import json
import statistics

import pytest

from tests.helpers.machines import DISTANCE, MACHINES, NOISY, Made, made_machines
from tests.helpers.records import record
from tsadbench.leaderboard.board import Leaderboard


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return made_machines(tmp_path_factory.mktemp("made"), DISTANCE, NOISY, seeds=3)


@pytest.fixture
def board(made) -> Leaderboard:
    return Leaderboard.from_records(made.records, ["overall"])


def spread(made: Made, label: str, metric: str) -> float:
    """Return the deviation over entities of their means over seeds, by hand."""
    trials = [one.splits["overall"].entities for one in made.records if one.label == label]
    by_entity = [[trial[machine][metric] for trial in trials] for machine in MACHINES]
    return statistics.stdev(statistics.mean(values) for values in by_entity if None not in values)


def test_json_has_the_metrics_of_each_entity_and_their_spread(made, board):
    rows = {row["label"]: row for row in json.loads(board.to_json())["rows"]}
    noisy = rows[NOISY]
    of_beta = [one.splits["overall"].entities["beta"]["auroc"] for one in made.records if one.label == NOISY]
    assert list(noisy["entities"]) == list(MACHINES)
    assert noisy["entities"]["beta"]["auroc"] == pytest.approx(statistics.mean(of_beta))
    assert noisy["entities"]["gamma"]["auroc"] is None
    for label in (DISTANCE, NOISY):
        for metric in ("auroc", "mcc", "flagged"):
            assert rows[label][f"{metric}_entity_std"] == pytest.approx(spread(made, label, metric))
        means = [one["auprc"] for one in rows[label]["entities"].values() if one["auprc"] is not None]
        assert rows[label]["metrics"]["auprc"]["mean"] == pytest.approx(statistics.mean(means))


def test_csv_has_the_spread_before_the_costs_in_one_table_and_in_several(made, board):
    (header, *lines) = csv.reader(io.StringIO(board.to_csv()))
    names = [f"{metric}_entity_std" for metric in ("precision", "recall", "prac_f1", "mcc", "auroc", "auprc", "bf_f1")]
    assert header[header.index("replay") + 1 :][:7] == names
    assert header[-4:] == ["rows_per_second", "fit_seconds", "score_seconds", "peak_memory_mib"]
    row = dict(zip(header, next(line for line in lines if NOISY in line), strict=True))
    assert float(row["auroc_entity_std"]) == pytest.approx(spread(made, NOISY, "auroc"))
    joined = Leaderboard.joined([Leaderboard.from_records([record("pca")]), board])
    first, *_ = csv.DictReader(io.StringIO(joined.to_csv()))
    assert (first["detector"], first["auroc_entity_std"]) == ("pca", "")
