"""Training rows cut into blocks: one block of each recording held out, the others trained on, a gap between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tsadbench.base.recording import Recording
from tsadbench.errors import DataError

# Rows next to each other are all but equal, even for a detector that sees one row at a time.
SMALLEST_GAP = 30
# For a detector whose scores hang on all rows before: no gap is wide enough then.
GAP_WITHOUT_END = 100
# With fewer evaluated rows a held-out block tells nothing.
_FEWEST_ROWS = 50


@dataclass(frozen=True, slots=True)
class Reach:
    """How many rows around a row its score may hang on, at most, over all points of a search.

    Parameters
    ----------
    before, after
        Rows before and after it.
    """

    before: int
    after: int

    @property
    def gap(self) -> int:
        """Rows that separate rows trained on from rows held out."""
        return max(self.before + self.after, SMALLEST_GAP)


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """One division of the training recordings.

    Parameters
    ----------
    train
        What is trained on: recordings of their own, none across a gap.
    held_out
        What is not. Their first ``context`` rows are context, in a gap where there is one, and are not evaluated.
    context
        How many.
    """

    train: tuple[Recording, ...]
    held_out: tuple[Recording, ...]
    context: int


def make_folds(recordings: Sequence[Recording], n_folds: int, reach: Reach) -> tuple[Fold, ...]:
    """Return the folds; fold k holds out the k-th of ``n_folds`` equal blocks of each recording.

    Between a held-out block and the rows trained on lie ``reach.gap`` rows that are neither. A recording whose blocks
    are too short to be held out is trained on whole.

    Raises
    ------
    DataError
        If no recording is long enough to be held out, or a fold would leave too little to train on.
    """
    shortest = reach.before + _FEWEST_ROWS
    long_enough = {one.id for one in recordings if one.n_rows // n_folds >= shortest}
    if not long_enough:
        longest = max(one.n_rows for one in recordings)
        raise DataError(
            f"expected a training recording whose {n_folds} blocks have at least {shortest} rows each (a score sees "
            f"{reach.before} rows before its own), the longest recording has {longest} rows in all; {_ADVICE}"
        )
    folds = tuple(_fold(recordings, number, n_folds, reach, long_enough) for number in range(n_folds))
    for number, fold in enumerate(folds, start=1):
        longest = max((one.n_rows for one in fold.train), default=0)
        if longest <= reach.gap:
            raise DataError(
                f"fold {number} of {n_folds} leaves at most {longest} rows in a row to train on, expected more than "
                f"{reach.gap}; {_ADVICE}"
            )
    return folds


_ADVICE = "take fewer --folds, or fix the window: --detector NAME[window=...]"


def _fold(recordings: Sequence[Recording], number: int, n_folds: int, reach: Reach, long_enough: set[str]) -> Fold:
    train: list[Recording] = []
    held_out: list[Recording] = []
    for recording in recordings:
        if recording.id not in long_enough:
            train.append(recording)
            continue
        start, stop = (recording.n_rows * border // n_folds for border in (number, number + 1))
        # The context comes from the gap before the block; the first block has none, and gives its own first rows.
        held_out.append(_part(recording, max(0, start - reach.before), stop))
        before, after = start - reach.gap, stop + reach.gap
        train += [_part(recording, 0, before)] if before > 0 else []
        train += [_part(recording, after, recording.n_rows)] if after < recording.n_rows else []
    return Fold(tuple(train), tuple(held_out), reach.before)


def _part(recording: Recording, start: int, stop: int) -> Recording:
    return recording.rows(start, stop, id=f"{recording.id}[{start}:{stop}]")
