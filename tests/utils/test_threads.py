"""Numbers of threads, as threadpoolctl and torch tell them."""

from __future__ import annotations

import numpy as np
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from tsadbench.utils.threads import limit_threads, limited_threads


def threads() -> set[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return {pool["num_threads"] for pool in threadpool_info()} | {torch.get_num_threads()}


def test_a_block_is_limited_and_what_was_comes_back():
    before = torch.get_num_threads()
    with threadpool_limits():
        limit_threads(2)
        with limited_threads(1):
            assert threads() == {1}
        assert threads() == {2}
        try:
            with limited_threads(1):
                raise KeyError
        except KeyError:
            assert threads() == {2}
    torch.set_num_threads(before)
