"""An explanation against a recording whose scores, flags and contributions are written by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.plans import make_plan, run_trial
from tsadbench import Recording
from tsadbench.analysis.explanation import explain, narrative
from tsadbench.base.prior import Edge, Prior
from tsadbench.base.protocol import Episode, EpisodeThreshold, Scored, Threshold
from tsadbench.results.trial_result import ScoredRecording, TrialResult

PRIOR = Prior((Edge("flow", "heat", mechanism="water carries heat"), Edge("speed", "flow"), Edge("heat", "speed")))
# Rows:      0    1    2    3    4    5    6    7    8    9   10   11
SCORES = [np.nan, 9.0, 1.0, 3.0, 1.0, 1.5, 4.0, 6.0, 1.0, 2.5, 1.0, 1.0]
ANOMALOUS = [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1]
TIME = 100.0 + 5.0 * np.arange(12)


class Written(TrialResult):
    """A result without a store."""

    def __init__(self, record, recordings, data):
        self.record, self.data = record, data
        self.scored = (Scored(Episode("all", (), ()), (), ()),)
        vars(self)["recordings"] = recordings  # what the cached property would find


@pytest.fixture(scope="module")
def record():
    from tests.helpers.data import make_data

    plan = make_plan(["tests.helpers.tiny:Distance"], dataset=make_data(), floors=False)
    return run_trial(plan.trials[0], plan).record


def result(
    record,
    *,
    label="tests.helpers.tiny:Distance",
    kept=True,
    look_ahead=0,
    time=TIME,
    found=None,
    prior=PRIOR,
    scores=SCORES,
    evaluated_from=2,
    causes=(),
):
    threshold = found or Threshold(
        value=2.0, method="pot", status="ok", t=1.0, level=0.98, q=1e-3, n=500, excesses=40, gamma=0.1, sigma=1.0
    )
    contributions = np.zeros((12, 3), dtype=np.float32)
    contributions[6] = [1.0, -5.0, 3.0]
    contributions[7] = [0.0, 2.0, 2.0]
    contributions[11] = [0.0, 0.0, 7.0]
    one = ScoredRecording(
        recording=Recording("r", np.zeros((12, 3)), ("flow", "speed", "heat"), time=time),
        anomalous=np.array(ANOMALOUS, dtype=bool),
        scores=np.array(scores),
        evaluated=np.arange(12) >= evaluated_from,
        episode="all",
        limits=np.full(12, threshold.value),
        contributions=contributions if kept else None,
    )
    return Written(
        record=replace(record, label=label, look_ahead=look_ahead, thresholds=(EpisodeThreshold("all", threshold),)),
        recordings={"r": one},
        data=SimpleNamespace(dataset=SimpleNamespace(prior=prior), labels=SimpleNamespace(causes={"r": causes})),
    )


def test_events_alarms_and_delays(record):
    found = explain(result(record), "r")
    first, second = found.events
    assert (first["start"], first["stop"], first["start_seconds"]) == (4, 8, 20.0)
    assert first["flagged_rows"] == 2
    assert (first["first_alarm"]["row"], first["delay_rows"], first["delay_seconds"]) == (6, 2, 10.0)
    assert (first["first_alarm"]["score"], first["first_alarm"]["ratio"]) == (4.0, 2.0)
    assert (first["highest"]["row"], first["highest"]["ratio"]) == (7, 3.0)
    # Row 1 is flagged, but not evaluated; rows 3 and 9 are false alarms, one before each event.
    assert first["before"] == {"alarms": 1, "rows": 1, "normal_rows": 2}
    assert second["before"] == {"alarms": 1, "rows": 1, "normal_rows": 2}
    assert second["first_alarm"] is None
    assert second["delay_rows"] is None
    assert second["highest"]["ratio"] == 0.5
    assert (
        found.about["false_alarms"]["alarms"],
        found.about["false_alarms"]["rows"],
        found.about["false_alarms"]["normal_rows"],
    ) == (2, 2, 4)
    assert found.about["n_evaluated"] == 10


def test_rows_that_are_not_evaluated_are_no_event(record):
    explanation = explain(result(record, evaluated_from=9), "r")
    assert [(event["start"], event["stop"]) for event in explanation.events] == [(10, 12)]
    assert explanation.about["not_evaluated"] == [(4, 8)]
    assert explanation.to_json()["not_evaluated"] == [[4, 8]]
    nothing = explain(result(record, evaluated_from=12), "r")
    assert not nothing.events


def test_sensors_are_ranked_and_their_neighbours_looked_up(record):
    found = explain(result(record), "r")
    alarm = found.events[0]["first_alarm"]
    assert alarm["sensors"] == {"heat": 0.75, "flow": 0.25, "speed": 0.0}
    assert next(iter(alarm["sensors"])) == "heat"
    assert list(found.neighbours) == ["heat", "flow"], "speed lowers the score"
    edges = {name: [(edge.source, edge.target) for edge in of_one] for name, of_one in found.neighbours.items()}
    assert edges == {"heat": [("flow", "heat"), ("heat", "speed")], "flow": [("flow", "heat"), ("speed", "flow")]}
    other = explain(result(record), "r", Prior((Edge("heat", "flow"),)))
    assert [edge.target for edge in other.neighbours["heat"]] == ["flow"]


def test_the_narrative_has_the_same_numbers(record):
    text = " ".join(narrative(explain(result(record, look_ahead=3), "r")).split())
    for part in ("1 of 2 events", "2 false alarms", "rows 4 to 7", "5 rows (25 s)", "heat (75%), flow (25%)"):
        assert part in text


def test_a_prior_that_the_label_names_is_not_opened(record, tmp_path):
    (tmp_path / "own.json").write_text(Prior((Edge("speed", "heat"),)).to_json())
    named = result(record, label=f"t2[prior={tmp_path}/own.json]")
    assert explain(named, "r").neighbours == {}, "a store may name any file"
    found = explain(named, "r", Prior.load(tmp_path / "own.json"))
    assert [edge.source for edge in found.neighbours["heat"]] == ["speed"]


@pytest.mark.parametrize(
    ("label", "state"), [("t2", "not kept"), ("random", "not offered"), ("tests.helpers.tiny:Largest", "not known")]
)
def test_why_contributions_were_not_kept(record, label, state):
    assert explain(result(record, kept=False, label=label), "r").about["contributions"] == state
