"""An explanation and the diagnostics of one trial report the same events, delays and false alarms."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.flags import FLAGGED, make_dataset
from tsadbench.analysis.diagnostics import of_result
from tsadbench.analysis.explanation.explain import explain
from tsadbench.results.trial_result import TrialResult

NONE = {name: "." * len(text) for name, text in FLAGGED.items()}
ALL = {name: "x" * len(text) for name, text in FLAGGED.items()}


@pytest.mark.parametrize("timeless", [(), ("a", "b", "c")], ids=["time", "no time"])
@pytest.mark.parametrize("look_ahead", [0, 2, 30])
@pytest.mark.parametrize(
    ("flagged", "protocol"),
    [
        pytest.param(FLAGGED, "strict[warm_up=2]", id="found, missed and early"),
        pytest.param(FLAGGED, "strict[warm_up=6]", id="an event cut by the evaluated rows"),
        pytest.param(NONE, "strict[warm_up=2]", id="no alarm"),
        pytest.param(ALL, "strict[warm_up=2]", id="always on"),
    ],
)
def test_explain_and_diagnostics_agree(add, store, flagged, protocol, look_ahead, timeless):
    data = make_dataset(timeless=timeless)
    result = TrialResult(
        add(data, flagged, label="tests.helpers.tiny:Distance", protocol=protocol, look_ahead=look_ahead), store, data
    )
    n_delays = 0
    for name in "abc":
        explanation, diagnostics = explain(result, name), of_result(result, name)
        delays = [event for event in explanation.events if event.delay_rows is not None]
        n_delays += len(delays)
        assert len(explanation.events) == diagnostics.n_events
        assert sum(event.first_alarm is not None for event in explanation.events) == diagnostics.n_found
        assert len(delays) == diagnostics.n_delays
        if delays:
            assert np.mean([event.delay_rows for event in delays]) == diagnostics.delay_rows
            seconds = [event.delay_seconds for event in delays]
            assert (None if timeless else np.mean(seconds)) == diagnostics.delay_seconds
        assert explanation.false_alarms.alarms == diagnostics.n_false_alarms
        normal = explanation.false_alarms.normal_rows
        assert (explanation.false_alarms.rows / normal if normal else None) == diagnostics.false_alarm_share
    assert (n_delays == 0) == (flagged is NONE or protocol == "strict[warm_up=6]")
