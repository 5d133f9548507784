"""Windows over recordings."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from tsadbench_detectors.deep.windows import Windows


def test_windows_by_hand() -> None:
    windows = Windows([torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([[7.0], [8.0], [9.0]])], length=3)
    assert len(windows) == 3
    cut_out = windows[torch.tensor([2, 0, 1])]
    assert cut_out.shape == (3, 3, 1)
    assert cut_out[..., 0].tolist() == [[7, 8, 9], [0, 1, 2], [1, 2, 3]]


@given(n_rows=st.lists(st.integers(1, 9), min_size=1, max_size=4), length=st.integers(1, 6))
def test_every_window_lies_within_one_recording(n_rows: list[int], length: int) -> None:
    recordings = [np.arange(2 * n, dtype=np.float64).reshape(n, 2) + 100 * i for i, n in enumerate(n_rows)]
    expected = [rows[start : start + length] for rows in recordings for start in range(len(rows) - length + 1)]
    windows = Windows([torch.from_numpy(rows) for rows in recordings], length)
    assert len(windows) == len(expected)
    cut_out = windows[torch.arange(len(windows))].numpy()
    np.testing.assert_array_equal(cut_out, np.reshape(expected, (-1, length, 2)))
