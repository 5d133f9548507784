"""Measure every network on a GPU and on the processor: seconds of a fit, and metrics beside the spread of the seeds.

    python docs/performance/gpu.py --seeds 5

Trials are kept in a run store, so the same command goes on where it was. Without a GPU nothing is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

import tsadbench
from tsadbench.leaderboard.ranking import Row
from tsadbench.registry import entries, load_detector
from tsadbench.utils.markdown import table_lines
from tsadbench_detectors.deep.network_detector import NetworkDetector

METRICS = ("auroc", "auprc", "prac_f1")
HEADER = (
    "detector",
    "fit on cpu (s)",
    "fit on cuda (s)",
    "ratio",
    *(f"{name}, cpu / cuda" for name in METRICS),
    "apart",
)


def networks() -> list[str]:
    """Return the names of all detectors that train a network."""
    return [one.name for one in entries("detectors") if issubclass(load_detector(one.name), NetworkDetector)]


def measured(cpu: Row, cuda: Row) -> list[str]:
    """Return a detector's line; ``apart`` names the metrics whose means differ by more than the seeds' spread."""
    if not (cpu.ok and cuda.ok):
        return [cpu.label, *("-" for _ in HEADER[2:]), " ".join({cpu.status, cuda.status} - {"ok"})]
    cells = [f"{cpu.metrics[name].text()} / {cuda.metrics[name].text()}" for name in METRICS]
    apart = [name for name in METRICS if differs(cpu, cuda, name)]
    seconds = [row.fit_seconds or 0.0 for row in (cpu, cuda)]
    times = [f"{seconds[0]:.1f}", f"{seconds[1]:.1f}", f"{seconds[0] / max(seconds[1], 1e-9):.1f}"]
    return [cpu.label, *times, *cells, ", ".join(apart) or "none"]


def differs(cpu: Row, cuda: Row, metric: str) -> bool:
    """Whether two rows' means differ by more than twice the larger standard deviation over the seeds."""
    one, other = cpu.metrics[metric], cuda.metrics[metric]
    if one.mean is None or other.mean is None or one.std is None or other.std is None:
        return one.mean != other.mean
    return abs(one.mean - other.mean) > 2 * max(one.std, other.std)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--detector", action="append", help="default: every network")
    parser.add_argument("--dataset", default="skab")
    parser.add_argument("--protocol", default="published")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/gpu"))
    options = parser.parse_args(arguments)
    if torch.cuda.device_count() == 0:
        print("no GPU that torch can use: nothing is measured (tsadbench doctor lists the devices)")
        return
    lines = []
    for name in options.detector or networks():
        board = tsadbench.run(
            [name, f"{name}[device=cuda]"],
            options.dataset,
            protocol=options.protocol,
            seeds=options.seeds,
            splits=["overall"],
            floors=False,
            out=options.out,
        )
        rows = {row.label: row for row in board.rows}
        lines.append(measured(rows[name], rows[f"{name}[device=cuda]"]))
    print(torch.cuda.get_device_name(0))
    print("\n".join(table_lines(HEADER, lines)))


if __name__ == "__main__":
    main()
