"""An explanation in words, for whoever runs the plant."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tsadbench.analysis.explanation.explain import TOP, Event, Explanation, FalseAlarms, Moment, Neighbours, Share
from tsadbench.base.prior import Edge

# From this share of normal rows on an alarm says nothing.
_ALWAYS = 0.5
_UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0))


def prose(found: Explanation, width: int = 100) -> str:
    """Return an explanation as paragraphs, wrapped to so many columns."""
    paragraphs = [textwrap.fill(text, width) for text in _paragraphs(found)]
    if found.neighbours:
        known = [
            "What is known of these sensors (the prior):",
            *(line for one in found.neighbours for line in _known(one)),
        ]
        paragraphs.append("\n".join(textwrap.fill(line, width, subsequent_indent=" " * 6) for line in known))
    return "\n\n".join(paragraphs) + "\n"


def _paragraphs(found: Explanation) -> Iterator[str]:
    yield (
        f"{found.label} (seed {found.seed}) on recording {found.recording} of {found.dataset}, protocol "
        f"{found.protocol}: {_summary(found)}"
    )
    yield _threshold(found)
    for number, event in enumerate(found.events, start=1):
        yield _event(event, number, found)
    if found.contributions == "not kept":
        yield (
            "Which sensors raised the alarms is not known: this trial kept no contributions. "
            "`tsadbench run ... --rerun no-contributions` makes it again with them."
        )
    if found.contributions == "not offered":
        yield f"Which sensors raised the alarms is not known: {found.label} does not say."


def _summary(found: Explanation) -> str:
    wrong = _false_alarms(found.false_alarms)
    if not found.events:
        return f"labelled normal throughout; {wrong}."
    caught = sum(event.first_alarm is not None for event in found.events)
    n = len(found.events)
    return f"{caught} of {n} event{'s' * (n > 1)} found; {wrong}."


def _threshold(found: Explanation) -> str:
    one = found.threshold
    if one.method == "fixed":
        return f"A row is flagged where its score exceeds {one.value:.4g}, which this floor brings along."
    how = {
        "ok": "the tail of the training scores, fitted by Peaks-over-Threshold",
        "clamped": "the tail of the training scores, fitted by Peaks-over-Threshold with its shape at a bound",
        "quantile": "a quantile of the training scores, for too few of them differ in the tail to fit one",
        "degenerate": "the largest training score, for none stands out",
        "fixed": "",
    }[one.status]
    rate = "" if one.q is None else f"; about one normal row in {round(1 / one.q):,} should exceed it"
    rows = "" if one.n is None else f" ({one.n:,} rows)"
    return f"A row is flagged where its score exceeds {one.value:.4g}. The threshold comes from {how}{rows}{rate}."


def _event(event: Event, number: int, found: Explanation) -> str:
    lasts = f"rows {event.start:,} to {event.stop - 1:,}"
    begins = "" if event.start_seconds is None else f", {duration(event.start_seconds)} after the recording's start"
    parts = [f"Event {number}, {lasts}{begins}."]
    if event.evaluated_rows == 0:
        parts.append("The protocol evaluates none of its rows.")
    elif event.first_alarm is None:
        parts.append("It was missed: none of its rows is flagged.")
        if event.highest is not None:
            parts.append(f"The highest score, {_level(event.highest)}, came at row {event.highest.row:,}.")
            parts += _sensors(event.highest.sensors, "there")
    else:
        parts += _alarm(event, event.first_alarm, found)
    parts.append(_before(event.before, number))
    if event.early_rows:
        seen = "the last row" if event.early_rows == 1 else f"the last {event.early_rows} rows"
        parts.append(f"Of these, {seen} before the event may have seen it already, as scores look ahead.")
    return " ".join(parts)


def _alarm(event: Event, alarm: Moment, found: Explanation) -> Iterator[str]:
    late = "at once" if event.delay_rows == 0 else f"{_rows(event.delay_rows or 0)}{_in(event.delay_seconds)} late"
    yield f"The first alarm comes at row {alarm.row:,}, {late}, with a score of {_level(alarm)}."
    if found.look_ahead:
        yield f"As a score needs the next {_rows(found.look_ahead)}, a plant would hear of it that much later."
    yield f"{event.flagged_rows:,} of its {event.evaluated_rows:,} evaluated rows are flagged."
    if event.highest is not None and event.highest.row != alarm.row:
        yield f"The score is highest at row {event.highest.row:,}: {_level(event.highest)}."
    yield from _sensors(alarm.sensors, "to the first alarm")
    if event.highest is not None and event.highest.row != alarm.row:
        yield from _sensors(event.highest.sensors, "at the highest score")


def _sensors(shares: Sequence[Share], where: str) -> Iterator[str]:
    if shares:
        named = ", ".join(f"{one.sensor} ({one.share:.0%})" for one in shares[:TOP] if one.share > 0)
        yield f"What contributes most {where}: {named}."


def _before(before: FalseAlarms, number: int) -> str:
    since = "since the event before it" if number > 1 else "before it"
    if before.normal_rows == 0:
        return f"No normal row is evaluated {since}."
    counted = _false_alarms(before, f" {since}")
    told = f"{counted[0].upper()}{counted[1:]}."
    if before.rows < _ALWAYS * before.normal_rows:
        return told
    return f"{told} The score lay above the threshold already: this alarm says little of the event."


def _false_alarms(found: FalseAlarms, since: str = "") -> str:
    normal = _count(found.normal_rows, "normal row")
    if found.rows == 0:
        return f"no false alarm{since} in {normal}"
    return f"{_count(found.alarms, 'false alarm')}{since}, {found.rows:,} of {normal} flagged"


def _level(moment: Moment) -> str:
    ratio = "" if moment.ratio is None else f" ({moment.ratio:.2g} times the threshold)"
    if moment.ratio is not None and moment.ratio >= 100:
        ratio = f" ({moment.ratio:,.0f} times the threshold)"
    return f"{moment.score:.4g}{ratio}"


def _known(one: Neighbours) -> Iterator[str]:
    yield f"  {one.sensor}" + ("" if one.driven_by or one.drives else ": no coupling to another sensor is listed")
    for edge in one.driven_by:
        yield f"    is driven by {edge.source}{_mechanism(edge)}"
    for edge in one.drives:
        yield f"    drives {edge.target}{_mechanism(edge)}"


def _mechanism(edge: Edge) -> str:
    return f": {edge.mechanism}" if edge.mechanism else ""


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
