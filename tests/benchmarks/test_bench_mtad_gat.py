"""MTAD-GAT at SKAB's size beside the same network of PyTorch's own layers, in CPU seconds of one thread."""

from __future__ import annotations

import time
from statistics import median

import torch
from torch import Tensor, nn

from tests.helpers.noise import noise
from tsadbench.utils.numerics import limit_threads
from tsadbench_detectors.mtad_gat import MTADGAT, Attention, Network


class PlainAttention(Attention):
    """Lays out every pair and drops by PyTorch's own mask."""

    def forward(self, nodes: Tensor) -> Tensor:
        pairs = nn.functional.leaky_relu(self.target(nodes)[:, :, None] + self.source(nodes)[:, None], 0.2)
        weights = torch.softmax(pairs @ self.logit + self.pair_bias, dim=-1)
        return torch.sigmoid(nn.functional.dropout(weights, self.dropout.p, self.training) @ nodes)


class PlainNetwork(Network):
    """The formulas by PyTorch's own layers."""

    def __init__(self, window: int, n_sensors: int, hidden_size: int, dropout: float) -> None:
        super().__init__(window, n_sensors, hidden_size, dropout)
        self.between_sensors = PlainAttention(n_sensors, window, dropout)
        self.between_rows = PlainAttention(window, n_sensors, dropout)

    def forward(self, rows: Tensor, *, last_only: bool = False) -> tuple[Tensor, Tensor]:
        smooth = self.smoothing(rows.transpose(1, 2)).relu()
        by_rows = self.between_rows(smooth.transpose(1, 2)).transpose(1, 2)
        beside = torch.cat([smooth, self.between_sensors(smooth), by_rows], dim=1)
        last = nn.GRU.forward(self.encoder, beside.permute(2, 0, 1))[0][-1]
        states = nn.GRU.forward(self.decoder, last.expand(rows.shape[1], -1, -1))[0]
        return self.forecast(last), self.reconstruction(states[-1:] if last_only else states).transpose(0, 1)


def cpu_seconds(networks: list[nn.Module], work, rounds: int) -> list[float]:
    """Return each network's median seconds of the same work, taken in turn."""
    seconds: list[list[float]] = [[] for _ in networks]
    for _ in range(rounds):
        for network, of_network in zip(networks, seconds, strict=True):
            start = time.process_time()
            work(network)
            of_network.append(time.process_time() - start)
    return [median(of_network[1:]) for of_network in seconds]


def networks(detector: MTADGAT) -> list[nn.Module]:
    arguments = (detector.window, 8, detector.hidden_size, detector.dropout)
    ours, plain = Network(*arguments), PlainNetwork(*arguments)
    plain.load_state_dict(ours.state_dict())
    return [ours, plain]


def test_a_training_step_of_64_windows(benchmark):
    limit_threads(1)
    detector = MTADGAT()
    windows = torch.rand(detector.batch_size, detector.window + 1, 8)

    def step(network: nn.Module) -> None:
        detector.network_ = network.train()
        network.zero_grad()
        detector._loss(windows).backward()

    pair = networks(detector)
    benchmark.pedantic(step, args=(pair[0],), rounds=3, warmup_rounds=1)
    ours, plain = cpu_seconds(pair, step, 8)
    benchmark.extra_info["ratio_to_plain"] = ours / plain
    print(f"a training step: {1e3 * ours:.1f} ms, {ours / plain:.2f} of plain layers'")


def test_scoring_2048_windows(benchmark):
    limit_threads(1)
    detector = MTADGAT(epochs=1, min_steps=1).fit(noise(300))
    recording = noise(2_048 + detector.window)

    def score(network: nn.Module) -> None:
        detector.network_ = network.eval()
        detector.score(recording)

    pair = networks(detector)
    benchmark.pedantic(score, args=(pair[0],), rounds=1, warmup_rounds=1)
    ours, plain = cpu_seconds(pair, score, 3)
    benchmark.extra_info["ratio_to_plain"] = ours / plain
    print(f"a window: {1e6 * ours / 2_049:.0f} us, {ours / plain:.2f} of plain layers'")
