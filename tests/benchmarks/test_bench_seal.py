"""What the seal and the crossing cost the cheapest trial: sealed and unsealed boxes in turn, inside one run.

Replay apart: its share of a trial is bounded by what scoring takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tests.helpers.processes import children
from tsadbench import Recording
from tsadbench.registry import locate
from tsadbench.sandbox import Box, Construction
from tsadbench.sandbox.crossing import Crossing
from tsadbench.sandbox.launch import ForkServer

ROWS = Recording("rows", np.random.default_rng(0).normal(size=(9_405, 8)), tuple("abcdefgh"))
_ROUNDS = 60


def _boxed(construction: Construction, launcher: ForkServer, crossing: Crossing | None) -> None:
    with Box(construction, threads=1, launcher=launcher, crossing=crossing) as box:
        box.fit((ROWS,))
        box.training_scores()
        box.score(ROWS)


def _milliseconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return 1000.0 * (time.perf_counter() - start)


def test_the_seal_and_the_crossing_of_the_cheapest_trial(benchmark):
    construction = Construction(locate("all-positive"))
    sealed, guarded = ForkServer(), ForkServer(seal=False)
    ways = {
        "sealed, disguised": lambda: _boxed(construction, sealed, Crossing(ROWS.sensors, "00" * 16)),
        "guarded, disguised": lambda: _boxed(construction, guarded, Crossing(ROWS.sensors, "00" * 16)),
        "guarded, plain": lambda: _boxed(construction, guarded, None),
    }
    try:
        for way in ways.values():
            way()  # warms the servers
        benchmark(ways["sealed, disguised"])
        if benchmark.stats is None:
            return
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(_ROUNDS):
            for name, way in ways.items():
                found[name].append(_milliseconds(way))
        for quantile in (0.0, 0.25, 0.5):
            costs = {name: float(np.quantile(times, quantile)) for name, times in found.items()}
            benchmark.extra_info |= {f"{name}, ms, quantile {quantile}": cost for name, cost in costs.items()}
            base = costs["guarded, plain"]
            told = "; ".join(f"{name} {cost:.1f} ms ({cost - base:+.1f})" for name, cost in costs.items())
            print(f"\nquantile {quantile:g} of {_ROUNDS} boxes: {told}")
    finally:
        sealed.stop()
        guarded.stop()
    assert children(holding="tsadbench.sandbox.server") == []
