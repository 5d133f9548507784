from __future__ import annotations

from dataclasses import replace

from tests.helpers.records import record
from tsadbench.analysis.significance.caveats import on_detectors
from tsadbench.base.replay import Replay
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


def test_what_the_seal_and_the_replay_audit_mark_is_said():
    found = Replay(copy="forked", rows=200, correlation=0.4)
    trials = [
        replace(record("fine"), seal="sealed"),
        replace(record("counts"), seal="sealed", replay=found),
        replace(record("open"), seal_reason="no Landlock"),
    ]
    rows = [Row(records=(one,), split="overall", metrics={}) for one in trials]
    assert list(on_detectors(rows)) == [
        "counts: does not forget, out of the ranking; 200 rows scored again, copy: forked, rank correlation 0.4.",
        "open: guarded: no Landlock.",
    ]
    assert list(on_detectors(rows[:1])) == []
