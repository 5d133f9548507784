"""Recordings as frames on a socket, and back."""

from __future__ import annotations

from collections.abc import Sequence

from tsadbench.base.recording import Recording
from tsadbench.sandbox.wire import Array, Header


def packed(kind: str, recordings: Sequence[Recording]) -> tuple[Header, list[Array]]:
    """Return the header and the arrays of a frame that carries recordings of the same sensors."""
    arrays: list[Array] = []
    for recording in recordings:
        arrays += [recording.values] if recording.time is None else [recording.values, recording.time]
    described = [[recording.id, recording.time is not None] for recording in recordings]
    return {"kind": kind, "sensors": list(recordings[0].sensors), "recordings": described}, arrays


def unpacked(header: Header, arrays: Sequence[Array]) -> tuple[Recording, ...]:
    """Return the recordings that a frame carries; the arrays become read-only."""
    for array in arrays:
        array.flags.writeable = False  # a recording copies arrays that can be written to
    remaining = iter(arrays)
    return tuple(
        Recording(name, next(remaining), tuple(header["sensors"]), next(remaining) if has_time else None)  # type: ignore[arg-type]
        for name, has_time in header["recordings"]
    )
