"""Normal rows divided into those that train a detector and later ones, on which its threshold is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tsadbench.base import Recording

# A row's score sees the rows before it, and neighbours resemble each other: between the two lie rows of neither.
GAP = 100
ONE_PART_IN = 5


def held_out(recordings: Sequence[Recording]) -> tuple[tuple[Recording, ...], tuple[Recording, ...]]:
    """Return the rows to be trained on, and those of the last fifth; the 100 rows between them are in neither.

    The rows of all recordings are counted through, in their order. The last fifth of each recording would cost a gap a
    recording and leave short ones without rows; and a threshold is for days to come, so a whole recording that the
    detector has not seen, from another day perhaps, tells more than the end of one whose beginning it was trained on.

    Returns
    -------
    tuple, tuple
        In the order of ``recordings``. A recording that lies wholly in one part is the same object; a piece of one is
        named after its rows, "plant[0:120]".
    """
    n_rows = sum(recording.n_rows for recording in recordings)
    first = n_rows - n_rows // ONE_PART_IN
    return tuple(between(recordings, 0, first - GAP)), tuple(between(recordings, first, n_rows))


def between(recordings: Sequence[Recording], first: int, end: int) -> Iterator[Recording]:
    """Yield what recordings hold of the rows from ``first`` to ``end - 1``, counted over all of them."""
    for recording in recordings:
        start, stop = max(first, 0), min(end, recording.n_rows)
        if (start, stop) == (0, recording.n_rows):
            yield recording
        elif start < stop:
            yield recording.rows(start, stop, id=f"{recording.id}[{start}:{stop}]")
        first, end = first - recording.n_rows, end - recording.n_rows
