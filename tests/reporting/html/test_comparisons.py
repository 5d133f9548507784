"""What the page says beyond one table: significance, firmness of ranks, data sets together, times and events."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from tests.helpers.reported import START
from tsadbench.analysis.significance.compare import compare
from tsadbench.analysis.significance.rank import rank
from tsadbench.reporting.html.series import Series
from tsadbench.results.trial_result import TrialResult


def numbers(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(float)


def test_how_firm_ranks_are_stands_there_if_it_is_asked_for_and_is_what_rank_says(reported_store):
    for board in reported_store.content["boards"]:
        data = reported_store.data[board["dataset"]]
        found = rank([reported_store.store], dataset=data, stability=True, splits=("overall",))
        (ranking,) = found.rankings
        (table,) = ranking.tables
        held = {"title": table.title, "header": table.header, "rows": table.cells()}
        assert board["stability"]["tables"] == [held]
        assert [board["stability"]["legend"], *board["stability"]["notes"]] == found.sentences
        assert "90 % of ranks" in table.header


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


def test_significance_is_what_compare_says(reported_store):
    board = reported_store.content["boards"][0]
    labels = [row[0] for row in board["significance"]["tables"][0]["rows"]]
    found = compare(reported_store.store, labels, dataset=reported_store.data[board["dataset"]], split="overall")
    held = [(one["title"], one["header"], one["rows"]) for one in board["significance"]["tables"]]
    assert held == [(table.title, table.header, table.cells()) for table in found.tables]
