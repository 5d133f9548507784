"""An explanation in words, for the operator of the plant."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tsadbench.analysis.explanation.explain import (
    TOP,
    ExplainedEvent,
    Explanation,
    FalseAlarms,
    Moment,
    Neighbours,
    Share,
)
from tsadbench.base.prior import Edge
from tsadbench.base.protocol import Threshold

# If this share of the normal rows before an event is flagged, its alarm means nothing.
_ALWAYS = 0.5
_UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0))


def narrative(explanation: Explanation, width: int = 100) -> str:
    """Return an explanation as paragraphs, wrapped to so many columns."""
    paragraphs = [textwrap.fill(text, width) for text in _paragraphs(explanation)]
    if explanation.neighbours:
        couplings = [line for neighbours in explanation.neighbours for line in _couplings(neighbours)]
        lines = ["What is known of these sensors (the prior):", *couplings]
        paragraphs.append("\n".join(textwrap.fill(line, width, subsequent_indent=" " * 6) for line in lines))
    return "\n\n".join(paragraphs) + "\n"


def _paragraphs(explanation: Explanation) -> Iterator[str]:
    yield (
        f"{explanation.label} (seed {explanation.seed}) on recording {explanation.recording} of {explanation.dataset}, "
        f"protocol {explanation.protocol} {explanation.protocol_version}: {_summary(explanation)}"
    )
    yield _threshold(explanation.threshold, explanation.calibration)
    for number, event in enumerate(explanation.events, start=1):
        yield _event(event, number, explanation.look_ahead)
    if explanation.not_evaluated:
        spans = " and ".join(_span(start, stop) for start, stop in explanation.not_evaluated)
        yield f"Also labelled anomalous, but not evaluated by the protocol: {spans}."
    if explanation.contributions == "not kept":
        yield (
            "Which sensors raised the alarms is not known: this trial kept no contributions. "
            "`tsadbench run ... --rerun no-contributions` makes it again with them."
        )
    if explanation.contributions == "not known":
        yield (
            "Which sensors raised the alarms is not known: this trial kept no contributions, and its detector is not "
            "registered here."
        )
    if explanation.contributions == "not offered":
        yield f"Which sensors raised the alarms is not known: {explanation.label} does not report it."


def _summary(explanation: Explanation) -> str:
    false_alarms = _false_alarms(explanation.false_alarms)
    n = len(explanation.events)
    if not n:
        normal = "no event is evaluated" if explanation.not_evaluated else "labelled normal throughout"
        return f"{normal}; {false_alarms}."
    n_found = sum(event.first_alarm is not None for event in explanation.events)
    return f"{n_found} of {n} event{'s' * (n > 1)} found; {false_alarms}."


def _threshold(threshold: Threshold, calibration: str) -> str:
    if threshold.method == "fixed":
        return f"A row is flagged if its score exceeds {threshold.value:.4g}, a constant of this floor."
    source = {
        "ok": f"the tail of the {calibration} scores, fitted by Peaks-over-Threshold",
        "clamped": f"the tail of the {calibration} scores, fitted by Peaks-over-Threshold with its shape at a bound",
        "quantile": f"a quantile of the {calibration} scores, as too few of them differ in the tail to fit one",
        "degenerate": f"the largest {calibration} score, as none stands out",
        "fixed": "",
    }[threshold.status]
    rate = "" if threshold.q is None else f"; about one normal row in {round(1 / threshold.q):,} should exceed it"
    rows = "" if threshold.n is None else f" ({threshold.n:,} rows)"
    return (
        f"A row is flagged if its score exceeds {threshold.value:.4g}. The threshold comes from {source}{rows}{rate}."
    )


def _event(event: ExplainedEvent, number: int, look_ahead: int) -> str:
    begins = "" if event.start_seconds is None else f", {duration(event.start_seconds)} after the recording's start"
    parts = [f"Event {number}, {_span(event.start, event.stop)}{begins}."]
    if event.first_alarm is None:
        parts.append("It was missed: none of its rows is flagged.")
        if event.highest is not None:
            parts.append(f"The highest score, {_level(event.highest)}, is at row {event.highest.row:,}.")
            parts += _sensors(event.highest.sensors, "there")
    else:
        parts += _alarm(event, event.first_alarm, look_ahead)
    parts += _causes(event)
    parts.append(_before(event.before, number))
    if event.early_rows:
        rows = "the last row" if event.early_rows == 1 else f"the last {event.early_rows} rows"
        parts.append(f"Of these, {rows} before the event may have seen it already, as scores look ahead.")
    return " ".join(parts)


def _alarm(event: ExplainedEvent, alarm: Moment, look_ahead: int) -> Iterator[str]:
    yield f"Its first flagged row is {alarm.row:,}, with a score of {_level(alarm)}."
    if event.delay_rows is None:
        yield "Its onset was not seen, so the alarm has no delay."
    else:
        late = "at the onset" if event.delay_rows == 0 else f"{_rows(event.delay_rows)}{_in(event.delay_seconds)} late"
        needs = f", as a score needs the next {_rows(look_ahead)}" if look_ahead else ""
        yield f"The alarm is raised {late}{needs}."
    are = "is" if event.flagged_rows == 1 else "are"
    yield f"{event.flagged_rows:,} of its {event.evaluated_rows:,} evaluated rows {are} flagged."
    if event.highest is not None and event.highest.row != alarm.row:
        yield f"The score is highest at row {event.highest.row:,}: {_level(event.highest)}."
    yield from _sensors(alarm.sensors, "to the first alarm")
    if event.highest is not None and event.highest.row != alarm.row:
        yield from _sensors(event.highest.sensors, "at the highest score")


def _sensors(shares: Sequence[Share], where: str) -> Iterator[str]:
    if shares:
        named = ", ".join(f"{share.sensor} ({share.share:.0%})" for share in shares[:TOP] if share.share > 0)
        yield f"What contributes most {where}: {named}."


def _causes(event: ExplainedEvent) -> Iterator[str]:
    if not event.to_blame:
        return
    yield f"According to the data set {_listed(event.to_blame)} {'is' if len(event.to_blame) == 1 else 'are'} to blame."
    yield from _sensors(event.sensors, "over the whole event")
    if event.sensors:
        right = [share.sensor for share in event.sensors[:TOP] if share.sensor in event.to_blame and share.share > 0]
        yield f"Of these {_listed(right) or 'none'} {'are' if len(right) > 1 else 'is'} to blame."


def _listed(names: Sequence[str]) -> str:
    """Return names as a list in words, "a, b and c"."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def _before(before: FalseAlarms, number: int) -> str:
    since = "since the previous event" if number > 1 else "before it"
    if before.normal_rows == 0:
        return f"No normal row is evaluated {since}."
    counted = _false_alarms(before, f" {since}")
    sentence = f"{counted[0].upper()}{counted[1:]}."
    if before.rows < _ALWAYS * before.normal_rows:
        return sentence
    return f"{sentence} The score was already above the threshold: this alarm says little about the event."


def _false_alarms(false_alarms: FalseAlarms, since: str = "") -> str:
    normal = _count(false_alarms.normal_rows, "normal row")
    if false_alarms.rows == 0:
        return f"no false alarm{since} in {normal}"
    return f"{_count(false_alarms.alarms, 'false alarm')}{since}, {false_alarms.rows:,} of {normal} flagged"


def _level(moment: Moment) -> str:
    if moment.ratio is None:
        return f"{moment.score:.4g}"
    # "1.2e+02 times" would be the general format's idea of three digits.
    ratio = f"{moment.ratio:,.0f}" if moment.ratio >= 100 else f"{moment.ratio:.2g}"
    return f"{moment.score:.4g} ({ratio} times the threshold)"


def _couplings(neighbours: Neighbours) -> Iterator[str]:
    isolated = not (neighbours.driven_by or neighbours.drives)
    yield f"  {neighbours.sensor}" + (": no coupling to another sensor is listed" if isolated else "")
    for edge in neighbours.driven_by:
        yield f"    is driven by {edge.source}{_mechanism(edge)}"
    for edge in neighbours.drives:
        yield f"    drives {edge.target}{_mechanism(edge)}"


def _mechanism(edge: Edge) -> str:
    return f": {edge.mechanism}" if edge.mechanism else ""


def _span(start: int, stop: int) -> str:
    return f"rows {start:,} to {stop - 1:,}"


def _rows(n: int) -> str:
    return _count(n, "row")


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _in(seconds: float | None) -> str:
    return "" if seconds is None else f" ({duration(seconds)})"


def duration(seconds: float) -> str:
    """Return a time in the largest unit of which it has two or more."""
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
