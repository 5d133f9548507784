"""Checks of the events: how many there are, how long they are, and how many a threshold on one sensor finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np
import pandas as pd

from tsadbench.analysis.audit.findings import Finding, Grade
from tsadbench.analysis.audit.parts import Part, by_entity, within
from tsadbench.leaderboard.render import Table
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray, mask_runs

# Shares of anomalous test rows.
_FEW_ANOMALIES, _MANY_ANOMALIES = 0.01, 0.4
# Fewer events than this: each of them decides.
_FEW_EVENTS = 5
# One-liners find so many more events than by chance; trivial are labels of which they find half.
_ABOVE_CHANCE, _TRIVIAL = 0.25, 0.5
_KINDS = ("high", "low", "jumps")


def event_table(parts: Sequence[Part]) -> pd.DataFrame:
    """Return each entity's events, which are runs of anomalous rows, and how many of them one-liners find.

    A *one-liner* is a threshold on one sensor, from above or from below, or on the size of its jumps from row to row,
    beyond all normal test rows of the entity: it has no false alarm. It finds an event of which it flags a row. Its
    threshold is chosen by the labels; it tells how easy events are to see, it is no detector (Wu and Keogh, "Current
    Time Series Anomaly Detection Benchmarks are Flawed and are Creating the Illusion of Progress", TKDE 2021).

    "found" is the share of the events that any one-liner finds, "finds" that of the "best alone"; "by chance" what they
    would find of stretches as long, anywhere among the normal rows. NaN without events or normal rows.
    """
    table = by_entity(parts, _events_of)
    return table.astype(dict.fromkeys(("shortest", "longest"), "Int64"))


def _events_of(part: Part) -> Mapping[str, object]:
    lengths = [stop - start for recording in part.test for start, stop in mask_runs(part.labels[recording.id])]
    facts: dict[str, object] = {
        "test rows": len(part.anomalous),
        "anomalous": int(part.anomalous.sum()),
        "events": len(lengths),
        "shortest": min(lengths, default=None),
        "median": float(np.median(lengths)) if lengths else np.nan,
        "longest": max(lengths, default=None),
    }
    thresholds = {"found": np.nan, "by chance": np.nan, "best alone": None, "finds": np.nan, "alone by chance": np.nan}
    if not lengths or part.anomalous.all():
        return facts | thresholds
    found, places, n_normal = _found(part)
    best = int(found.mean(axis=0).argmax())
    share = float(found[:, best].mean())
    kind, sensor = divmod(best, len(part.sensors))
    return facts | {
        "found": float(found.any(axis=1).mean()),
        "by chance": fmean(_by_chance(places, n_normal, length) for length in lengths),
        "best alone": f"{part.sensors[sensor]} {_KINDS[kind]}" if share else None,
        "finds": share,
        "alone by chance": fmean(_by_chance(places[:, [best]], n_normal, length) for length in lengths),
    }


def anomalies(table: pd.DataFrame) -> Finding:
    """Say how many test rows are anomalous."""
    n_rows, shares = int(table["test rows"].sum()), table["anomalous"] / table["test rows"]
    share = table["anomalous"].sum() / n_rows
    if share == 0:
        return Finding("anomalies", "note", "No test row is anomalous: no ranking metric is defined.", "no anomaly")
    f1 = (2 * shares / (1 + shares)).mean()
    of_each = f" ({shares.min():.1%} to {shares.max():.1%} of an entity's)" if len(table) > 1 else ""
    sentence = (
        f"{share:.1%} of the {n_rows:,} test rows are anomalous{of_each}, so flagging every row already gives "
        f"F1 {f1:.3f}."
    )
    brief = f"{share:.1%} of the test rows are anomalous"
    if share > _MANY_ANOMALIES:
        return Finding("anomalies", "fault", f"{sentence} Faults are no exception here.", brief)
    if share < _FEW_ANOMALIES:
        return Finding("anomalies", "note", f"{sentence} A few rows decide every figure.", brief)
    return Finding("anomalies", "good", sentence)


def events(table: pd.DataFrame) -> Finding:
    """Say how many events there are, how long they are, and where one of them decides."""
    some, counts = table[table["events"] > 0], table["events"]
    behind = (Table("Events, and how many of them a threshold on one sensor finds", table, {"median": 1}),)
    if some.empty:
        return Finding("events", "note", "There is no event.", "no event", behind)
    of_each = f", {counts.min()} to {counts.max()} an entity" if len(table) > 1 else ""
    sentence = f"{counts.sum()} events of {some['shortest'].min():,} to {some['longest'].max():,} rows{of_each}."
    one, few = some[some["longest"] > some["anomalous"] / 2], some[counts[some.index] < _FEW_EVENTS]
    if len(one):
        sentence += f" One event has more than half of the anomalous rows{within(one)}, and decides row-wise metrics."
    if len(few):
        sentence += f" Fewer than {_FEW_EVENTS} events{within(few)}: each of them decides."
    brief = f"one event has most anomalous rows{within(one)}" if len(one) else f"few events{within(few)}"
    if len(one) or len(few):
        return Finding("events", "note", sentence, brief, behind)
    return Finding("events", "good", sentence, tables=behind)


def trivial(table: pd.DataFrame) -> Finding:
    """Say whether a threshold on one sensor finds the events."""
    known = table.dropna(subset="found")
    if known.empty:
        return Finding("trivial", "note", "No event has normal rows to be told from.")
    found, by_chance, alone, alone_by_chance = known[["found", "by chance", "finds", "alone by chance"]].mean()
    mean = f", mean over {len(known)} entities" if len(table) > 1 else ""
    best = known["best alone"].iloc[0]
    sentence = (
        f"Thresholds on single sensors, or on their jumps, find {found:.0%} of the events without a false alarm, by "
        f"chance {by_chance:.0%}; the best alone{f' ({best})' if len(table) == 1 and best else ''} {alone:.0%}, by "
        f"chance {alone_by_chance:.0%}{mean}."
    )
    pairs = ((found, by_chance), (alone, alone_by_chance))
    above = [share for share, chance in pairs if share >= chance + _ABOVE_CHANCE]
    if not above:
        return Finding("trivial", "good", sentence)
    certain = known["events"].sum() >= _FEW_EVENTS
    grade: Grade = "fault" if max(above) >= _TRIVIAL and certain else "note"
    brief = f"thresholds on single sensors find {found:.0%} of the events (by chance {by_chance:.0%})"
    if grade == "fault" and found < by_chance + _ABOVE_CHANCE:
        brief = f"a threshold on one sensor finds {alone:.0%} of the events (by chance {alone_by_chance:.0%})"
    return Finding("trivial", grade, sentence, brief)


def _found(part: Part) -> tuple[BoolArray, IntArray, int]:
    """Return which one-liner finds which event, [n_events, n_one_liners].

    And the places of the first and the last of its highest scores among the normal rows, [2, n_one_liners], and the
    number of these rows.
    """
    borders = np.cumsum([0, *(recording.n_rows for recording in part.test)])
    events = np.array(
        [
            (first + start, first + stop)
            for recording, first in zip(part.test, borders.tolist(), strict=False)
            for start, stop in mask_runs(part.labels[recording.id])
        ]
    )
    normal = ~part.anomalous
    found, places = [], []
    for scores in _one_liners(part.test_rows, borders[:-1], np.setdiff1d(events[:, 1], borders)):
        of_normal = scores[normal]
        highest = of_normal.max()
        of_events = np.maximum.reduceat(np.append(scores, -np.inf), events.ravel())[::2]
        found.append(of_events > (highest if np.isfinite(highest) else np.inf))
        places.append((of_normal.argmax(), len(of_normal) - 1 - of_normal[::-1].argmax()))
    return np.stack(found, axis=1), np.array(places).T, int(normal.sum())


def _one_liners(rows: FloatArray, begins: IntArray, ended: IntArray) -> Iterator[FloatArray]:
    """Yield the scores [n_rows] of each: of all sensors from above, from below, and of their jumps to each row.

    Nothing jumps to the first row of a recording, ``begins``. What jumps to the row after an event, ``ended``, only
    jumps back: no false alarm.
    """
    yield from rows.T
    yield from (-column for column in rows.T)
    for column in rows.T:
        jumps = np.abs(np.diff(column, prepend=column[:1]))
        jumps[begins] = 0.0
        jumps[ended] = -np.inf
        yield jumps


def _by_chance(places: IntArray, n_normal: int, length: int) -> float:
    """Return the share of the stretches of this length that hold all the highest normal rows of some one-liner."""
    n_stretches = n_normal - length + 1
    if n_stretches < 1:
        return 1.0
    first, last = places
    begins = np.maximum(last - length + 1, 0)
    ends = np.minimum(first, n_stretches - 1) + 1
    some = begins < ends
    changes = np.zeros(n_stretches + 1, dtype=np.int64)
    np.add.at(changes, begins[some], 1)
    np.add.at(changes, ends[some], -1)
    return float((np.cumsum(changes)[:-1] > 0).mean())
