"""What the page says beyond one table: significance, firmness of ranks, data sets together, times and events."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from tests.helpers.reported import START
from tests.helpers.synthetic_store import synthetic_store
from tsadbench.analysis.significance.rank import rank
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.leaderboard.presentation import Presentation
from tsadbench.reporting.html import comparisons
from tsadbench.reporting.html.build import report_content
from tsadbench.reporting.html.series import Series
from tsadbench.results.trial_result import TrialResult


def numbers(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(float)


def test_how_firm_ranks_are_stands_there_if_it_is_asked_for_and_is_what_rank_says(reported_store):
    for board in reported_store.content["boards"]:
        data = reported_store.data[board["dataset"]]
        found = rank([reported_store.store], dataset=data, stability=True, splits=("overall",))
        (ranking,) = found.rankings
        title, header, rows = ranking.table
        assert board["stability"]["tables"] == [{"title": title, "header": header, "rows": rows}]
        assert board["stability"]["legend"] == found.legend
        assert "90 % interval" in header


def test_named_detectors_are_compared_and_too_few_say_so(reported_store):
    load = reported_store.data.__getitem__
    (board, _) = report_content(reported_store.store, load, labels=["t2", "random"])["boards"]
    assert [row[0] for row in board["significance"]["tables"][0]["rows"]] == ["t2", "random"]
    assert board["significance"]["notes"][0] == "These are the detectors that --detector names."
    (board, _) = report_content(reported_store.store, load, labels=["t2"])["boards"]
    assert board["significance"] == {"missing": "Two detectors or more can be compared, found 1."}


def test_fewer_than_six_sessions_are_described_not_tested(reported_store):
    data = reported_store.data["plant"]
    board = reported_store.content["boards"][0]
    some = [row for row in _rows(reported_store) if row.split == "some" and row.dataset == "plant"]
    found = comparisons.significance(reported_store.store, data, some, (), Presentation())
    assert (board["significance"]["tested"], found["tested"]) == (True, False)
    assert "Described, not tested: 2 sessions are too few" in found["conclusions"][0]


def _rows(reported_store):
    from tsadbench import Leaderboard

    return Leaderboard.from_records(reported_store.store.readable()).rows


def test_a_store_of_one_data_set_is_ranked_with_the_committed_rows_of_its_suites(tmp_path):
    store = synthetic_store(tmp_path / "runs", 30, [("pumploop", "strict")])
    data = load_dataset("pumploop")(DataOptions())
    ranks = report_content(store, lambda _: data)["ranks"]
    assert [one["about"].partition(":")[0] for one in ranks] == ["suite plants", "suite all"]
    assert {"skab", "tep", "pumploop"} <= {*ranks[0]["header"]}
    assert any("t2" in row for row in ranks[0]["rows"])


@pytest.mark.parametrize(("share", "thinned"), [(1.0, False), (1e-6, True)])
def test_a_recording_holds_its_clock_its_rows_and_its_events(reported_store, share, thinned):
    data = reported_store.data["plant"]
    record = next(one for one in reported_store.store.records() if (one.dataset, one.label) == ("plant", "t2"))
    series = Series(data, 1, 0, share)
    series.add("t2", TrialResult(record, reported_store.store, data))
    by_id = {one["id"]: one for one in series.content()}
    run, calm, clockless = by_id["run 4"], by_id["calm"], by_id["clockless"]
    assert (run["clock"], clockless["clock"]) == (START + 4 * 86400, None)
    assert (run["timed"], clockless["timed"]) == (True, False)
    assert (run["events"], run["n_events"], calm["events"]) == ([[100.0, 140.0]], 1, [])
    (event,) = run["detectors"]["t2"]["events"]
    assert event["found"]
    assert event["delay_seconds"] == event["delay_rows"] >= 0
    assert calm["detectors"]["t2"]["events"] == []
    if thinned:
        rows = numbers(run["rows"])
        assert len(rows) == len(numbers(run["time"])) < 240
        assert (rows[0], rows[-1]) == (0, 239)
    else:
        assert run["rows"] is None
