"""Which recordings are of one stretch of operation: the independent unit of statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tsadbench.base.dataset import Dataset
from tsadbench.base.recording import Recording
from tsadbench.base.shared_rows import shared_rows
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped

# A recording continues another one that ended at most this many sampling steps before it begins.
STEPS = 10
# A recording is a copy of another one at another time if it has at least this share of its rows.
COPIED = 0.5


def sessions_of(dataset: Dataset) -> Mapping[str, str]:
    """Return the session of every training and test recording, by id: as declared, else inferred.

    Two recordings are inferred to be of one session if they share a row (the same values and, if all recordings have
    times, the same time), if half of one's rows occur in the other at any time, or if one begins while the other runs
    or within ten sampling steps after its end. Whatever is joined through others is joined. Times tell nothing if two
    different recordings of an entity begin at the same time: they then count from each one's own beginning. An inferred
    session is named after its first test recording.

    Examples
    --------
    >>> time = np.arange(3.0)
    >>> one, next_ = (Recording(name, time[:, None] + i, ("flow",), time + i) for name, i in (("one", 0), ("next", 9)))
    >>> later = Recording("later", time[:, None] + 99, ("flow",), time + 99)
    >>> sessions_of(Dataset("d", (one,), (next_, later), {}))
    {'one': 'next and 1 more', 'next': 'next and 1 more', 'later': 'later'}
    """
    if dataset.sessions:
        return dataset.sessions
    # Slow to import, and most data sets declare their sessions.
    from scipy.sparse.csgraph import connected_components

    recordings = (*dataset.test, *dataset.train)
    sharing = _sharing(recordings)
    joined = sharing | _following(recordings, dataset.entities, sharing)
    _, components = connected_components(joined, directed=False)
    named: dict[str, str] = {}
    for members in grouped(range(len(recordings)), lambda i: components[i]).values():
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        named |= dict.fromkeys([recordings[i].id for i in members], f"{recordings[members[0]].id}{more}")
    return {recording.id: named[recording.id] for recording in (*dataset.train, *dataset.test)}


def _sharing(recordings: Sequence[Recording]) -> BoolArray:
    """Return [n, n], whether two recordings share a row, or one is a copy of the other at another time."""
    joined = _share_of_rows(recordings) > 0.0
    if all(recording.time is not None for recording in recordings):
        joined |= _share_of_rows([replace(recording, time=None) for recording in recordings]) >= COPIED
    return joined


def _share_of_rows(recordings: Sequence[Recording]) -> FloatArray:
    """Return [n, n]: the share of the first recording's rows that the second one has."""
    from scipy.sparse import coo_array

    numbers = shared_rows(recordings, untimed="by value")
    n_rows = np.array([len(rows) for rows in numbers])
    places = np.repeat(np.arange(len(numbers)), n_rows), np.concatenate(numbers) + 1
    counts = coo_array((np.ones(n_rows.sum()), places)).tocsr()[:, 1:]  # without those that nothing else has, -1
    return np.asarray((counts @ (counts > 0).astype(np.float64).T).toarray() / n_rows[:, None])


def _following(recordings: Sequence[Recording], entities: Mapping[str, str], sharing: BoolArray) -> BoolArray:
    """Return [n, n], whether the second recording begins while the first runs, or within ten steps after its end."""
    joined = np.zeros_like(sharing)
    times = {i: recording.time for i, recording in enumerate(recordings) if recording.time is not None}
    for members in grouped(times, lambda i: entities.get(recordings[i].id)).values():
        start, stop = (np.array([times[i][place] for i in members]) for place in (0, -1))
        together = (start[:, None] == start) & ~sharing[np.ix_(members, members)]
        if (together & ~np.eye(len(members), dtype=np.bool_)).any():
            continue
        steps = np.concatenate([np.diff(times[i]) for i in members])
        latest = stop + STEPS * float(np.median(steps)) if len(steps) else stop
        joined[np.ix_(members, members)] = (start >= start[:, None]) & (start <= latest[:, None])
    return joined
