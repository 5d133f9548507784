"""What training and scoring of networks cost, beside the products of matrices that they cannot do without.

The floor of the convolutional and small ones is the time of as many multiply-adds in a large product of matrices, those
of padding among them; that of the recurrent ones, their own products at every step. Both are measured in the same
process. The number of threads is the caller's: OMP_NUM_THREADS.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tests.helpers.noise import noise
from tsadbench_detectors import lstm_ae, lstm_vae, vanilla_lstm
from tsadbench_detectors.conv_ae import ConvAE
from tsadbench_detectors.deep.network_detector import NetworkDetector
from tsadbench_detectors.gdn import GDN
from tsadbench_detectors.mscred import MSCRED
from tsadbench_detectors.vanilla_ae import VanillaAE

ROUNDS, SIDE, WINDOW, N_SENSORS = 10, 512, 30, 8
COUNTED: dict[str, type[NetworkDetector]] = {"mscred": MSCRED, "conv-ae": ConvAE, "vanilla-ae": VanillaAE, "gdn": GDN}
# The network, its batch, and for each recurrent layer its states and its inputs at every step, as in the defaults on
# SKAB. A decoder's input is the same at every step and needs one product, not thirty: it is left out.
RECURRENT = {
    "vanilla-lstm": (lambda: vanilla_lstm.Network(N_SENSORS, 100), 64, [(100, N_SENSORS), (100, 100)]),
    "lstm-ae": (lambda: lstm_ae.Network(N_SENSORS, 100), 64, [(100, N_SENSORS), (100, 0)]),
    "lstm-vae": (lambda: lstm_vae.Network(N_SENSORS, 32, 4), 128, [(32, N_SENSORS), (32, 0)]),
}


def told(benchmark, work: Callable[[], object], floor_of: Callable[[], object], times: float = 1.0) -> None:
    """Compare the fastest of several rounds of both: what other processes on this machine take away is not theirs."""
    seconds: dict[Callable[[], object], list[float]] = {work: [], floor_of: []}
    for _ in range(ROUNDS):
        for each, of_each in seconds.items():
            start = time.process_time()
            each()
            of_each.append(time.process_time() - start)
    of_work, floor = min(seconds[work]), times * min(seconds[floor_of])
    benchmark.extra_info.update(ms=1e3 * of_work, floor_ms=1e3 * floor, ratio=of_work / floor)
    benchmark.pedantic(work, rounds=3)


def counted(benchmark, work: Callable[[], object]) -> None:
    with FlopCounterMode(display=False) as counter:
        work()
    square = torch.randn(SIDE, SIDE)
    told(benchmark, work, lambda: square @ square, counter.get_total_flops() / (2 * SIDE**3))


@pytest.mark.parametrize("name", COUNTED)
def test_the_gradient_of_one_batch(benchmark, name: str) -> None:
    detector = COUNTED[name](epochs=1, min_steps=1).fit(noise(300))
    detector.network_.train()
    windows = torch.randn(detector.batch_size, detector._window + detector.horizon, 8)

    def step() -> None:
        detector.network_.zero_grad()
        detector._loss(windows).backward()

    counted(benchmark, step)


@pytest.mark.parametrize("name", COUNTED)
def test_scoring_1024_rows(benchmark, name: str) -> None:
    detector, fresh = COUNTED[name](epochs=1, min_steps=1).fit(noise(300)), noise(1_024)
    counted(benchmark, lambda: detector.score(fresh))


def training_step(network: nn.Module, batch: int) -> Callable[[], None]:
    windows = torch.randn(batch, WINDOW, N_SENSORS)

    def step() -> None:
        network.zero_grad()
        variational = isinstance(network, lstm_vae.Network)
        found = network.decode(network.encode(windows)[0], WINDOW)[0] if variational else network(windows)
        found.square().mean().backward()

    return step


def products(batch: int, layers: list[tuple[int, int]]) -> Callable[[], None]:
    """Return the plain products of a step: forwards, and the gradients of state, later layers' input, and weights."""
    operands = []
    for number, (hidden, n_inputs) in enumerate(layers):
        back = hidden + (n_inputs if number else 0)
        weight, columns = torch.randn(4 * hidden, hidden + n_inputs), torch.randn(hidden + n_inputs, batch)
        operands.append((weight, columns, torch.randn(back, 4 * hidden)))

    def step() -> None:
        for _ in range(WINDOW):
            for weight, columns, back in operands:
                gates = weight @ columns
                _ = back @ gates, gates @ columns.t()

    return step


@pytest.mark.parametrize("name", RECURRENT)
def test_one_recurrent_training_step(benchmark, name: str) -> None:
    build, batch, layers = RECURRENT[name]
    told(benchmark, training_step(build(), batch), products(batch, layers))
