"""An explanation in words, for the operator of the plant."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from tsadbench.analysis.explanation.explain import TOP, ExplainedEvent, Explanation, FalseAlarms, Moment
from tsadbench.base.prior import Edge
from tsadbench.base.protocol import Threshold
from tsadbench.utils.text import counted

# If this share of the normal rows before an event is flagged, its alarm means nothing.
_ALWAYS = 0.5
_UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0))
_SOURCES = {
    "ok": "the tail of the {} scores, fitted by Peaks-over-Threshold",
    "clamped": "the tail of the {} scores, fitted by Peaks-over-Threshold with its shape at a bound",
    "quantile": "a quantile of the {} scores, as too few of them differ in the tail to fit one",
    "degenerate": "the largest {} score, as none stands out",
}


def narrative(explanation: Explanation, width: int = 100) -> str:
    """Return an explanation as paragraphs, wrapped to so many columns."""
    paragraphs = [textwrap.fill(text, width) for text in _paragraphs(explanation)]
    if explanation.neighbours:
        lines = ["What is known of these sensors (the prior):"]
        lines += [line for sensor, edges in explanation.neighbours.items() for line in _couplings(sensor, edges)]
        paragraphs.append("\n".join(textwrap.fill(line, width, subsequent_indent=" " * 6) for line in lines))
    return "\n\n".join(paragraphs) + "\n"


def _paragraphs(explanation: Explanation) -> Iterator[str]:
    label, events = explanation.label, explanation.events
    found = f"{sum(one.first_alarm is not None for one in events)} of {counted(len(events), 'event')} found"
    if not events:
        found = "no event is evaluated" if explanation.not_evaluated else "labelled normal throughout"
    yield (
        f"{label} (seed {explanation.seed}) on recording {explanation.recording} of {explanation.dataset}, protocol "
        f"{explanation.protocol} {explanation.protocol_version}: {found}; {_false_alarms(explanation.false_alarms)}."
    )
    yield _threshold(explanation.threshold, explanation.calibration)
    for number, event in enumerate(events, start=1):
        yield " ".join(_event(event, number, explanation.look_ahead))
    if explanation.not_evaluated:
        spans = " and ".join(_span(start, stop) for start, stop in explanation.not_evaluated)
        yield f"Also labelled anomalous, but not evaluated by the protocol: {spans}."
    kept_none = "this trial kept no contributions"
    reasons = {
        "not kept": f"{kept_none}. `tsadbench run ... --rerun no-contributions` makes it again with them.",
        "not known": f"{kept_none}, and its detector is not registered here.",
        "not offered": f"{label} does not report it.",
    }
    if explanation.contributions in reasons:
        yield f"Which sensors raised the alarms is not known: {reasons[explanation.contributions]}"


def _threshold(threshold: Threshold, calibration: str) -> str:
    flagged = f"A row is flagged if its score exceeds {threshold.value:.4g}"
    if threshold.method == "fixed":
        return f"{flagged}, a constant of this floor."
    rate = "" if threshold.q is None else f"; about one normal row in {round(1 / threshold.q):,} should exceed it"
    rows = "" if threshold.n is None else f" ({threshold.n:,} rows)"
    return f"{flagged}. The threshold comes from {_SOURCES[threshold.status].format(calibration)}{rows}{rate}."


def _event(event: ExplainedEvent, number: int, look_ahead: int) -> Iterator[str]:
    begins = "" if event.start_seconds is None else f", {duration(event.start_seconds)} after the recording's start"
    yield f"Event {number}, {_span(event.start, event.stop)}{begins}."
    if event.first_alarm is not None:
        yield from _alarm(event, event.first_alarm, look_ahead)
    else:
        yield "It was missed: none of its rows is flagged."
        if event.highest is not None:
            yield f"The highest score, {_level(event.highest)}, is at row {event.highest['row']:,}."
            yield from _sensors(event.highest["sensors"], "there")
    if event.to_blame:
        are = "is" if len(event.to_blame) == 1 else "are"
        yield f"According to the data set {_listed(event.to_blame)} {are} to blame."
        yield from _sensors(event.sensors, "over the whole event")
        if event.sensors:
            right = [name for name in _top(event.sensors) if name in event.to_blame]
            yield f"Of these {_listed(right) or 'none'} {'are' if len(right) > 1 else 'is'} to blame."
    yield _before(event.before, "since the previous event" if number > 1 else "before it")
    if event.early_rows:
        rows = "the last row" if event.early_rows == 1 else f"the last {event.early_rows} rows"
        yield f"Of these, {rows} before the event may have seen it already, as scores look ahead."


def _alarm(event: ExplainedEvent, alarm: Moment, look_ahead: int) -> Iterator[str]:
    yield f"Its first flagged row is {alarm['row']:,}, with a score of {_level(alarm)}."
    if event.delay_rows is None:
        yield "Its onset was not seen, so the alarm has no delay."
    else:
        seconds = "" if event.delay_seconds is None else f" ({duration(event.delay_seconds)})"
        late = "at the onset" if event.delay_rows == 0 else f"{counted(event.delay_rows, 'row')}{seconds} late"
        needs = f", as a score needs the next {counted(look_ahead, 'row')}" if look_ahead else ""
        yield f"The alarm is raised {late}{needs}."
    are = "is" if event.flagged_rows == 1 else "are"
    yield f"{event.flagged_rows:,} of its {event.stop - event.start:,} evaluated rows {are} flagged."
    highest = event.highest if event.highest is not None and event.highest["row"] != alarm["row"] else None
    if highest is not None:
        yield f"The score is highest at row {highest['row']:,}: {_level(highest)}."
    yield from _sensors(alarm["sensors"], "to the first alarm")
    if highest is not None:
        yield from _sensors(highest["sensors"], "at the highest score")


def _sensors(shares: Mapping[str, float], where: str) -> Iterator[str]:
    if shares:
        named = ", ".join(f"{name} ({shares[name]:.0%})" for name in _top(shares))
        yield f"What contributes most {where}: {named}."


def _top(shares: Mapping[str, float]) -> list[str]:
    return [name for name, share in list(shares.items())[:TOP] if share > 0]


def _listed(names: Sequence[str]) -> str:
    """Return names as a list in words, "a, b and c"."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def _before(before: FalseAlarms, since: str) -> str:
    if before["normal_rows"] == 0:
        return f"No normal row is evaluated {since}."
    alarms = _false_alarms(before, f" {since}")
    sentence = f"{alarms[0].upper()}{alarms[1:]}."
    if before["rows"] < _ALWAYS * before["normal_rows"]:
        return sentence
    return f"{sentence} The score was already above the threshold: this alarm says little about the event."


def _false_alarms(false_alarms: FalseAlarms, since: str = "") -> str:
    normal = counted(false_alarms["normal_rows"], "normal row")
    if false_alarms["rows"] == 0:
        return f"no false alarm{since} in {normal}"
    return f"{counted(false_alarms['alarms'], 'false alarm')}{since}, {false_alarms['rows']:,} of {normal} flagged"


def _level(moment: Moment) -> str:
    if moment["ratio"] is None:
        return f"{moment['score']:.4g}"
    # "1.2e+02 times" would be the general format's idea of three digits.
    ratio = f"{moment['ratio']:,.0f}" if moment["ratio"] >= 100 else f"{moment['ratio']:.2g}"
    return f"{moment['score']:.4g} ({ratio} times the threshold)"


def _couplings(sensor: str, edges: Sequence[Edge]) -> Iterator[str]:
    yield f"  {sensor}" + ("" if edges else ": no coupling to another sensor is listed")
    for edge in sorted(edges, key=lambda edge: edge.target != sensor):
        coupling = f"is driven by {edge.source}" if edge.target == sensor else f"drives {edge.target}"
        yield f"    {coupling}{f': {edge.mechanism}' if edge.mechanism else ''}"


def _span(start: int, stop: int) -> str:
    return f"rows {start:,} to {stop - 1:,}"


def duration(seconds: float) -> str:
    """Return a time in the largest unit of which it has two or more."""
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
