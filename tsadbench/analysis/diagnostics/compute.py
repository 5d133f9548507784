"""Computes the diagnostics of one trial on one split from its store.

*Counts are pooled* over the split's recordings: events found of all events, false alarms per hour of all normal time,
the mean delay over all events with a delay. Affiliation's zones are pooled, too: each event counts once.
*VUS-PR is the mean* over the recordings that have rows of both classes: its buffers do not cross borders, and scores of
two fits share no scale. All of them need a score for every evaluated row of a split and are undefined otherwise. Flags
and evaluated rows come from the protocol.

Root cause: whether the sensors that contributed most to an event's scores caused it.

All events with known sensors (`tsadbench.base.dataset.Cause`) count, found or missed. Sensors are ranked by their
contributions, summed over the event's evaluated rows; the event is *hit at k* if one of the first k is to blame. Ties
are broken at random: what counts is the probability of a sensor to blame among the first k. With equal
contributions from all sensors, the result is that of chance: with N sensors, b of them to blame,
``1 - C(N - b, k) / C(N, k)``, the hypergeometric distribution's probability of at least one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from tsadbench.analysis.diagnostics.measures import affiliation, vus_pr, zones_of
from tsadbench.analysis.events import recording_events, row_seconds, summed_contributions
from tsadbench.base.dataset import Cause
from tsadbench.leaderboard.table import DIAGNOSTICS
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import BoolArray, FloatArray, mask_runs, mean_defined
from tsadbench.utils.parameters import require_known

# The values of k.
RANKS = (1, 3, 5)
NAMES = (*(f"hit_at_{k}" for k in RANKS), *(f"chance_at_{k}" for k in RANKS))


def of_result(result: TrialResult, split: str, groups: Collection[str] = ("operational",)) -> dict[str, float | None]:
    """Return the diagnostics of a trial on one split; see `of_splits`, which is cheaper for several."""
    return of_splits(result, (split,), groups)[split]


def of_splits(
    result: TrialResult, splits: Sequence[str], groups: Collection[str] = ("operational",)
) -> dict[str, dict[str, float | None]]:
    """Return a trial's diagnostics: values by name, by split.

    Names are those of docs/diagnostics.md, for the requested groups, and counts: ``n_events`` and ``n_causes`` (events
    with known causes; None unless requested). None means undefined. If an evaluated row of a split has no score, all
    but these counts are None.

    Raises a UsageError if a split or a group is unknown.
    """
    members = result.data.labels.splits
    for what, names, known in (("group of diagnostics", groups, DIAGNOSTICS), ("split", splits, tuple(members))):
        require_known(names, known, f"there is no {what}")
    chosen = {name for split in splits for name in members[split]}
    parts = {
        name: _of_recording(scored, result, groups) for name, scored in result.recordings.items() if name in chosen
    }
    return {split: _pooled([parts[name] for name in members[split] if name in parts], groups) for split in splits}


def _of_recording(scored: ScoredRecording, result: TrialResult, groups: Collection[str]) -> dict[str, Any]:
    evaluated, flagged, recording = scored.evaluated, scored.flagged, scored.recording
    causes = result.data.labels.causes.get(recording.id, ()) if "root-cause" in groups else ()
    normal, truth = evaluated & ~scored.anomalous, scored.anomalous[evaluated]
    return {
        "complete": not np.isnan(scored.scores[evaluated]).any(),
        "n_normal": int(np.count_nonzero(normal)),
        "n_flagged_normal": int(np.count_nonzero(flagged & normal)),
        "n_false_alarms": len(mask_runs(flagged & normal)),
        "row_seconds": row_seconds(recording.time),
        "events": recording_events(scored, result.record.look_ahead),
        "vus_pr": vus_pr(scored.scores[evaluated], truth) if "vus" in groups and len(truth) else None,
        "zones": zones_of(flagged[evaluated], truth) if "affiliation" in groups else [],
        "blamed": list(blamed_events(scored, causes, result.data.dataset.entities.get(recording.id, ""))),
    }


def _pooled(parts: Sequence[Mapping[str, Any]], groups: Collection[str]) -> dict[str, float | None]:
    """Return the values of a split, combined from its recordings."""
    events, zones, blamed = ([one for part in parts for one in part[name]] for name in ("events", "zones", "blamed"))
    delayed = [event for event in events if event.delay_rows is not None]
    n_normal, n_flagged, n_false_alarms = (
        sum(part[name] for part in parts) for name in ("n_normal", "n_flagged_normal", "n_false_alarms")
    )
    n_found, seconds = sum(event.found for event in events), [event.delay_seconds for event in delayed]
    timed = all(part["row_seconds"] is not None for part in parts if part["n_normal"])
    hours = sum(part["n_normal"] * (part["row_seconds"] or 0.0) for part in parts) / 3600
    precision, recall, f1 = affiliation(zones)
    found = {
        "found": _ratio(n_found, len(events)),
        "already_on": _ratio(sum(event.already_on for event in events), sum(event.onset_seen for event in events)),
        "delay_rows": mean_defined(event.delay_rows for event in delayed),
        "delay_seconds": None if None in seconds else mean_defined(seconds),
        "false_alarms_per_hour": _ratio(n_false_alarms, hours) if timed else None,
        "false_alarms_per_1000_rows": _ratio(1000 * n_false_alarms, n_normal),
        "false_alarm_share": _ratio(n_flagged, n_normal),
        "vus_pr": mean_defined(part["vus_pr"] for part in parts),
        **{"affiliation_precision": precision, "affiliation_recall": recall, "affiliation_f1": f1},
        **root_cause(blamed),
    }
    complete = all(part["complete"] for part in parts)
    return {
        "n_events": len(events),
        "n_causes": len(blamed) if "root-cause" in groups else None,
        **{name: found.get(name) if complete else None for group in groups for name in DIAGNOSTICS[group]},
    }


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def root_cause(events: Sequence[Mapping[str, float | str]]) -> dict[str, float | None]:
    """Return hit rates and chance levels, means over each entity's events, then over entities; None without events.

    ``events`` are those of `blamed_events`. The hit rates are None if an event has no contributions.
    """
    if not events:
        return dict.fromkeys(NAMES)
    values = pd.DataFrame(events)
    means = values.groupby("entity").mean().mean()
    return {name: None if values[name].hasnans else float(means[name]) for name in NAMES}


def blamed_events(
    scored: ScoredRecording, causes: Sequence[Cause], entity: str = ""
) -> Iterator[dict[str, float | str]]:
    """Yield a recording's events with known sensors and at least one evaluated row.

    ``hit_at_k`` is the chance of a hit: 0 or 1 without ties, NaN if contributions were not kept. ``chance_at_k`` is the
    chance for a random order of all sensors.
    """
    for cause in causes:
        rows = slice(cause.start, cause.stop)
        evaluated = scored.evaluated[rows]
        if evaluated.any():
            to_blame = np.isin(scored.recording.sensors, cause.sensors)
            hits: Sequence[float] = [np.nan] * len(RANKS)
            if scored.contributions is not None:
                hits = hit_chances(summed_contributions(scored.contributions[rows][evaluated]), to_blame)
            chances = hit_chances(np.zeros(len(to_blame)), to_blame)
            yield {"entity": entity, **dict(zip(NAMES, (*hits, *chances), strict=True))}


def hit_chances(sums: FloatArray, to_blame: BoolArray, ranks: Sequence[int] = RANKS) -> tuple[float, ...]:
    """Return, per rank k, the chance that one of the k sensors with the largest sums [n_sensors] is to blame.

    The second of three sensors is to blame and ties with the third for first place:

    >>> hit_chances(np.array([1.0, 5.0, 5.0]), np.array([False, True, False]), (1, 2))
    (0.5, 1.0)
    """
    found = []
    for k in (min(k, len(sums)) for k in ranks):
        last = np.sort(sums)[-k]
        before, tied = sums > last, sums == last
        places = k - int(before.sum())
        missed = comb(int((tied & ~to_blame).sum()), places) / comb(int(tied.sum()), places)
        found.append(1.0 if (before & to_blame).any() else 1 - missed)
    return tuple(found)
