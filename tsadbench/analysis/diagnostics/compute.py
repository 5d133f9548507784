"""The diagnostics of one trial on one split, from what its store holds.

*Counts are pooled* over the split's recordings: events found of all events, false alarms per hour of all normal time,
the mean delay over all events that have one. So are affiliation's zones: each event counts once, whichever recording
holds it. *VUS-PR is the mean* over the recordings that have rows of both classes: its buffers do not cross borders,
and scores of two fits share no scale. All of them need a score for every evaluated row of a split: a detector that
leaves rows out has none there. Nothing here sets a threshold or chooses a row: flags and evaluated rows are the
protocol's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.analysis.diagnostics.affiliation import Affiliation, Zone, zones_of
from tsadbench.analysis.diagnostics.root_cause import BlamedEvent, RootCause, blamed_events
from tsadbench.analysis.diagnostics.vus import vus_pr
from tsadbench.analysis.events import Delay, Event, delays_of, false_alarms_of, recording_events, row_seconds
from tsadbench.errors import UsageError
from tsadbench.leaderboard.columns import DIAGNOSTICS, GROUPS
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.parameters import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """What a trial's flags and scores are worth to an operator, on one split; None where undefined or not asked for.

    If an evaluated row of the split has no score, all are None but the numbers of recordings and events, and the speed.
    Recordings count if they have evaluated rows. An event is a run of anomalous evaluated rows; it is found if one is
    flagged. ``already_on`` is the share of the events whose onset was seen at which the alarm was already on. The
    delay, look-ahead included, is the mean over the ``n_delays`` found events whose onset was seen; missed events have
    none. A false alarm is a run of flagged normal rows; ``false_alarm_share``, the share of normal rows that are
    flagged, shows one that never ends. Numbers per second and hour are None if a recording has no time. ``vus_pr`` is
    the mean over the recordings with rows of both classes. ``hit_at_k`` is how often one of the k sensors that
    contributed most to an event with known causes is to blame (mean over an entity's events, then over entities),
    ``chance_at_k`` what a random order of the sensors gets.
    """

    n_recordings: int
    n_events: int
    rows_per_second: float | None
    n_found: int | None = None
    found: float | None = None
    already_on: float | None = None
    n_delays: int | None = None
    delay_rows: float | None = None
    delay_seconds: float | None = None
    n_false_alarms: int | None = None
    false_alarms_per_hour: float | None = None
    false_alarms_per_1000_rows: float | None = None
    false_alarm_share: float | None = None
    vus_pr: float | None = None
    affiliation_precision: float | None = None
    affiliation_recall: float | None = None
    affiliation_f1: float | None = None
    n_causes: int | None = None
    hit_at_1: float | None = None
    hit_at_3: float | None = None
    hit_at_5: float | None = None
    chance_at_1: float | None = None
    chance_at_3: float | None = None
    chance_at_5: float | None = None

    def values(self, groups: Collection[str] = GROUPS) -> dict[str, float | None]:
        """Return the diagnostics of some groups by name, in the order of their columns."""
        return {column.name: getattr(self, column.name) for column in DIAGNOSTICS if column.group in groups}


def of_result(result: TrialResult, split: str, groups: Collection[str] = ("operational",)) -> Diagnostics:
    """Return the diagnostics of a trial on one split; `of_splits` is cheaper for several.

    A UsageError if the split or a group is not known.
    """
    return of_splits(result, (split,), groups)[split]


def of_splits(
    result: TrialResult,
    splits: Sequence[str],
    groups: Collection[str] = ("operational",),
) -> dict[str, Diagnostics]:
    """Return the diagnostics of a trial by split; each recording is computed once. Parameters as for `of_result`."""
    _check_names("group of diagnostics", groups, GROUPS)
    members = result.data.labels.splits
    _check_names("split", splits, tuple(members))
    chosen = {name for split in splits for name in members[split]}
    parts = {
        name: _of_recording(scored, result, groups) for name, scored in result.recordings.items() if name in chosen
    }
    speed = result.record.rows_per_second
    return {
        split: _pooled([parts[name] for name in members[split] if name in parts], speed, groups) for split in splits
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfRecording:
    """What one recording adds to the numbers of its splits."""

    complete: bool
    n_normal: int
    n_flagged_normal: int
    n_false_alarms: int
    row_seconds: float | None
    events: tuple[Event, ...]
    delays: tuple[Delay, ...]
    vus_pr: float | None
    zones: tuple[Zone, ...]
    blamed: tuple[BlamedEvent, ...]


def _of_recording(scored: ScoredRecording, result: TrialResult, groups: Collection[str]) -> _OfRecording:
    evaluated, flagged, recording = scored.evaluated, scored.flagged, scored.recording
    events = recording_events(scored)
    delays = delays_of(events, recording.n_rows, recording.time, result.record.look_ahead)
    causes = result.data.labels.causes.get(recording.id, ()) if "root-cause" in groups else ()
    normal = evaluated & ~scored.anomalous
    truth = scored.anomalous[evaluated]
    return _OfRecording(
        complete=not np.isnan(scored.scores[evaluated]).any(),
        n_normal=int(np.count_nonzero(normal)),
        n_flagged_normal=int(np.count_nonzero(flagged & normal)),
        n_false_alarms=len(false_alarms_of(scored.anomalous, evaluated, flagged)),
        row_seconds=row_seconds(recording.time),
        events=events,
        delays=tuple(delay for delay in delays if delay is not None),
        vus_pr=vus_pr(scored.scores[evaluated], truth) if "vus" in groups and len(truth) else None,
        zones=zones_of(flagged[evaluated], truth) if "affiliation" in groups else (),
        blamed=tuple(blamed_events(scored, causes, result.data.dataset.entities.get(recording.id, ""))),
    )


def _pooled(parts: Sequence[_OfRecording], speed: float | None, groups: Collection[str]) -> Diagnostics:
    events = [event for part in parts for event in part.events]
    n_recordings = sum(bool(part.n_normal or part.events) for part in parts)
    blamed = [event for part in parts for event in part.blamed]
    n_causes = len(blamed) if "root-cause" in groups else None
    if not all(part.complete for part in parts):
        return Diagnostics(
            n_recordings=n_recordings,
            n_events=len(events),
            rows_per_second=speed,
            n_causes=n_causes,
        )
    n_found = sum(event.found for event in events)
    delays = [delay for part in parts for delay in part.delays]
    seconds = [delay.seconds for delay in delays if delay.seconds is not None]
    n_normal = sum(part.n_normal for part in parts)
    n_false_alarms = sum(part.n_false_alarms for part in parts)
    affiliation = Affiliation.of(zone for part in parts for zone in part.zones)
    root_cause = RootCause.of(blamed)
    return Diagnostics(
        n_recordings=n_recordings,
        n_events=len(events),
        n_found=n_found,
        found=_ratio(n_found, len(events)),
        already_on=_ratio(sum(event.already_on for event in events), sum(event.onset_seen for event in events)),
        n_delays=len(delays),
        delay_rows=_mean([delay.rows for delay in delays]),
        delay_seconds=_mean(seconds) if len(seconds) == len(delays) else None,
        n_false_alarms=n_false_alarms,
        false_alarms_per_hour=_ratio(n_false_alarms, _normal_hours(parts)),
        false_alarms_per_1000_rows=_ratio(1000 * n_false_alarms, n_normal),
        false_alarm_share=_ratio(sum(part.n_flagged_normal for part in parts), n_normal),
        rows_per_second=speed,
        vus_pr=_mean([part.vus_pr for part in parts if part.vus_pr is not None]),
        affiliation_precision=affiliation.precision,
        affiliation_recall=affiliation.recall,
        affiliation_f1=affiliation.f1,
        n_causes=n_causes,
        hit_at_1=root_cause.hits[0],
        hit_at_3=root_cause.hits[1],
        hit_at_5=root_cause.hits[2],
        chance_at_1=root_cause.chances[0],
        chance_at_3=root_cause.chances[1],
        chance_at_5=root_cause.chances[2],
    )


def _normal_hours(parts: Sequence[_OfRecording]) -> float | None:
    """Return the hours of normal rows; None if a recording that has some has no time."""
    hours = 0.0
    for part in parts:
        if part.n_normal and part.row_seconds is None:
            return None
        hours += part.n_normal * (part.row_seconds or 0.0) / 3600
    return hours


def _ratio(part: float, whole: float | None) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _check_names(what: str, names: Collection[str], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"there is no {what} {name!r}{nearest(name, known)}")
