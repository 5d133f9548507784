"""Which rows of a recording are for training and which for testing, and where missing values cut them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tsadbench.datasets.cards.contents import Contents
from tsadbench.datasets.cards.gaps import complete_stretches
from tsadbench.datasets.cards.sections import BEFORE_FIRST_EVENT, Single
from tsadbench.datasets.cards.sources import Source
from tsadbench.utils.issues import Issue


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a recording that become one recording of the data set.

    Parameters
    ----------
    id
        The id of the new recording.
    base
        The id of the recording that it is taken from.
    start, stop
        Its rows, ``start`` to ``stop - 1``.
    is_train
        Whether it is for training.
    """

    id: str
    base: str
    start: int
    stop: int
    is_train: bool


def pieces_of(source: Source, contents: Contents) -> tuple[list[Piece], list[Issue]]:
    """Return the training rows and the test rows of a recording, and what is wrong with that division."""
    n_rows, issues = len(contents.values), list[Issue]()
    border = 0 if source.role == "test" else n_rows
    if source.trains_before_event:
        border, issues = _before_first_event(source, contents)
    elif isinstance(source.part, Single):
        border, issues = _n_train_rows(source, source.part, contents)
    train, test = Piece(source.id, source.id, 0, border, True), Piece(source.id, source.id, border, n_rows, False)
    if source.role == "train":
        pieces = [train]
    elif source.role == "test":
        pieces = [test]
    else:
        pieces = [replace(train, id=f"{source.id}/train"), replace(test, id=f"{source.id}/test")]
    if n_rows > 0 and source.trains_before_event:
        pieces = [
            piece for piece in pieces if piece.start < piece.stop
        ]  # an event in the first row leaves none to train
    for piece in pieces:
        if piece.start == piece.stop:
            name = source.tables[0].name
            issues.append(Issue(name, f"recording {piece.id!r} has no rows; complete the file, or leave it out"))
        elif piece.is_train and contents.labels is not None and contents.labels[piece.start : piece.stop].any():
            issues.append(_anomalous_training_row(piece, contents))
    return pieces, issues


def _anomalous_training_row(piece: Piece, contents: Contents) -> Issue:
    rows = np.zeros(0, dtype=np.bool_) if contents.labels is None else contents.labels[piece.start : piece.stop]
    text = (
        f"recording {piece.id!r} is for training, which takes normal rows only, but this row is labelled anomalous; "
        f'take the recording out, cut it before the anomaly, or set rows = "{BEFORE_FIRST_EVENT}" in [train]'
    )
    return contents.place(piece.start + int(np.argmax(rows))).issue(text, count=int(np.count_nonzero(rows)))


def _before_first_event(source: Source, contents: Contents) -> tuple[int, list[Issue]]:
    """Return how many rows lie before a recording's first event."""
    n_rows, labels = len(contents.values), contents.labels
    if labels is not None and labels.any():
        return int(np.argmax(labels)), []
    if source.role == "train" or labels is None:  # labels that cannot be read are reported already
        return n_rows, []
    text = f"recording {source.id!r} has no event, so no row is left to test on; name it in one part alone"
    return n_rows, [Issue(source.tables[0].name, text)]


def _n_train_rows(source: Source, part: Single, contents: Contents) -> tuple[int, list[Issue]]:
    """Return how many rows of a file with both parts are training rows, by number or by the file's name."""
    n_rows, name, issues = len(contents.values), source.tables[0].name, list[Issue]()
    n_train = part.train_rows if isinstance(part.train_rows, int) else source.tables[0].file.train_rows or 0
    if n_train == 0:
        text = "expected the number of training rows in the file's name, as in ..._tr_1007_...; or set train_rows"
        issues.append(Issue(name, text))
    if n_train >= n_rows:
        text = f"{n_train} rows are for training, but it has {n_rows}: none is left to test on"
        issues.append(Issue(name, text))
    return min(n_train, n_rows), issues


class Cut(NamedTuple):
    """What cutting a recording leaves out: rows with missing values, short pieces, and the anomalous rows of both."""

    missing_rows: int = 0
    short_pieces: int = 0
    short_rows: int = 0
    anomalous_rows: int = 0

    def plus(self, other: Cut) -> Cut:
        """Return the sums."""
        return Cut(*(one + more for one, more in zip(self, other, strict=True)))


def cut_at_gaps(pieces: Sequence[Piece], contents: Contents, at_least: int) -> tuple[list[Piece], Cut]:
    """Return what missing values leave of pieces: those without any, and their stretches of at least so many rows."""
    kept, total = list[Piece](), Cut()
    for piece in pieces:
        stretches = complete_stretches(contents, piece.start, piece.stop)
        if stretches == [(piece.start, piece.stop)]:
            kept.append(piece)
            continue
        long = [(start, stop) for start, stop in stretches if stop - start >= at_least]
        kept += [
            replace(piece, id=f"{piece.id}/{number}", start=start, stop=stop)
            for number, (start, stop) in enumerate(long, start=1)
        ]
        complete, rows = (sum(stop - start for start, stop in some) for some in (stretches, long))
        anomalous = 0
        if contents.labels is not None:
            anomalous = int(np.count_nonzero(contents.labels[piece.start : piece.stop]))
            anomalous -= sum(int(np.count_nonzero(contents.labels[start:stop])) for start, stop in long)
        missing = piece.stop - piece.start - complete
        total = total.plus(Cut(missing, len(stretches) - len(long), complete - rows, anomalous))
    return kept, total
