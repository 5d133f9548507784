"""Training rows cut into blocks: one block of each recording held out, the others trained on, a gap between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tsadbench.base.recording import Recording
from tsadbench.errors import DataError

# Neighbouring rows are nearly equal, so even a detector that sees one row at a time needs a gap.
SMALLEST_GAP = 30
# Gap for detectors with unbounded memory.
GAP_WITHOUT_END = 100
# The value of a held-out block with fewer evaluated rows is mostly noise.
_FEWEST_ROWS = 50
_ADVICE = "give longer recordings, or fix the window: --detector NAME[window=...]"


@dataclass(frozen=True, slots=True)
class Reach:
    """The largest number of rows before and after a row that its score may depend on, over all points of a search."""

    before: int
    after: int

    @property
    def gap(self) -> int:
        """Number of rows between rows trained on and rows held out."""
        return max(self.before + self.after, SMALLEST_GAP)


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """One division of the training recordings.

    ``train`` are recordings of their own, none of which crosses a gap. The first ``context`` rows of each ``held_out``
    recording are not evaluated; they lie in the gap, if there is one before the block.
    """

    train: tuple[Recording, ...]
    held_out: tuple[Recording, ...]
    context: int


def make_folds(recordings: Sequence[Recording], n_folds: int, reach: Reach) -> tuple[Fold, ...]:
    """Return the folds; fold k holds out the k-th of ``n_folds`` equal blocks of each recording.

    ``reach.gap`` rows between a held-out block and the rows trained on are neither. A recording whose blocks are too
    short to be held out is trained on whole. A DataError if no recording is long enough to be held out, or a fold would
    leave too little to train on.
    """
    shortest = reach.before + _FEWEST_ROWS
    long_enough = {recording.id for recording in recordings if recording.n_rows // n_folds >= shortest}
    if not long_enough:
        longest = max(recording.n_rows for recording in recordings)
        raise DataError(
            f"expected a training recording whose {n_folds} blocks have at least {shortest} rows each (a score sees "
            f"{reach.before} rows before its own), the longest recording has {longest} rows in all; {_ADVICE}"
        )
    folds = tuple(_fold(recordings, number, n_folds, reach, long_enough) for number in range(n_folds))
    for number, fold in enumerate(folds, start=1):
        longest = max((recording.n_rows for recording in fold.train), default=0)
        if longest <= reach.gap:
            raise DataError(
                f"fold {number} of {n_folds} leaves at most {longest} rows in a row to train on, expected more than "
                f"{reach.gap}; {_ADVICE}"
            )
    return folds


def _fold(recordings: Sequence[Recording], number: int, n_folds: int, reach: Reach, long_enough: set[str]) -> Fold:
    train: list[Recording] = []
    held_out: list[Recording] = []
    for recording in recordings:
        if recording.id not in long_enough:
            train.append(recording)
            continue
        start, stop = (recording.n_rows * border // n_folds for border in (number, number + 1))
        # The context comes from the gap before the block; the first block has none and gives up its own first rows.
        held_out.append(_part(recording, max(0, start - reach.before), stop))
        before, after = start - reach.gap, stop + reach.gap
        train += [_part(recording, 0, before)] if before > 0 else []
        train += [_part(recording, after, recording.n_rows)] if after < recording.n_rows else []
    return Fold(tuple(train), tuple(held_out), reach.before)


def _part(recording: Recording, start: int, stop: int) -> Recording:
    return recording.rows(start, stop, id=f"{recording.id}[{start}:{stop}]")
