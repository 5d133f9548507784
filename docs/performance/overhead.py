"""Measure what a trial costs beside its detector: ``python docs/performance/overhead.py HOW N`` prints one JSON object.

Runs the floor `random` with seeds 0 to N-1 on SKAB under `strict` (34 test recordings, 37,401 rows) into a new store.
HOW is the number of jobs on this machine, or ``local:W`` for a Dask cluster of W workers. The result: trials per
second, wall-clock and CPU milliseconds a trial (of this process, its boxes, and a cluster's workers), those of this
process alone (which is the scheduler of a local cluster, too), and the growth of its memory. A cluster's first tenth of
the trials, while it starts, is left out of the rates, but not of the CPU time.

It imports only what versions from commit 51ef0b2 on have, so that `measure.py` can run it on an older version.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.helpers.plans import make_plan
from tsadbench.execution.request import RunRequest
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan


def processes() -> list[psutil.Process]:
    """Return this process and its descendants."""
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its descendants, the ended ones included."""
    total = 0.0
    for process in processes():
        times = process.cpu_times()
        total += times.user + times.system
        if process.pid != psutil.Process().pid:  # the ended descendants of this process are counted by their parents
            total += times.children_user + times.children_system
    return total


def main() -> None:
    """Run the trials and print what they cost."""
    how, n_trials = sys.argv[1], int(sys.argv[2])
    where = {"cluster": how} if how.startswith("local:") else {"jobs": int(how)}
    plan = make_plan(RunRequest(detectors=("random",), seeds=n_trials, floors=False))
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "runs")
        # The first trials start the server that boxes are forked from; with a cluster, that is a part of the run.
        warming = make_plan(RunRequest(detectors=("max-z",), seeds=1, floors=False))
        if "jobs" in where:
            run_plan(warming, None)
        memory = psutil.Process().memory_info().rss
        start, cpu_start, own_start = time.perf_counter(), cpu_seconds(), time.process_time()
        ended: list[float] = []

        class Clock:
            """Keeps when trials end; a cluster's start does not count."""

            def started(self, *_: object) -> None: ...

            def progressed(self, *_: object) -> None: ...

            def kept(self, *_: object) -> None: ...

            def finished(self, *_: object) -> None:
                ended.append(time.perf_counter())
                nonlocal cpu_end
                if len(ended) == n_trials:
                    cpu_end = cpu_seconds()

        cpu_end = cpu_start
        records = run_plan(plan, store, Clock(), **where)  # type: ignore[arg-type]
        own = time.process_time() - own_start
        grown = psutil.Process().memory_info().rss - memory
    if {record.status for record in records} != {"ok"}:
        raise SystemExit(f"expected trials that are ok, found {sorted({record.status for record in records})}")
    first = start if "jobs" in where else ended[n_trials // 10]
    n_timed = n_trials if "jobs" in where else n_trials - n_trials // 10 - 1
    result = {
        "how": how,
        "trials": n_trials,
        "per_second": n_timed / (ended[-1] - first),
        "wall_ms": 1e3 * (ended[-1] - first) / n_timed,
        "cpu_ms": 1e3 * (cpu_end - cpu_start) / n_trials,
        "own_cpu_ms": 1e3 * own / n_trials,
        "memory_kib": grown / 2**10 / n_trials,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
