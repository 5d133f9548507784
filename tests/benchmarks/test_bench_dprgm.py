"""What DPR-GM costs at SKAB's size, beside PyTorch's own layers too, and how much memory a long recording takes.

The number of threads is the caller's: OMP_NUM_THREADS.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.noise import PRIOR, SENSORS, noise
from tsadbench_detectors.dprgm import DPRGM, Network

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.nn import GraphConv

ROUNDS = 10


@pytest.mark.parametrize("backbone", ["sage", "gcn", "gat", "transformer"])
def test_one_training_epoch_of_9405_rows(benchmark, backbone):
    training = noise(9_405)
    # The training errors that the fit ends with are part of the time: a fifth of an epoch's.
    benchmark.pedantic(
        DPRGM(prior=PRIOR, backbone=backbone, epochs=1, min_steps=1).fit, args=(training,), rounds=3, warmup_rounds=1
    )


class PlainEncoder(nn.Module):
    """PyTorch's own recurrent layer, and its pooling."""

    def __init__(self, gru: nn.GRU) -> None:
        super().__init__()
        self.gru = gru

    def forward(self, inputs: Tensor) -> Tensor:
        states = self.gru(inputs.transpose(1, 2))[0].transpose(1, 2)
        return torch.cat([states[-1], states.mean(dim=0), states.amax(dim=0)])


class PlainLayer(nn.Module):
    """torch_geometric's own layer."""

    def __init__(self, n_in: int, n_out: int, adjacency: Tensor) -> None:
        super().__init__()
        self.edges = adjacency.nonzero().t().contiguous()
        self.weights = adjacency[self.edges[0], self.edges[1]]
        self.layer = GraphConv(n_in, n_out, aggr="mean")

    def forward(self, nodes: Tensor) -> Tensor:
        return self.layer(nodes, self.edges, self.weights)


def networks() -> tuple[Network, Network]:
    """Return DPR-GM's network at its default sizes, and the same of plain layers."""
    adjacency = torch.from_numpy(PRIOR.matrix(SENSORS)).float()
    sizes = {"backbone": "sage", "horizon": 10, "hidden_size": 32, "layers": 2, "embedding_size": 8}
    ours, plain = Network(adjacency, **sizes), Network(adjacency, **sizes)
    plain.encoder = PlainEncoder(plain.encoder.gru)
    plain.graph_layers = nn.ModuleList([PlainLayer(40, 32, adjacency), PlainLayer(32, 32, adjacency)])
    return ours, plain


def step_of(network: Network) -> Callable[[], None]:
    windows = torch.randn(256, 40, 8, generator=torch.Generator().manual_seed(0))

    def step() -> None:
        network.zero_grad()
        nn.functional.mse_loss(network(windows[:, :30]), windows[:, 30:]).backward()

    return step


def products() -> None:
    """Multiply what the recurrence multiplies in a training step: forwards, and the gradients of state and weights."""
    weight, columns, gates = torch.ones(96, 34), torch.ones(34, 2_048), torch.ones(96, 2_048)
    to_state = weight[:, :32].t().contiguous()
    for _ in range(30):
        weight @ columns
        to_state @ gates
        columns @ gates.t()


def cpu_seconds(works: list[Callable[[], None]]) -> list[float]:
    """Return the works' median seconds, taken in turn."""
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, of_work in zip(works, seconds, strict=True):
            start = time.process_time()
            work()
            of_work.append(time.process_time() - start)
    return [median(of_work[1:]) for of_work in seconds]


def test_a_training_step_of_256_windows(benchmark):
    ours, plain = (step_of(network) for network in networks())
    benchmark.pedantic(ours, rounds=3, warmup_rounds=1)
    of_ours, of_plain, of_products = cpu_seconds([ours, plain, products])
    benchmark.extra_info.update(ratio_to_plain=of_ours / of_plain, ratio_to_products=of_ours / of_products)
    print(
        f"a training step: {1e3 * of_ours:.1f} ms, {of_ours / of_plain:.2f} of plain layers', "
        f"{of_ours / of_products:.2f} of its recurrence's products alone"
    )


def test_scoring_37401_rows(benchmark):
    detector = DPRGM(prior=PRIOR, epochs=1, min_steps=1).fit(noise(1_000))
    benchmark.pedantic(detector.score, args=(noise(37_401),), rounds=3, warmup_rounds=1)


# The whole process is watched, in one that has done nothing else.
MEMORY = """
import json, resource, time
import psutil
from tests.helpers.noise import PRIOR, noise
from tsadbench_detectors.dprgm import DPRGM

detector = DPRGM(prior=PRIOR, epochs=1, min_steps=1).fit(noise(1_000))
recording = noise(10**6)
before = psutil.Process().memory_info().rss
start = time.perf_counter()
detector.score(recording)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"growth_gib": (peak - before) / 2**30, "score_seconds": seconds}))
"""


def grown(benchmark) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    benchmark.extra_info.update(json.loads(done.stdout))


def test_memory_that_scoring_a_million_rows_adds(benchmark):
    benchmark.pedantic(grown, args=(benchmark,), rounds=1)
    if benchmark.extra_info:
        assert benchmark.extra_info["growth_gib"] <= 1.5
