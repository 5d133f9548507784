"""Facts about single recordings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import BoolArray, mask_runs

# A step longer than this many usual ones is a gap.
_GAP = 3.0


@dataclass(frozen=True, slots=True)
class Gap:
    """A jump in time.

    Parameters
    ----------
    row
        The first row after it.
    seconds
        From the row before it.
    """

    row: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingFacts:
    """Facts about one recording, whose role is "train" or "test".

    ``gaps`` are steps of more than three median steps, ``duplicates`` rows equal to the row before them, ``events``
    runs of anomalous rows as (first, one after the last). ``constant`` sensors never move. Without labels, anomalies
    are None.
    """

    id: str
    role: str
    n_rows: int
    n_anomalous: int | None
    first_anomalous: int | None
    step_seconds: float | None
    gaps: tuple[Gap, ...]
    duplicates: int
    constant: tuple[str, ...]
    events: tuple[tuple[int, int], ...] = ()


def facts_of(recording: Recording, role: str, anomalous: BoolArray | None) -> RecordingFacts:
    """Return the facts about one recording.

    Parameters
    ----------
    recording
        The recording.
    role
        "train" or "test".
    anomalous
        Its labels [n_rows]; None if it has none.
    """
    step, gaps = _steps(recording)
    anomalies = np.flatnonzero(anomalous) if anomalous is not None else np.empty(0, dtype=np.int64)
    repeated = (recording.values[1:] == recording.values[:-1]).all(axis=1)
    constant = np.ptp(recording.values, axis=0) == 0.0
    return RecordingFacts(
        id=recording.id,
        role=role,
        n_rows=recording.n_rows,
        n_anomalous=None if anomalous is None else len(anomalies),
        first_anomalous=int(anomalies[0]) if len(anomalies) else None,
        step_seconds=step,
        gaps=gaps,
        duplicates=int(np.count_nonzero(repeated)),
        constant=tuple(sensor for sensor, still in zip(recording.sensors, constant, strict=True) if still),
        events=() if anomalous is None else tuple(mask_runs(anomalous)),
    )


def _steps(recording: Recording) -> tuple[float | None, tuple[Gap, ...]]:
    if recording.time is None or recording.n_rows < 2:
        return None, ()
    steps = np.diff(recording.time)
    usual = float(np.median(steps))
    after = np.flatnonzero(steps > _GAP * usual) + 1
    return usual, tuple(Gap(int(row), float(steps[row - 1])) for row in after)
