"""What a training step of the recurrent networks costs, beside the products of matrices that it cannot do without.

The number of threads is the caller's: OMP_NUM_THREADS.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from torch import nn

from tsadbench_detectors import lstm_ae, lstm_vae, vanilla_lstm

WINDOW, N_SENSORS, ROUNDS = 30, 8, 10

# The network, its batch, and for each recurrent layer its states and its inputs at every step, as in the defaults on
# SKAB. A decoder's input is the same at every step and needs one product, not thirty: it is left out.
NETWORKS = {
    "vanilla-lstm": (lambda: vanilla_lstm.Network(N_SENSORS, 100), 64, [(100, N_SENSORS), (100, 100)]),
    "lstm-ae": (lambda: lstm_ae.Network(N_SENSORS, 100), 64, [(100, N_SENSORS), (100, 0)]),
    "lstm-vae": (lambda: lstm_vae.Network(N_SENSORS, 32, 4), 128, [(32, N_SENSORS), (32, 0)]),
}


def training_step(network: nn.Module, batch: int) -> Callable[[], None]:
    windows = torch.randn(batch, WINDOW, N_SENSORS)

    def step() -> None:
        network.zero_grad()
        if isinstance(network, lstm_vae.Network):
            latent, _ = network.encode(windows)
            found = network.decode(latent, WINDOW)[0]
        else:
            found = network(windows)
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


def cpu_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.parametrize("name", NETWORKS)
def test_one_training_step(benchmark, name: str) -> None:
    build, batch, layers = NETWORKS[name]
    step, floor = training_step(build(), batch), products(batch, layers)
    step(), floor()
    pairs = [(cpu_seconds(step), cpu_seconds(floor)) for _ in range(ROUNDS)]
    # The fastest of each: what other processes on this machine take away is not theirs.
    of_step, of_products = map(min, zip(*pairs, strict=True))
    benchmark.extra_info.update(step_ms=1e3 * of_step, products_ms=1e3 * of_products, ratio=of_step / of_products)
    benchmark.pedantic(step, rounds=ROUNDS)
