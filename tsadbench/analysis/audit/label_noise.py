"""How label noise changes the AUPRC: with labels shifted by some rows, or doubtful rows left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tsadbench.analysis.audit.findings import Finding
from tsadbench.analysis.curves import average_precision
from tsadbench.analysis.stored import Stored
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.shared_rows import shared_rows
from tsadbench.leaderboard.render import Table
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.progress import progress
from tsadbench.utils.text import first_of

# In rows: shifts in both directions, margins after each event.
SHIFTS = (1, 5, 10)
MARGINS = (10, 60)
Int8Array: TypeAlias = NDArray[np.int8]
# Change -> test recording's id -> [n_rows]: 1 anomalous, 0 normal, -1 not counted.
LabelChanges: TypeAlias = Mapping[str, Mapping[str, Int8Array]]
GIVEN = "as given"


class Fit(NamedTuple):
    """One fit's scores for one table row: [n_rows] by recording, and which rows are evaluated (None: all)."""

    label: str
    scores: Mapping[str, FloatArray]
    evaluated: Mapping[str, BoolArray] | None = None


def label_changes(
    data: LabelledDataset, shifts: Sequence[int] = SHIFTS, margins: Sequence[int] = MARGINS
) -> LabelChanges:
    """Return the original and the changed labels: shifted, without contradictory rows, without rows after events.

    Shifted labels repeat the first or last label at a recording's border. Contradictory rows occur in several test
    recordings, anomalous in one and normal in another. A shift that does not fit into every recording is omitted, and
    so is a change that should leave rows out but finds none.
    """
    truth = {name: rows.astype(np.int8) for name, rows in data.labels.rows.items()}
    if not truth:
        return {}
    shortest = min(map(len, truth.values()))
    changes = {GIVEN: truth}
    for shift in sorted(sign * shift for shift in shifts if shift < shortest for sign in (-1, 1)):
        side = f"{abs(shift)} {'row' if abs(shift) == 1 else 'rows'} {'later' if shift > 0 else 'earlier'}"
        changes[side] = {
            name: rows[np.clip(np.arange(len(rows)) - shift, 0, len(rows) - 1)] for name, rows in truth.items()
        }
    left_out = {"without contradictory rows": _contradictory(data)}
    for margin in margins:
        before = {name: pd.Series(rows).rolling(margin, min_periods=1).max().shift() for name, rows in truth.items()}
        left_out[f"without {margin} rows after events"] = {
            name: ((before[name] == 1) & (rows == 0)).to_numpy() for name, rows in truth.items()
        }
    for change, out in left_out.items():
        if any(map(np.any, out.values())):
            changes[change] = {name: np.where(out[name], np.int8(-1), rows) for name, rows in truth.items()}
    return changes


def _contradictory(data: LabelledDataset) -> dict[str, BoolArray]:
    """Return a mask [n_rows] of contradictory rows by test recording; rows of two entities are never the same."""
    truth, contradictory = data.labels.rows, dict[str, BoolArray]()
    for test in grouped(data.dataset.test, lambda one: data.dataset.entities.get(one.id)).values():
        numbers = shared_rows(test, untimed="by value")
        every, anomalous = np.concatenate(numbers), np.concatenate([truth[one.id] for one in test])
        both = np.setdiff1d(np.intersect1d(every[anomalous], every[~anomalous]), [-1])
        contradictory |= {one.id: np.isin(rows, both) for one, rows in zip(test, numbers, strict=True)}
    return contradictory


def fits_of(stored: Stored, data: LabelledDataset) -> Iterator[Fit]:
    """Yield the scores of stored trials' fits on the evaluated rows of their split."""
    labels, members = stored.scored(), data.labels.splits.get(stored.split, ())
    for done, (label, results) in enumerate(stored.by_row(data, labels)):
        progress(done, len(labels), label)
        for result in results:
            scored = [one for name, one in result.recordings.items() if name in members]
            for of_fit in grouped(scored, lambda one: one.episode).values():
                scores = {one.recording.id: one.scores for one in of_fit}
                yield Fit(label, scores, {one.recording.id: one.evaluated for one in of_fit})


def label_noise(about: str, fits: Iterable[Fit], changes: LabelChanges) -> Finding:
    """Report how changed labels change each row's AUPRC (mean over fits) and the order of rows.

    Tables: AUPRC and rank by row and change; the number of rows per change, and the pairs that change places.
    """
    values = [{"": fit.label, **{name: _auprc(fit, labels) for name, labels in changes.items()}} for fit in fits]
    auprc = pd.DataFrame(values, columns=["", *changes]).groupby("", sort=False).mean().astype(float)
    auprc = auprc.sort_values(GIVEN, ascending=False, kind="stable")
    names = [name for name in changes if name != GIVEN]
    places = {name: _change_places(auprc[GIVEN], auprc[name]) for name in names}
    given, *others = (np.concatenate([*labels.values()]) for labels in changes.values())
    touched = {
        "labels": names,
        "changed rows": [np.count_nonzero((one != given) & (one >= 0)) for one in others],
        "rows left out": [np.count_nonzero(one < 0) for one in others],
        "pairs that change places": [*map(len, places.values())],
        "which": [first_of(pairs, 6) or None for pairs in places.values()],
    }
    frames = {
        "AUPRC by other labels": auprc.reset_index(),
        "Rank by other labels": auprc.rank(ascending=False, method="min").astype("Int64").reset_index(),
        "What other labels change": pd.DataFrame(touched),
    }
    tables = tuple(Table(f"{title}: {about}", frame) for title, frame in frames.items())
    moves = auprc.sub(auprc[GIVEN], axis=0)[names].melt(ignore_index=False).dropna()
    if moves.empty:
        return Finding("label-noise", "note", f"No AUPRC is defined for {about}.", tables=tables)
    largest = moves.iloc[int(moves["value"].abs().argmax())]
    by = f"{largest['value']:+.4f} ({largest.name}, {largest['variable']})"
    sentence = f"Changed labels move the AUPRC of {about} by up to {by}"
    moved = [name for name in names if places[name]]
    if not moved:
        return Finding("label-noise", "good", f"{sentence}; no two rows change places.", tables=tables)
    most = max(moved, key=lambda name: len(places[name]))
    how_often = f"rows change places under {len(moved)} of {len(places)} changes"
    sentence = f"{sentence}; {how_often}, most under {most!r}: {first_of(places[most], 6)}."
    return Finding("label-noise", "note", sentence, "rows change places when labels shift by a few rows", tables)


def _auprc(fit: Fit, labels: Mapping[str, Int8Array]) -> float:
    scores, truth = (np.concatenate([of[name] for name in fit.scores]) for of in (fit.scores, labels))
    kept = truth >= 0
    if fit.evaluated is not None:
        kept &= np.concatenate([fit.evaluated[name] for name in fit.scores])
    found = average_precision(scores[kept], truth[kept] == 1)
    return np.nan if found is None else found


def _change_places(before: pd.Series[float], now: pd.Series[float]) -> list[str]:
    """Return the pairs whose order is now reversed, sorted by their original place."""
    pairs = combinations(before.index, 2)  # the best first
    return [f"{high} with {low}" for high, low in pairs if before[high] > before[low] and now[high] < now[low]]
