"""A detector's alarms on one recording, event by event, as values and in words for the operator of the plant.

Events and delays are those of `tsadbench.analysis.events`, so that an explanation and ``leaderboard --diagnostics``
report the same of a trial.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic_core import to_jsonable_python

from tsadbench.analysis.events import recording_events, summed_contributions
from tsadbench.base.dataset import Cause
from tsadbench.base.prior import Edge, Prior
from tsadbench.results.admission import offers_contributions
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import BoolArray, mask_runs
from tsadbench.utils.parameters import JsonValue, parse_label
from tsadbench.utils.text import counted

SCHEMA = 2
# How many sensors of a moment are named, and their neighbours looked up in the prior.
_TOP = 3
# If this share of the normal rows before an event is flagged, its alarm means nothing.
_ALWAYS = 0.5
_UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0))


@dataclass(frozen=True, slots=True)
class Explanation:
    """A detector's alarms on one recording, as values that JSON has too.

    ``about`` says of which trial and recording, with the ``threshold``; "training" or "held-out" rows set it
    (``calibration``). ``contributions`` are "kept", "not kept", "not offered", or "not known" of a detector that is not
    registered here. ``not_evaluated`` are anomalous rows that the protocol leaves out, as (first, one after the last).

    ``events`` (`tsadbench.analysis.events.Event`) have their alarms. The delay, look-ahead included, is None if the
    event was missed or its onset was not seen. ``before`` are the false alarms since the previous event: the number of
    runs, of rows, and of the normal rows that are evaluated. The data set names the sensors ``to_blame``; ``sensors``
    are shares over the whole event. ``first_alarm`` and ``highest`` are rows with their score, the ratio to the
    threshold (None if that is not positive), seconds from the recording's first row (None without time), and the
    sensors' shares of what raised the score, the largest first; empty if not kept. A sensor that lowers it has none.

    ``neighbours`` are the prior's edges from and to the sensors that contributed most to the first alarms, or to the
    highest score of a missed event.
    """

    about: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    neighbours: Mapping[str, Sequence[Edge]]

    def to_json(self) -> dict[str, JsonValue]:
        """Return all values as JSON has them, preceded by ``schema``."""
        last = {"events": self.events, "neighbours": self.neighbours}
        return {"schema": SCHEMA, **to_jsonable_python({**self.about, **last})}


def explain(result: TrialResult, recording: str, prior: Prior | None = None) -> Explanation:
    """Explain a trial's alarms on one test recording; no code that the trial's record names is run.

    A UsageError if the protocol scores no such recording.
    """
    scored, record = result.recording(recording), result.record
    (threshold,) = (fit.threshold for fit in record.thresholds if fit.episode == scored.episode)
    events = [*_events(scored, record.look_ahead, result.data.labels.causes.get(recording, ()))]
    named = parse_label(record.label).arguments.get("prior")
    used = result.data.dataset.prior if prior is None and named is None else prior
    state = "kept"
    if scored.contributions is None:
        state = {None: "not known", True: "not kept", False: "not offered"}[offers_contributions(record)]
    about = {name: getattr(record, name) for name in ("label", "seed", "dataset", "protocol", "protocol_version")}
    about |= {"recording": recording, "n_rows": scored.recording.n_rows, "n_evaluated": int(scored.evaluated.sum())}
    about |= {"look_ahead": record.look_ahead, "threshold": threshold}
    about |= {"calibration": result.calibrated_on(scored.episode), "contributions": state}
    about["not_evaluated"] = mask_runs(scored.anomalous & ~scored.evaluated)
    about["false_alarms"] = _false_alarms(scored, slice(None))
    # The edges of the sensors that contributed most, those of the first event first.
    moments = [moment for event in events if (moment := event["first_alarm"] or event["highest"])]
    edges = () if used is None else used.edges
    neighbours = {
        name: tuple(edge for edge in edges if name in (edge.source, edge.target))
        for moment in moments
        for name in _top(moment["sensors"])
    }
    return Explanation(about, events, {} if used is None else neighbours)


def _events(scored: ScoredRecording, look_ahead: int, causes: Sequence[Cause]) -> Iterator[dict[str, Any]]:
    previous = 0
    for event in recording_events(scored, look_ahead):
        rows = slice(event.start, event.stop)
        scores, first = scored.scores[rows], event.first_flagged
        blamed = [one.sensors for one in causes if one.start < event.stop and event.start < one.stop]
        yield {
            **dict(zip(("start", "stop", "onset_seen", "already_on"), event[:4], strict=True)),
            "start_seconds": _seconds(scored, event.start),
            "flagged_rows": int(scored.flagged[rows].sum()),
            "first_alarm": None if first is None else _moment(scored, first),
            **{"delay_rows": event.delay_rows, "delay_seconds": event.delay_seconds},
            "highest": None if np.isnan(scores).all() else _moment(scored, event.start + int(np.nanargmax(scores))),
            "before": _false_alarms(scored, slice(previous, event.start)),
            "to_blame": tuple(dict.fromkeys(sensor for sensors in blamed for sensor in sensors)),
            "sensors": _shares(scored, rows),
        }
        previous = event.stop


def _moment(scored: ScoredRecording, row: int) -> dict[str, Any]:
    score = float(scored.scores[row])
    ratio = score / scored.threshold if scored.threshold > 0 else None
    sensors = _shares(scored, slice(row, row + 1))
    return {"row": row, "seconds": _seconds(scored, row), "score": score, "ratio": ratio, "sensors": sensors}


def _shares(scored: ScoredRecording, rows: slice) -> dict[str, float]:
    if scored.contributions is None:
        return {}
    raising = np.maximum(summed_contributions(scored.contributions[rows]), 0.0)
    total, order = float(raising.sum()), np.argsort(-raising, kind="stable")
    return {scored.recording.sensors[i]: float(raising[i]) / total for i in order} if total else {}


def _false_alarms(scored: ScoredRecording, rows: slice) -> dict[str, int]:
    normal: BoolArray = (~scored.anomalous & scored.evaluated)[rows]
    wrong = scored.flagged[rows] & normal
    return {"alarms": len(mask_runs(wrong)), "rows": int(wrong.sum()), "normal_rows": int(normal.sum())}


def _seconds(scored: ScoredRecording, row: int) -> float | None:
    time = scored.recording.time
    return None if time is None else float(time[row] - time[0])


def narrative(explanation: Explanation, width: int = 100) -> str:
    """Return an explanation as paragraphs, wrapped to so many columns."""
    paragraphs = [textwrap.fill(text, width) for text in _paragraphs(explanation)]
    if explanation.neighbours:
        lines = ["What is known of these sensors (the prior):"]
        for sensor, edges in explanation.neighbours.items():
            lines.append(f"  {sensor}" + ("" if edges else ": no coupling to another sensor is listed"))
            for edge in sorted(edges, key=lambda edge: edge.target != sensor):
                coupling = f"is driven by {edge.source}" if edge.target == sensor else f"drives {edge.target}"
                lines.append(f"    {coupling}{f': {edge.mechanism}' if edge.mechanism else ''}")
        paragraphs.append("\n".join(textwrap.fill(line, width, subsequent_indent=" " * 6) for line in lines))
    return "\n\n".join(paragraphs) + "\n"


def _paragraphs(explanation: Explanation) -> Iterator[str]:
    about, events = explanation.about, explanation.events
    label, threshold = about["label"], about["threshold"]
    found = f"{sum(one['first_alarm'] is not None for one in events)} of {counted(len(events), 'event')} found"
    if not events:
        found = "no event is evaluated" if about["not_evaluated"] else "labelled normal throughout"
    yield (
        f"{label} (seed {about['seed']}) on recording {about['recording']} of {about['dataset']}, protocol "
        f"{about['protocol']} {about['protocol_version']}: {found}; {_told(about['false_alarms'])}."
    )
    origin = "a constant of this floor"
    if threshold.method != "fixed":
        how = "" if threshold.status == "ok" else f" ({threshold.status})"
        origin = f"found by Peaks-over-Threshold{how} on {threshold.n or 0:,} {about['calibration']} rows"
        if threshold.q is not None:
            origin += f"; about one normal row in {round(1 / threshold.q):,} should exceed it"
    yield f"A row is flagged if its score exceeds {threshold.value:.4g}, {origin}."
    for number, event in enumerate(events, start=1):
        yield " ".join(_event(event, number, about["look_ahead"]))
    if about["not_evaluated"]:
        spans = " and ".join(_span(start, stop) for start, stop in about["not_evaluated"])
        yield f"Also labelled anomalous, but not evaluated by the protocol: {spans}."
    reasons = {
        "not kept": "this trial kept no contributions; `tsadbench run ... --rerun no-contributions` makes it again "
        "with them",
        "not known": "this trial kept no contributions, and its detector is not registered here",
        "not offered": f"{label} does not report it",
    }
    if about["contributions"] in reasons:
        yield f"Which sensors raised the alarms is not known: {reasons[about['contributions']]}."


def _event(event: Mapping[str, Any], number: int, look_ahead: int) -> Iterator[str]:
    start, stop, alarm, highest = (event[name] for name in ("start", "stop", "first_alarm", "highest"))
    seconds = event["start_seconds"]
    begins = "" if seconds is None else f", {duration(seconds)} after the recording's start"
    yield f"Event {number}, {_span(start, stop)}{begins}."
    if alarm is None:
        yield "It was missed: none of its rows is flagged."
    else:
        yield f"Its first flagged row is {alarm['row']:,}, with a score of {_level(alarm)}."
        rows, after = event["delay_rows"], event["delay_seconds"]
        late = "at the onset"
        if rows:
            late = f"{counted(rows, 'row')}{'' if after is None else f' ({duration(after)})'} late"
        needs = f", as a score needs the next {counted(look_ahead, 'row')}" if look_ahead else ""
        unseen = "Its onset was not seen, so the alarm has no delay."
        yield unseen if rows is None else f"The alarm is raised {late}{needs}."
        yield f"Flagged: {event['flagged_rows']:,} of its {stop - start:,} evaluated rows."
        yield from _sensors(alarm["sensors"], "to the first alarm")
    if highest is not None and alarm is None:
        yield f"The highest score, {_level(highest)}, is at row {highest['row']:,}."
        yield from _sensors(highest["sensors"], "there")
    elif highest is not None and highest["row"] != alarm["row"]:
        yield f"The score is highest at row {highest['row']:,}: {_level(highest)}."
        yield from _sensors(highest["sensors"], "at the highest score")
    if event["to_blame"]:
        yield f"To blame, according to the data set: {', '.join(event['to_blame'])}."
        yield from _sensors(event["sensors"], "over the whole event")
        if event["sensors"]:
            right = [name for name in _top(event["sensors"]) if name in event["to_blame"]]
            yield f"Of these to blame: {', '.join(right) or 'none'}."
    before, since = event["before"], "since the previous event" if number > 1 else "before it"
    if before["normal_rows"] == 0:
        yield f"No normal row is evaluated {since}."
    else:
        told = _told(before, f" {since}")
        yield f"{told[0].upper()}{told[1:]}."
        if before["rows"] >= _ALWAYS * before["normal_rows"]:
            yield "The score was already above the threshold: this alarm says little about the event."


def _sensors(shares: Mapping[str, float], where: str) -> Iterator[str]:
    if shares:
        yield f"What contributes most {where}: {', '.join(f'{name} ({shares[name]:.0%})' for name in _top(shares))}."


def _top(shares: Mapping[str, float]) -> list[str]:
    return [name for name, share in list(shares.items())[:_TOP] if share > 0]


def _told(false_alarms: Mapping[str, int], since: str = "") -> str:
    normal = counted(false_alarms["normal_rows"], "normal row")
    if false_alarms["rows"] == 0:
        return f"no false alarm{since} in {normal}"
    return f"{counted(false_alarms['alarms'], 'false alarm')}{since}, {false_alarms['rows']:,} of {normal} flagged"


def _level(moment: Mapping[str, Any]) -> str:
    times = "" if moment["ratio"] is None else f" ({moment['ratio']:,.1f} times the threshold)"
    return f"{moment['score']:.4g}{times}"


def _span(start: int, stop: int) -> str:
    return f"rows {start:,} to {stop - 1:,}"


def duration(seconds: float) -> str:
    """Return a time in the largest unit of which it has two or more."""
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
