"""Marks in front of a row's name: what a reader must know before its numbers, as every format shows it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tsadbench.base.replay import MAX_RATIO, MIN_CORRELATION, Replay
from tsadbench.leaderboard.formatting import number
from tsadbench.leaderboard.ranking import FLOOR_METRICS, Row

# Of a row, each with what it says.
Marks: TypeAlias = Callable[[Row], Mapping[str, str]]

ALL_BELOW = "⇊"
LEAKY = "⚠"
INCOMPLETE = "△"
UNFORGETTING = "∞"
UNCALIBRATED = "≠"
GUARDED = "◇"
STORED = "°"
UNCHECKED = "?"
UNSOUND = "✗"
PRETRAINED = "◈"

_INCOMPLETE = (
    f"{INCOMPLETE} left evaluated rows without a score, and has no place. From version 2 of the protocols on, such "
    "rows count as the worst case: the normal ones as false alarms, the anomalous ones as missed at every threshold."
)
_UNFORGETTING = (
    f"{UNFORGETTING} does not forget, and has no place: scored again, 500 rows behind another beginning of a recording "
    f"or in a part of it, rows have a rank correlation below {number(MIN_CORRELATION, 1)} with their first scores; or "
    "no recording was long enough to try that. A detector that declares how many rows it remembers (traits.memory) is "
    "compared row by row instead."
)
_UNCALIBRATED = (
    f"{UNCALIBRATED} calibrated on scores of another size: its own scores of the training rows and fresh scores of the "
    f"same rows differ by a factor beyond {MAX_RATIO:g}, in the median or the 99 % quantile."
)
_SEALED = "All rows ran sealed by the kernel"
_MEANING = (
    "guarded, not sealed by the kernel: an audit hook kept labels and test rows from the detector, which stops "
    "mistakes, not code that means to get round it"
)
_UNCHECKED = (
    ": no report says that the detector, with these parameters, this code and these versions of libraries, passes the "
    "checks (tsadbench check LABEL --out RUNS)."
)
_NOT_CHECKED = "not checked: tsadbench check LABEL --out RUNS"
_NO_REASON = "no reason is recorded"


def marks_of(row: Row, *, mixed: bool, some_checked: bool = False) -> dict[str, str]:
    """Return a row's marks, in the order in which tables show them, each with what it says of this row."""
    all_below = set(row.below_floor or ()) == set(FLOOR_METRICS)
    marks = [
        (ALL_BELOW, all_below, "beats no floor in AUROC, AUPRC and MCC"),
        (LEAKY, bool(row.leaky), f"leaky: {row.leaky}"),
        (INCOMPLETE, not row.complete, "left rows without a score: they count as the worst case; out of the ranking"),
        (UNFORGETTING, not row.forgets, f"does not forget, out of the ranking; {replay_text(row.replay)}"),
        (UNCALIBRATED, not row.calibrated, f"training scores of another size; {replay_text(row.replay)}"),
        (GUARDED, mixed and row.ok and row.seal == "guarded", f"guarded: {_reasons([row]) or _NO_REASON}"),
        (UNSOUND, row.ok and row.verdict.checked == "fail", f"fails checks: {', '.join(row.verdict.failed)}"),
        (UNCHECKED, some_checked and row.ok and row.verdict.checked == "no", _NOT_CHECKED),
        (PRETRAINED, bool(row.pretrained_on), f"pretrained on {', '.join(row.pretrained_on)}"),
        (STORED, row.stored, "made earlier"),
    ]
    return {mark: meaning for mark, applies, meaning in marks if applies}


def marks_for(rows: Sequence[Row]) -> Marks:
    """Return `marks_of` for rows that are shown together."""
    return functools.partial(marks_of, mixed=mixed_seals(rows), some_checked=_some_checked(rows))


def mixed_seals(rows: Sequence[Row]) -> bool:
    """Whether some of the rows that have numbers ran sealed and others guarded."""
    return len({row.seal for row in rows if row.ok}) > 1


def _some_checked(rows: Sequence[Row]) -> bool:
    """Whether the detector of some row that has numbers was checked."""
    return any(row.ok and row.verdict.checked != "no" for row in rows)


def replay_text(replay: Replay | None) -> str:
    """Return in words what the replay audit of a row's trials compared and found; empty if there was none."""
    if replay is None:
        return ""
    found = {
        "rank correlation": replay.correlation,
        "ratio of medians": replay.median_ratio,
        "ratio of 99 % quantiles": replay.tail_ratio,
    }
    numbers = (f", {name} {value:.3g}" for name, value in found.items() if value is not None)
    return f"{replay.rows:,} rows scored again, copy: {replay.copy}{''.join(numbers)}"


def marks_legend(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what the marks of these rows mean, and whether the kernel sealed their boxes."""
    if any(not row.complete for row in rows):
        yield _INCOMPLETE
    if any(not row.forgets for row in rows):
        yield _UNFORGETTING
    if any(not row.calibrated for row in rows):
        yield _UNCALIBRATED
    for leak in dict.fromkeys(row.leaky for row in rows if row.leaky):
        yield f"{LEAKY} leaky, only to compare, out of the ranking: it uses the {leak}."
    failing = {row.label: ", ".join(row.verdict.failed) for row in rows if row.ok and row.verdict.checked == "fail"}
    if failing:
        yield f"{UNSOUND} fails checks: {'; '.join(f'{label}: {checks}' for label, checks in failing.items())}."
    if any(row.ok and row.verdict.checked == "no" for row in rows):
        who = f"{UNCHECKED} not checked" if _some_checked(rows) else "None of these detectors was checked"
        yield who + _UNCHECKED
    if said := {row.label: ", ".join(row.pretrained_on) for row in rows if row.pretrained_on}:
        texts = "; ".join(f"{name} on {corpora}" for name, corpora in said.items())
        yield f"{PRETRAINED} pretrained, and may have seen what it is tested on: {texts}."
    if origins := dict.fromkeys(origin_of(row) for row in rows if row.stored):
        yield f"{STORED} stored: made earlier, with {'; with '.join(origins)}."
    ran = [row for row in rows if row.ok]
    if guarded := [row for row in ran if row.seal == "guarded"]:
        yield f"{GUARDED if mixed_seals(rows) else 'All rows ran'} {_MEANING} ({_reasons(guarded) or _NO_REASON})."
    elif ran:
        yield f"{_SEALED}."


def _reasons(rows: Sequence[Row]) -> str:
    return "; ".join(dict.fromkeys(reason for row in rows for reason in row.seal_reasons))


def origin_of(row: Row) -> str:
    """Return when and with which version a stored row was made."""
    versions = row.first.manifest.get("versions")
    version = versions.get("tsadbench") if isinstance(versions, dict) else None
    day = min(str(record.manifest.get("started"))[:10] for record in row.records)
    return f"tsadbench {version} on {day}"
