"""Windows over recordings, cut batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

# Windows scored at once. It does not change the scores; with about 2,000 sequences (of 8 sensors), a recurrent layer's
# step still fits in a core's cache.
WINDOWS_AT_ONCE = 256


class Windows:
    """Every window of ``length`` rows that lies within one recording, in order; or every ``stride``-th of them.

    Nothing is cut out before a batch asks for it, so memory grows with the batch and not with the series.

    The recordings are tensors [n_rows, ...]; one shorter than a window gives none.
    """

    def __init__(self, recordings: Sequence[Tensor], length: int, stride: int = 1) -> None:
        self._rows = recordings[0] if len(recordings) == 1 else torch.cat(list(recordings))
        self._offsets = torch.arange(length, device=self._rows.device)
        starts = _starts([len(rows) for rows in recordings], length, stride)
        self._counts = [len(of_recording) for of_recording in starts]
        self._starts = torch.cat(starts).to(self._rows.device)
        self._n_possible = [max(0, len(rows) - length + 1) for rows in recordings]
        self._stride = stride
        # Number of later windows that overlap a window.
        self._overlapping = (length - 1) // stride

    @property
    def device(self) -> torch.device:
        """The device of the rows."""
        return self._rows.device

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, numbers: Tensor) -> Tensor:
        """Return the windows with these numbers, which may be on any device, [n_numbers, length, ...]."""
        starts = self._starts[numbers.to(self._starts.device)]
        return self._rows[starts[:, None] + self._offsets]

    def n_without_stride(self, numbers: Tensor) -> int:
        """Return the number of windows of stride 1 that the windows ``numbers``, [n_numbers] ascending, replace.

        Each counts itself and the windows that the stride skips up to the next one, or to its recording's end.
        """
        ends = torch.tensor(self._counts).cumsum(0)
        per_recording = torch.bincount(torch.bucketize(numbers, ends, right=True), minlength=len(ends)).tolist()
        return sum(min(self._stride * n, most) for n, most in zip(per_recording, self._n_possible, strict=True))

    def hold_out(self, share: float) -> tuple[Tensor, Tensor]:
        """Return the numbers of the windows to train on, and of those held out.

        The last ``share`` of each recording's windows is held out. Earlier windows that overlap them are on neither
        side, so no row is on both. If a recording would lose more than half of its windows, nothing of it is held
        out.
        """
        numbers = torch.arange(len(self))
        kept, held_out = [], []
        for of_recording in torch.split(numbers, self._counts):
            count = len(of_recording)
            n_held_out = round(share * count)
            n_kept = count - n_held_out - self._overlapping
            if n_held_out == 0 or 2 * n_kept < count:
                n_kept, n_held_out = count, 0
            kept.append(of_recording[:n_kept])
            held_out.append(of_recording[count - n_held_out :])
        return torch.cat(kept), torch.cat(held_out)


def _starts(n_rows: Sequence[int], length: int, stride: int) -> list[Tensor]:
    starts, first = [], 0
    for n in n_rows:
        starts.append(torch.arange(first, first + max(0, n - length + 1), stride))
        first += n
    return starts
