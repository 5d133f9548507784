"""What commands take on stores of very many trials, in units of a plain loop of the same run, and in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from tests.helpers.synthetic_store import synthetic_store

SIZES = (1000, 10_000, *((100_000,) if os.environ.get("TSADBENCH_BENCH_LARGE") else ()))
COMMANDS = {
    "runs list": ["runs", "list", "{store}"],
    "leaderboard": ["leaderboard", "{store}"],
    "report": ["report", "{store}", "--out", "{out}"],
}

# Not getrusage: its peak is that of the parent process, where that is higher.
MEASURED = """
import atexit, sys, time
from tsadbench.cli import main
@atexit.register
def tell():
    peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(time.process_time(), peak, file=sys.stderr)
main()
"""


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    return {n: synthetic_store(folder / f"{n}", n, [("pumploop", "strict")]).path for n in (100, *SIZES)}


def unit() -> float:
    """Return the CPU seconds of a loop that every Python runs at its own speed."""
    begun = time.process_time()
    total = 0
    for i in range(5_000_000):
        total += i & 3
    return time.process_time() - begun


def used(*words) -> tuple[float, float]:
    """Return a command's CPU seconds and its peak memory in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, words)], capture_output=True, text=True, check=True
    )
    seconds, kibibytes = done.stderr.splitlines()[-1].split()
    return float(seconds), float(kibibytes) / 1024


@pytest.mark.parametrize("name", COMMANDS)
def test_cost_by_trials(benchmark, stores, tmp_path, name):
    """Cost grows no faster than the trials: beside what any command takes to start."""
    found = {}

    def measure() -> None:
        for n, store in stores.items():
            words = [word.format(store=store, out=tmp_path / f"{n}") for word in COMMANDS[name]]
            if name == "runs list":
                used(*words)  # writes the index
            loop = unit()
            seconds, memory = used(*words)
            found[n] = seconds / loop, memory

    benchmark.pedantic(measure, rounds=1)
    for n, (loops, memory) in found.items():
        print(f"{name}: {n} trials: {loops:.0f} loops, {memory:.0f} MiB")
    sizes = list(found)
    for fewer, more in pairwise(sizes[1:] if name != "report" else ()):  # a report of 100 trials holds all of them
        grown = (found[more][0] - found[100][0]) / max(1.0, found[fewer][0] - found[100][0])
        print(f"{name}: {more / fewer:.0f} times the trials, {grown:.1f} times the cost beside the start")
    if name == "report":
        assert all((tmp_path / f"{n}/index.html").stat().st_size < 30e6 for n in sizes)


def test_verify_holds_one_trial_at_a_time(benchmark, stores):
    few, many = benchmark.pedantic(lambda: (used("verify", stores[100]), used("verify", stores[1000])), rounds=1)
    print(f"verify: {(many[0] - few[0]) / 900 * 1000:.1f} ms of CPU a trial; {few[1]:.0f} and {many[1]:.0f} MiB")
    assert many[1] < few[1] + 30
