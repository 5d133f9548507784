"""What training and scoring of the convolutional and small networks cost, beside their products' arithmetic.

The floor is the time of as many multiply-adds in a large product of matrices, measured in the same process. PyTorch
counts them; those of padding are among them. The number of threads is the caller's: OMP_NUM_THREADS.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.helpers.noise import noise
from tsadbench_detectors.conv_ae import ConvAE
from tsadbench_detectors.deep.network_detector import NetworkDetector
from tsadbench_detectors.gdn import GDN
from tsadbench_detectors.mscred import MSCRED
from tsadbench_detectors.vanilla_ae import VanillaAE

NETWORKS: dict[str, type[NetworkDetector]] = {"mscred": MSCRED, "conv-ae": ConvAE, "vanilla-ae": VanillaAE, "gdn": GDN}
ROUNDS, SIDE = 10, 512


def cpu_seconds(work: Callable[[], object]) -> float:
    """The least of several rounds: what other processes on this machine take away is not the work's."""
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def told(benchmark, work: Callable[[], object]) -> None:
    with FlopCounterMode(display=False) as counter:
        work()
    square = torch.randn(SIDE, SIDE)
    floor = counter.get_total_flops() / (2 * SIDE**3) * cpu_seconds(lambda: square @ square)
    seconds = cpu_seconds(work)
    benchmark.extra_info.update(ms=1e3 * seconds, floor_ms=1e3 * floor, ratio=seconds / floor)
    benchmark.pedantic(work, rounds=3)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_gradient_of_one_batch(benchmark, name: str) -> None:
    detector = NETWORKS[name](epochs=1, min_steps=1).fit(noise(300))
    detector.network_.train()
    windows = torch.randn(detector.batch_size, detector._window + detector.horizon, 8)

    def step() -> None:
        detector.network_.zero_grad()
        detector._loss(windows).backward()

    told(benchmark, step)


@pytest.mark.parametrize("name", NETWORKS)
def test_scoring_1024_rows(benchmark, name: str) -> None:
    detector = NETWORKS[name](epochs=1, min_steps=1).fit(noise(300))
    fresh = noise(1_024)
    told(benchmark, lambda: detector.score(fresh))
