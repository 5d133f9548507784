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
    recordings = (*dataset.train, *dataset.test)
    sharing = _sharing(recordings)
    joined = sharing | _following(recordings, dataset.entities, sharing)
    # Slow to import, and most data sets declare their sessions.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, components = connected_components(coo_array(joined), directed=False)
    place = {recording.id: i for i, recording in enumerate(recordings)}
    named: dict[str, str] = {}
    for members in grouped(
        [recording.id for recording in (*dataset.test, *dataset.train)], lambda name: components[place[name]]
    ).values():
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        named |= dict.fromkeys(members, f"{members[0]}{more}")
    return {name: named[name] for name in place}


def _sharing(recordings: Sequence[Recording]) -> BoolArray:
    """Return [n, n], whether two recordings share a row, or one is a copy of the other at another time."""
    joined = _share_of_rows(recordings) > 0.0
    if all(recording.time is not None for recording in recordings):
        untimed = [replace(recording, time=None) for recording in recordings]
        joined |= _share_of_rows(untimed) >= COPIED
    return joined


def _share_of_rows(recordings: Sequence[Recording]) -> FloatArray:
    """Return [n, n]: the share of the first recording's rows that the second one has."""
    from scipy.sparse import coo_array

    numbers = shared_rows(recordings, untimed="by value")
    place = np.repeat(np.arange(len(numbers)), [len(rows) for rows in numbers])
    number = np.concatenate(numbers)
    place, number = place[number >= 0], number[number >= 0]
    shape = (len(recordings), int(number.max(initial=0)) + 1)
    rows = coo_array((np.ones(len(place)), (place, number)), shape=shape).tocsr()
    shared: FloatArray = (rows @ (rows > 0).astype(np.float64).T).toarray()
    n_rows: FloatArray = np.array([[recording.n_rows] for recording in recordings], dtype=np.float64)
    return shared / n_rows


def _following(recordings: Sequence[Recording], entities: Mapping[str, str], sharing: BoolArray) -> BoolArray:
    """Return [n, n], whether the second recording begins while the first runs, or within ten steps after its end."""
    joined = np.zeros_like(sharing)
    timed = [i for i, recording in enumerate(recordings) if recording.time is not None]
    for members in grouped(timed, lambda i: entities.get(recordings[i].id)).values():
        times = [time for i in members if (time := recordings[i].time) is not None]
        start, stop = (np.array([time[place] for time in times]) for place in (0, -1))
        together = (start[:, None] == start) & ~sharing[np.ix_(members, members)]
        if (together & ~np.eye(len(members), dtype=np.bool_)).any():
            continue
        steps = np.concatenate([np.diff(time) for time in times])
        latest = stop + STEPS * float(np.median(steps)) if len(steps) else stop
        joined[np.ix_(members, members)] = (start >= start[:, None]) & (start <= latest[:, None])
    return joined
