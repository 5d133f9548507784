"""Fit DPR-GM on simulated rows at plant scale, and print what that takes: figures in docs/performance.md.

    OMP_WAIT_POLICY=passive python docs/performance/large_training.py --max-steps 1000 --threads 2

The rows are independent AR(1) noise, the prior is a ring: every sensor drives the next one. Time is CPU time of all
threads, so that other work on the machine does not count; threads that wait for each other would, if OMP_WAIT_POLICY
did not let them sleep. The whole fit counts, medians and quantiles included.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np
import torch
from scipy.signal import lfilter

from tsadbench import Prior, Recording
from tsadbench.base import Edge
from tsadbench.utils.progress import listening
from tsadbench.utils.threads import limited_threads
from tsadbench_detectors.dprgm import DPRGM


def simulated(n_rows: int, n_sensors: int) -> tuple[Recording, Prior]:
    """Return AR(1) noise with coefficient .9, and a ring of couplings."""
    shocks = np.random.default_rng(0).normal(size=(n_rows, n_sensors))
    sensors = tuple(f"s{number}" for number in range(n_sensors))
    ring = tuple(Edge(one, other) for one, other in zip(sensors, sensors[1:] + sensors[:1], strict=True))
    return Recording("simulated", lfilter([1.0], [1.0, -0.9], shocks, axis=0), sensors), Prior(ring)


def main() -> None:
    """Print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--sensors", type=int, default=51)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    recording, prior = simulated(options.rows, options.sensors)
    detector = DPRGM(prior=prior, stride=options.stride, max_steps=options.max_steps, epochs=options.epochs)
    trained: list[float] = []
    with limited_threads(options.threads):
        torch.set_num_threads(options.threads)
        wall, cpu = time.perf_counter(), time.process_time()
        with listening(lambda *_: trained.append(time.process_time() - cpu)):
            detector.fit(recording)
        seconds = {
            "cpu": time.process_time() - cpu,
            "cpu_to_last_step": trained[-1],
            "wall": time.perf_counter() - wall,
        }
    memory = {
        "data_mib": recording.values.nbytes / 2**20,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
    }
    facts = detector.training_facts()
    print(json.dumps({"options": vars(options), "seconds": seconds, "memory": memory, "training": facts}))


if __name__ == "__main__":
    main()
