from __future__ import annotations

from dataclasses import replace

from tests.helpers.records import record
from tsadbench.analysis.significance.caveats import on_detectors
from tsadbench.leaderboard.ranking import Row


def test_what_failed_leaks_or_is_silent_is_named():
    silent = record("silent")
    splits = {name: replace(one, coverage=0.995) for name, one in silent.splits.items()}
    trials = [
        record("fine"),
        record("bad", status="timeout"),
        replace(record("cheat"), leaky="statistics of the scored rows"),
        replace(silent, splits=splits),
    ]
    bad, cheat, quiet = on_detectors([Row(records=(one,), split="overall", metrics={}) for one in trials])
    assert bad.startswith("bad ")
    assert cheat == "cheat is leaky, only to compare: it uses the statistics of the scored rows."
    assert quiet == (
        "silent left 0.50% of the evaluated rows of split overall without a score: they count as the worst case."
    )
