"""An explanation against a recording whose scores, flags and contributions are written by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.plans import make_plan
from tsadbench import Recording, UsageError
from tsadbench.analysis.explanation.explain import Share, explain
from tsadbench.analysis.explanation.narrative import duration, narrative
from tsadbench.base.dataset import Cause
from tsadbench.base.prior import Edge, Prior
from tsadbench.base.protocol import Episode, EpisodeThreshold, Scored, Threshold
from tsadbench.execution.trial import run_trial
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.mask_runs import mask_runs

PRIOR = Prior((Edge("flow", "heat", mechanism="water carries heat"), Edge("speed", "flow"), Edge("heat", "speed")))
# Rows:      0    1    2    3    4    5    6    7    8    9   10   11
SCORES = [np.nan, 9.0, 1.0, 3.0, 1.0, 1.5, 4.0, 6.0, 1.0, 2.5, 1.0, 1.0]
ANOMALOUS = [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1]
TIME = 100.0 + 5.0 * np.arange(12)


class Written(TrialResult):
    """A result that no store holds."""

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
        threshold=threshold.value,
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
    assert (first.start, first.stop, first.start_seconds) == (4, 8, 20.0)
    assert (first.evaluated_rows, first.flagged_rows) == (4, 2)
    assert (first.first_alarm.row, first.delay_rows, first.delay_seconds) == (6, 2, 10.0)
    assert (first.first_alarm.score, first.first_alarm.ratio) == (4.0, 2.0)
    assert (first.highest.row, first.highest.ratio) == (7, 3.0)
    # Row 1 is flagged, but not evaluated; row 3 is a false alarm, row 9 one of the next event.
    assert (first.before.alarms, first.before.rows, first.before.normal_rows) == (1, 1, 2)
    assert (second.before.alarms, second.before.rows, second.before.normal_rows) == (1, 1, 2)
    assert second.first_alarm is None
    assert second.delay_rows is None
    assert second.highest.ratio == 0.5
    assert (found.false_alarms.alarms, found.false_alarms.rows, found.false_alarms.normal_rows) == (2, 2, 4)
    assert found.n_evaluated == 10


@pytest.mark.parametrize(("look_ahead", "rows"), [(0, 2), (3, 5), (5, 7), (90, 7)])
def test_a_delay_includes_the_look_ahead_up_to_the_end_of_the_recording(record, look_ahead, rows):
    event, _ = explain(result(record, look_ahead=look_ahead), "r").events
    assert (event.delay_rows, event.delay_seconds) == (rows, 5.0 * rows)
    assert event.first_alarm.row == 6, "the row is that of the score"


def test_an_event_that_began_before_the_evaluated_rows_has_no_delay(record):
    cut = result(record, evaluated_from=5)
    first, _ = explain(cut, "r").events
    assert (first.start, first.stop, first.onset_seen, first.evaluated_rows) == (5, 8, False, 3)
    assert first.first_alarm.row == 6
    assert first.delay_rows is first.delay_seconds is None
    text = " ".join(narrative(explain(cut, "r")).split())
    assert "Its onset was not seen, so the alarm has no delay." in text
    assert "Also labelled anomalous, but not evaluated by the protocol: rows 4 to 4." in text


def test_rows_that_are_not_evaluated_are_no_event(record):
    explanation = explain(result(record, evaluated_from=9), "r")
    assert [(event.start, event.stop) for event in explanation.events] == [(10, 12)]
    assert explanation.not_evaluated == ((4, 8),)
    assert explanation.to_json()["not_evaluated"] == [[4, 8]]
    nothing = explain(result(record, evaluated_from=12), "r")
    assert nothing.events == ()
    assert "no event is evaluated; no false alarm in 0 normal rows." in " ".join(narrative(nothing).split())


def test_sensors_are_ranked_and_their_neighbours_looked_up(record):
    found = explain(result(record), "r")
    alarm = found.events[0].first_alarm
    assert alarm.sensors == (Share("heat", 0.75), Share("flow", 0.25), Share("speed", 0.0))
    assert [one.sensor for one in found.neighbours] == ["heat", "flow"], "speed lowers the score"
    heat, flow = found.neighbours
    assert [edge.source for edge in heat.driven_by] == ["flow"]
    assert [edge.target for edge in heat.drives] == ["speed"]
    assert [edge.source for edge in flow.driven_by] == ["speed"]
    other = explain(result(record), "r", Prior((Edge("heat", "flow"),)))
    assert [edge.target for edge in other.neighbours[0].drives] == ["flow"]


def test_the_prior_that_the_label_names_comes_before_the_data_sets(record, tmp_path):
    (tmp_path / "own.json").write_text(Prior((Edge("speed", "heat"),)).to_json())
    named = result(record, label=f"t2[prior={tmp_path}/own.json]")
    assert explain(named, "r").neighbours == (), "a store may name any file"
    found = explain(named, "r", trust_code=True)
    assert [edge.source for edge in found.neighbours[0].driven_by] == ["speed"]


@pytest.mark.parametrize(("look_ahead", "early"), [(0, 0), (1, 1), (3, 1)])
def test_flags_before_an_event_that_scores_which_look_ahead_may_owe_to_it(record, look_ahead, early):
    found = explain(result(record, look_ahead=look_ahead), "r")
    assert [event.early_rows for event in found.events] == [early, early], "rows 3 and 9 are flagged, 2 and 8 are not"
    assert ("as scores look ahead" in " ".join(narrative(found).split())) == bool(early)


def test_the_narrative_says_the_same(record):
    text = " ".join(narrative(explain(result(record, look_ahead=3), "r")).split())
    assert f"protocol {record.protocol} {record.protocol_version}: " in text
    assert "1 of 2 events found; 2 false alarms, 2 of 4 normal rows flagged." in text
    assert "its score exceeds 2. The threshold comes from the tail of the training scores" in text
    assert "about one normal row in 1,000" in text
    assert "Event 1, rows 4 to 7, 20 s after the recording's start." in text
    assert "Its first flagged row is 6, with a score of 4 (2 times the threshold)." in text
    assert "The alarm is raised 5 rows (25 s) late, as a score needs the next 3 rows." in text
    assert "2 of its 4 evaluated rows are flagged" in text
    assert "contributes most to the first alarm: heat (75%), flow (25%)." in text
    assert "1 false alarm before it, 1 of 2 normal rows flagged." in text
    assert "The score was already above the threshold" in text
    assert "It was missed: none of its rows is flagged. The highest score, 1 (0.5 times the threshold)" in text
    assert "heat is driven by flow: water carries heat drives speed" in text
    assert max(map(len, narrative(explain(result(record), "r")).splitlines())) <= 100


def test_what_the_data_set_knows_of_a_cause_is_said_beside_what_contributed_over_the_event(record):
    # Rows 4 to 7 in all: flow 1, speed -3, heat 5.
    causes = (Cause(3, 6, ("speed",)), Cause(6, 8, ("heat", "speed")), Cause(8, 10, ("flow",)))
    found = explain(result(record, causes=causes), "r")
    first, second = found.events
    assert first.sensors == (Share("heat", 5 / 6), Share("flow", 1 / 6), Share("speed", 0.0))
    assert (first.to_blame, second.to_blame) == (("speed", "heat"), ())
    text = " ".join(narrative(found).split())
    known = "According to the data set speed and heat are to blame."
    assert (
        f"{known} What contributes most over the whole event: heat (83%), flow (17%). Of these heat is to blame."
        in text
    )
    assert text.count("According to the data set") == 1
    wrong = " ".join(narrative(explain(result(record, causes=(Cause(4, 8, ("speed",)),)), "r")).split())
    assert (
        "set speed is to blame. What contributes most over the whole event: heat (83%), flow (17%). Of these none is"
        in wrong
    )
    blind = " ".join(narrative(explain(result(record, causes=causes, kept=False), "r")).split())
    assert known in blind
    assert "over the whole event" not in blind


def test_what_is_not_known_is_said(record):
    text = narrative(explain(result(record, kept=False), "r", trust_code=True))
    assert "--rerun no-contributions" in text
    assert "What is known of these sensors" not in text
    offered = explain(result(record, kept=False, label="tests.helpers.tiny:Largest"), "r", trust_code=True)
    assert offered.contributions == "not offered"
    assert "tests.helpers.tiny:Largest does not report it" in narrative(offered)
    unknown = explain(result(record, kept=False, label="tests.helpers.tiny:Largest"), "r")
    assert unknown.contributions == "not known"
    assert "its detector is not registered here" in " ".join(narrative(unknown).split())
    assert explain(result(record, prior=None), "r").neighbours == ()
    no_time = explain(result(record, time=None), "r")
    assert no_time.events[0].delay_seconds is None
    assert "2 rows late" in narrative(no_time)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Threshold(value=0.0, method="fixed", status="fixed"), "a constant of this floor"),
        (
            Threshold(value=3.0, method="pot", status="degenerate", t=3.0, q=1e-3, n=5, excesses=0),
            "the largest training",
        ),
        (Threshold(value=3.0, method="pot", status="quantile", t=3.0, q=1e-3, n=5, excesses=2), "a quantile of the"),
    ],
)
def test_how_the_threshold_was_found(record, found, says):
    explained = explain(result(record, found=found), "r")
    assert says in " ".join(narrative(explained).split())
    assert explained.events[0].first_alarm.ratio == (None if found.value == 0 else pytest.approx(4 / 3))


def test_a_recording_without_scores(record):
    found = explain(result(record, scores=[np.nan] * 12), "r")
    assert found.events[0].highest is None
    assert "It was missed" in narrative(found)
    json.dumps(found.to_json(), allow_nan=False)


def test_json_holds_it_all(record):
    content = json.loads(json.dumps(explain(result(record), "r").to_json(), allow_nan=False))
    assert content["schema"] == 1
    assert content["events"][0]["to_blame"] == []
    assert content["events"][0]["sensors"][0] == {"sensor": "heat", "share": pytest.approx(5 / 6)}
    assert content["events"][0]["first_alarm"]["sensors"][0] == {"sensor": "heat", "share": 0.75}
    assert content["neighbours"][0]["driven_by"][0]["mechanism"] == "water carries heat"
    assert content["threshold"]["value"] == 2.0


def test_an_unknown_recording(record):
    with pytest.raises(UsageError, match="no test recording 'rr'; did you mean 'r'"):
        explain(result(record), "rr")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (90, "90 s"), (150, "2.5 min"), (9000, "2.5 h"), (4e5, "4.63 days")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("mask", "expected"), [([], []), ([0, 0], []), ([1], [(0, 1)]), ([1, 1, 0, 1], [(0, 2), (3, 4)])]
)
def test_segments(mask, expected):
    assert mask_runs(np.array(mask, dtype=bool)) == expected
