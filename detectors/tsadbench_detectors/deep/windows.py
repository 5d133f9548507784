"""Windows over recordings, cut out by the batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Windows:
    """Every window of ``length`` rows that lies within one recording, in order.

    Nothing is cut out before a batch asks for it, so memory grows with the batch and not with the series.

    Parameters
    ----------
    recordings
        Tensors [n_rows, n_sensors]; one shorter than a window gives none.
    length
        Rows of a window.
    """

    def __init__(self, recordings: Sequence[Tensor], length: int) -> None:
        self._rows = recordings[0] if len(recordings) == 1 else torch.cat(list(recordings))
        self._offsets = torch.arange(length)
        self._starts = torch.cat(_starts([len(rows) for rows in recordings], length))

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, numbers: Tensor) -> Tensor:
        """Return the windows of these numbers, [n_numbers, length, n_sensors]."""
        return self._rows[self._starts[numbers][:, None] + self._offsets]


def _starts(n_rows: Sequence[int], length: int) -> list[Tensor]:
    starts, first = [], 0
    for n in n_rows:
        starts.append(torch.arange(first, first + max(0, n - length + 1)))
        first += n
    return starts
