"""The diagnostics of one trial on one split, from what its store holds.

*Counts are pooled* over the split's recordings: events found of all events, false alarms per hour of all normal time,
the mean delay over all events that have one. So are affiliation's zones: each event counts once, whichever recording it
stands in. *VUS-PR is the mean* over the recordings that have rows of both classes: its buffers do not cross borders,
and scores of two fits share no scale. Nothing here sets a threshold or chooses a row: flags and evaluated rows are the
protocol's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.analysis.diagnostics.affiliation import Affiliation, Zone, zones_of
from tsadbench.analysis.diagnostics.vus import VUS_BUFFER, check_buffer, vus_pr
from tsadbench.analysis.events import Event, delay_rows, events_of, false_alarms_of, row_seconds
from tsadbench.errors import UsageError
from tsadbench.leaderboard.columns import DIAGNOSTICS, GROUPS
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.parameters import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """What a trial's flags and scores are worth to an operator, on one split; None where undefined or not asked for.

    Parameters
    ----------
    n_recordings
        The split's recordings that have evaluated rows.
    n_events, n_found
        Runs of anomalous evaluated rows, and those of them in which a row is flagged.
    found
        Their share; None without events.
    already_on
        Share of the events, of those whose onset was seen, at whose onset the alarm was on already: finding these is no
        merit, and their delay is 0.
    n_delays
        Found events whose onset was seen: those that the delay is over.
    delay_rows, delay_seconds
        Mean from the onset to the alarm, the detector's look-ahead included. Missed events have no delay: read it
        beside ``found``. Seconds are None where a recording has no time.
    n_false_alarms
        Runs of flagged normal rows.
    false_alarms_per_hour, false_alarms_per_1000_rows
        Their number per hour of normal time (None where a recording has no time) and per 1000 normal rows.
    false_alarm_share
        Share of the normal rows that are flagged: one false alarm that never ends is one, too.
    rows_per_second
        Training and test rows scored per second of wall clock; the same on every split.
    vus_pr, vus_buffer
        Mean VUS-PR over the recordings with rows of both classes, and the largest buffer in rows.
    affiliation_precision, affiliation_recall, affiliation_f1
        Over all events; precision is None where no event's zone holds a flagged row.
    """

    n_recordings: int
    n_events: int
    n_found: int
    found: float | None
    already_on: float | None
    n_delays: int
    delay_rows: float | None
    delay_seconds: float | None
    n_false_alarms: int
    false_alarms_per_hour: float | None
    false_alarms_per_1000_rows: float | None
    false_alarm_share: float | None
    rows_per_second: float | None
    vus_pr: float | None = None
    vus_buffer: int | None = None
    affiliation_precision: float | None = None
    affiliation_recall: float | None = None
    affiliation_f1: float | None = None

    def values(self, groups: Collection[str] = GROUPS) -> dict[str, float | None]:
        """Return the diagnostics of some groups by name, in the catalogue's order."""
        return {one.name: getattr(self, one.name) for one in DIAGNOSTICS if one.group in groups}


def of_result(
    result: TrialResult, split: str, groups: Collection[str] = ("operational",), *, vus_buffer: int = VUS_BUFFER
) -> Diagnostics:
    """Return the diagnostics of a trial on one split; `of_splits` is cheaper for several.

    Parameters
    ----------
    result
        The trial beside its data.
    split
        One of the data set's.
    groups
        Those of `GROUPS` to compute; the others' fields are None. The operational ones always come along.
    vus_buffer
        The largest buffer of VUS-PR, in rows.

    Raises
    ------
    UsageError
        If the split or a group is not known, or the buffer is not an integer of at least 0.
    """
    return of_splits(result, (split,), groups, vus_buffer=vus_buffer)[split]


def of_splits(
    result: TrialResult,
    splits: Sequence[str],
    groups: Collection[str] = ("operational",),
    *,
    vus_buffer: int = VUS_BUFFER,
) -> dict[str, Diagnostics]:
    """Return the diagnostics of a trial by split; each recording is looked at once. Parameters as for `of_result`."""
    _check_names("group of diagnostics", groups, GROUPS)
    members = result.data.labels.splits
    _check_names("split", splits, tuple(members))
    check_buffer(vus_buffer)
    wanted = dict.fromkeys(name for split in splits for name in members[split] if name in result.recordings)
    looks = {name: _look(result.recordings[name], result.record.look_ahead, groups, vus_buffer) for name in wanted}
    speed = _rows_per_second(result)
    return {
        split: _pooled([looks[name] for name in members[split] if name in looks], speed, groups, vus_buffer)
        for split in splits
    }


def recording_events(recording: ScoredRecording) -> tuple[Event, ...]:
    """Return a test recording's events, found or missed."""
    return events_of(recording.anomalous, recording.evaluated, recording.flagged)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What one recording adds to its splits' numbers."""

    n_normal: int
    n_flagged_normal: int
    n_false_alarms: int
    row_seconds: float | None
    events: tuple[Event, ...]
    delays: tuple[int, ...]
    delays_seconds: tuple[float, ...]
    vus_pr: float | None
    zones: tuple[Zone, ...]


def _look(one: ScoredRecording, look_ahead: int, groups: Collection[str], vus_buffer: int) -> _Look:
    flagged, n_rows, time = one.flagged, one.recording.n_rows, one.recording.time
    seconds = row_seconds(time)
    events = recording_events(one)
    late = [(event.start, delay) for event in events if (delay := delay_rows(event, n_rows, look_ahead)) is not None]
    timed = [float(time[start + delay] - time[start]) for start, delay in late] if time is not None else []
    normal = one.evaluated & ~one.anomalous
    counted = one.anomalous[one.evaluated]
    return _Look(
        n_normal=int(np.count_nonzero(normal)),
        n_flagged_normal=int(np.count_nonzero(flagged & normal)),
        n_false_alarms=len(false_alarms_of(one.anomalous, one.evaluated, flagged)),
        row_seconds=seconds,
        events=events,
        delays=tuple(delay for _, delay in late),
        delays_seconds=tuple(timed) if seconds is not None else (),
        vus_pr=vus_pr(one.scores[one.evaluated], counted, vus_buffer) if "vus" in groups and len(counted) else None,
        zones=zones_of(flagged[one.evaluated], counted) if "affiliation" in groups else (),
    )


def _pooled(looks: Sequence[_Look], speed: float | None, groups: Collection[str], vus_buffer: int) -> Diagnostics:
    events = [event for look in looks for event in look.events]
    n_found = sum(event.found for event in events)
    delays = [delay for look in looks for delay in look.delays]
    timed = [delay for look in looks for delay in look.delays_seconds]
    n_normal = sum(look.n_normal for look in looks)
    n_false_alarms = sum(look.n_false_alarms for look in looks)
    near = Affiliation.of(zone for look in looks for zone in look.zones)
    return Diagnostics(
        n_recordings=sum(bool(look.n_normal or look.events) for look in looks),
        n_events=len(events),
        n_found=n_found,
        found=_ratio(n_found, len(events)),
        already_on=_ratio(sum(event.already_on for event in events), sum(event.onset_seen for event in events)),
        n_delays=len(delays),
        delay_rows=_mean(delays),
        delay_seconds=_mean(timed) if len(timed) == len(delays) else None,
        n_false_alarms=n_false_alarms,
        false_alarms_per_hour=_ratio(n_false_alarms, _normal_hours(looks)),
        false_alarms_per_1000_rows=_ratio(1000 * n_false_alarms, n_normal),
        false_alarm_share=_ratio(sum(look.n_flagged_normal for look in looks), n_normal),
        rows_per_second=speed,
        vus_pr=_mean([look.vus_pr for look in looks if look.vus_pr is not None]),
        vus_buffer=vus_buffer if "vus" in groups else None,
        affiliation_precision=near.precision,
        affiliation_recall=near.recall,
        affiliation_f1=near.f1,
    )


def _normal_hours(looks: Sequence[_Look]) -> float | None:
    """Return the hours of normal rows; None where a recording that has some has no time."""
    hours = [
        None if look.row_seconds is None else look.n_normal * look.row_seconds / 3600 for look in looks if look.n_normal
    ]
    known = [one for one in hours if one is not None]
    return sum(known) if len(known) == len(hours) else None


def _rows_per_second(result: TrialResult) -> float | None:
    n_rows = sum(len(scores) for one in result.scored for scores in (*one.train, *one.test))
    return _ratio(n_rows, result.record.score_seconds)


def _ratio(part: float, whole: float | None) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _check_names(what: str, names: Collection[str], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"there is no {what} {name!r}{nearest(name, known)}")
