"""Explains a detector's alarms on one recording, event by event, as values and as text for operators.

Events and delays are those of `tsadbench.analysis.events`, so an explanation agrees with ``leaderboard --diagnostics``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
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
_TEMPLATE = Path(__file__).with_suffix(".jinja")
# How many sensors are named per moment, and looked up in the prior.
_TOP = 3
# If this share of the normal rows before an event is flagged, its alarm carries no information.
_ALWAYS = 0.5
_UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0))


@dataclass(frozen=True, slots=True)
class Explanation:
    """A detector's alarms on one recording, as JSON values.

    ``about`` names the trial and the recording, with the ``threshold``; "training" or "held-out" rows set it
    (``calibration``). ``contributions`` are "kept", "not kept", "not offered", or "not known" if the detector is not
    registered here. ``not_evaluated`` are anomalous rows that the protocol leaves out, as (first, one after the last).

    ``events`` (`tsadbench.analysis.events.Event`) have their alarms. The delay, look-ahead included, is None if the
    event was missed or its onset was not seen. ``before`` counts the false alarms since the previous event: the alarms,
    their rows, and all evaluated normal rows. The data set names the sensors ``to_blame``; ``sensors``
    are shares over the whole event. ``first_alarm`` and ``highest`` are rows with their score, the ratio to the
    threshold (None if that is not positive), seconds from the recording's first row (None without time), and the
    sensors' shares of what raised the score, the largest first; empty if not kept. Only sensors that raise it have a
    share.

    ``neighbours`` are the prior's edges from and to the sensors that contributed most to the first alarms, or to the
    highest score of a missed event.
    """

    about: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    neighbours: Mapping[str, Sequence[Edge]]

    def to_json(self) -> dict[str, JsonValue]:
        """Return all values for JSON, with ``schema`` first."""
        last = {"events": self.events, "neighbours": self.neighbours}
        return {"schema": SCHEMA, **to_jsonable_python({**self.about, **last})}


def explain(result: TrialResult, recording: str, prior: Prior | None = None) -> Explanation:
    """Explain a trial's alarms on one test recording. Runs no code that the record names.

    Raises a UsageError if the protocol does not score this recording.
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
    # The edges of the sensors that contributed most, in the order of events.
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
    score, limit = float(scored.scores[row]), float(scored.limits[row])
    ratio = score / limit if limit > 0 else None
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
    """Return an explanation as paragraphs, wrapped to ``width`` columns."""
    template = Environment(trim_blocks=True, undefined=StrictUndefined).from_string(_TEMPLATE.read_text("utf-8"))
    values = {**explanation.about, "events": explanation.events, "always": _ALWAYS}
    text = template.render(values, counted=counted, duration=duration, top=_top)
    paragraphs = [textwrap.fill(" ".join(one.split()), width) for one in re.split(r"\n\s*\n", text.strip())]
    if explanation.neighbours:
        lines = ["What is known of these sensors (the prior):"]
        for sensor, edges in explanation.neighbours.items():
            lines.append(f"  {sensor}" + ("" if edges else ": no coupling to another sensor is listed"))
            for edge in sorted(edges, key=lambda edge: edge.target != sensor):
                coupling = f"is driven by {edge.source}" if edge.target == sensor else f"drives {edge.target}"
                lines.append(f"    {coupling}{f': {edge.mechanism}' if edge.mechanism else ''}")
        paragraphs.append("\n".join(textwrap.fill(line, width, subsequent_indent=" " * 6) for line in lines))
    return "\n\n".join(paragraphs) + "\n"


def _top(shares: Mapping[str, float]) -> list[str]:
    return [name for name, share in list(shares.items())[:_TOP] if share > 0]


def duration(seconds: float) -> str:
    """Format a duration in the largest unit that fits into it at least twice."""
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
