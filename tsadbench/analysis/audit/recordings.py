"""Checks of single recordings: gaps in time, repeated rows, sensors that never move."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tsadbench.analysis.audit.findings import Finding
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.recording import Recording
from tsadbench.leaderboard.render import Table
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.text import first_of

# A step longer than this many usual ones is a gap.
_GAP = 3.0


def recordings(data: LabelledDataset) -> Iterator[Finding]:
    """Say where time jumps, how many rows repeat the one before, and which sensors never move in a recording."""
    train, labels = data.dataset.train, data.labels.rows
    every = [*train, *data.dataset.test]
    anomalous = [np.flatnonzero(labels[one.id]) if one.id in labels else None for one in every]
    still = [list(np.array(one.sensors)[np.ptp(one.values, axis=0) == 0.0]) for one in every]
    table = pd.DataFrame(
        {
            "recording": [one.id for one in every],
            "role": ["train"] * len(train) + ["test"] * len(data.dataset.test),
            "rows": [one.n_rows for one in every],
            "anomalous": pd.array([None if rows is None else len(rows) for rows in anomalous], "Int64"),
            "from row": pd.array([rows[0] if rows is not None and len(rows) else None for rows in anomalous], "Int64"),
            "step, s": [np.median(_steps(one)) if len(_steps(one)) else np.nan for one in every],
            "repeated rows": [int((one.values[1:] == one.values[:-1]).all(axis=1).sum()) for one in every],
            "never move": [", ".join(names) or None for names in still],
        }
    )
    yield _gaps(pd.DataFrame([jump for one in every for jump in _jumps(one)], columns=["recording", "before row", "s"]))
    behind = (Table("Recordings", table, {"step, s": None}),)
    if repeated := int(table["repeated rows"].sum()):
        share = repeated / table["rows"].sum()
        sentence = f"{repeated:,} rows repeat the row before them in every sensor ({share:.1%})."
        yield Finding("duplicates", "note", sentence, f"{share:.1%} of the rows repeat the one before", behind)
    else:
        yield Finding("duplicates", "good", "No row repeats the one before it.", tables=behind)
    if names := [f"{name} in {one.id}" for one, names in zip(every, still, strict=True) for name in names]:
        sentence = f"{len(names)} times a sensor never moves in a recording: {first_of(names)}."
        yield Finding("constant", "note", sentence, "sensors that never move in a recording")
    else:
        yield Finding("constant", "good", f"Each of the {len(every[0].sensors)} sensors moves in every recording.")


def _gaps(table: pd.DataFrame) -> Finding:
    if table.empty:
        return Finding("gaps", "good", "Time runs without gaps, or there is none.")
    table = table.sort_values(["s", "recording", "before row"], ascending=False)
    first = table.head(6).itertuples(index=False, name=None)
    longest = "; ".join(f"{seconds:g} s before row {row} of {recording}" for recording, row, seconds in first)
    brief, behind = f"{len(table)} gaps in time", (Table("Gaps in time", table, {"s": None}),)
    return Finding("gaps", "note", f"{brief}; the longest: {longest}.", brief, behind)


def _jumps(recording: Recording) -> Iterator[tuple[str, int, float]]:
    if len(steps := _steps(recording)):
        for place in np.flatnonzero(steps > _GAP * np.median(steps)).tolist():
            yield recording.id, place + 1, float(steps[place])


def _steps(recording: Recording) -> FloatArray:
    return np.empty(0) if recording.time is None else np.diff(recording.time)
