"""Times the main job on this machine: ``python -m tests.benchmarks.main_job [--write]``, about four minutes.

One table compares jobs x threads on ``tsadbench run`` (DPR-GM, two baselines and the floors on SKAB, one seed). The
other shows where the time of ``tsadbench run -d t2 --no-floors`` goes, in multiples of the time to import NumPy,
SciPy, pandas and scikit-learn. ``--write`` puts both into docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tsadbench.leaderboard.render import BLOCK, table_lines

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
ROUNDS = 5
IMPORTS = "import numpy, scipy.linalg, scipy.optimize, pandas, sklearn.base"
SMALL = ("run", "-d", "t2", "--no-floors")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# Timed functions by their names in the table. "plan: data" is part of "plan", and so on.
STAGES = {
    "settings": "tsadbench.execution.request:requested",
    "plan": "tsadbench.execution.plan:make_plans",
    "plan: data": "tsadbench.execution.plan:_loaded",
    "plan: protocol": "tsadbench.execution.plan:_protocols",
    "plan: describe": "tsadbench.execution.plan:_contender",
    "trial": "tsadbench.api.running:run_plans",
    "trial: wait for the server, start boxes": "tsadbench.sandbox.box:Box.__init__",
    "trial: fit": "tsadbench.sandbox.box:Box.fit",
    "trial: training scores": "tsadbench.sandbox.box:Box.training_scores",
    "trial: scores": "tsadbench.sandbox.box:Box.score",
    "trial: contributions": "tsadbench.sandbox.box:Box.contributions",
    "trial: replay audit": "tsadbench.sandbox.replay:Audit.run",
    "trial: judging": "tsadbench.execution.trial:_outcome",
    "trial: end boxes": "tsadbench.sandbox.box:Box.close",
    "trial: store": "tsadbench.execution.store:Store.add",
    "table": "tsadbench.cli.output:show_board",
}
# Runs a command and times the functions above, which are wrapped when their modules are imported.
TIMED = """
import atexit, functools, json, operator, sys, time
began, stages, spent = float(sys.argv[1]), json.loads(sys.argv[2]), {}
from importlib.machinery import PathFinder

def timed(function, name):
    @functools.wraps(function)
    def call(*arguments, **named):
        start = time.perf_counter()
        spent.setdefault("interpreter and command line", time.time() - began)
        try:
            return function(*arguments, **named)
        finally:
            spent[name] = spent.get(name, 0.0) + time.perf_counter() - start
    return call

class Finder:
    @staticmethod
    def find_spec(module, path=None, target=None):
        names = {name: place.partition(":")[2] for name, place in stages.items() if place.partition(":")[0] == module}
        spec = PathFinder.find_spec(module, path) if names else None
        if spec is None:
            return None
        execute = spec.loader.exec_module
        def exec_module(loaded):
            execute(loaded)
            for name, place in names.items():
                *owner, attribute = place.split(".")
                holder = operator.attrgetter(*owner)(loaded) if owner else loaded
                setattr(holder, attribute, timed(getattr(holder, attribute), name))
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder)
from tsadbench.__main__ import main
atexit.register(lambda: print(json.dumps(spent), file=sys.stderr))
sys.argv = ["tsadbench", *sys.argv[3:]]
sys.exit(main())
"""


# Numeric libraries choose their own number of threads.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}


def took(*command: str) -> float:
    """Return the seconds that Python takes to run a command."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, capture_output=True, env=ENVIRONMENT)
    return time.perf_counter() - start


def jobs_by_threads() -> Iterator[list[str]]:
    """Yield a row for each pair of jobs and threads: the seconds of the run, and of DPR-GM's trial."""
    for jobs, threads in sorted({(1, 1), (1, 2), (2, 1), (CORES, 1)}):
        with tempfile.TemporaryDirectory() as folder:
            options = ("--jobs", str(jobs), "--threads", str(threads), "--out", folder)
            seconds = took("-m", "tsadbench", "run", *options)
            records = [json.loads(file.read_text()) for file in Path(folder, "records").glob("*.json")]
        (trial,) = (one for one in records if one["detector"] == "dprgm")
        of_trial = trial["fit_seconds"] + trial["score_seconds"]
        yield [str(jobs), str(threads), f"{seconds:.0f} s", f"{of_trial:.0f} s"]


def to_the_table() -> Iterator[list[str]]:
    """Yield a row for each stage of the small run: its median seconds, also as a multiple of the imports."""
    alone, whole, spent = [], [], []
    for _ in range(ROUNDS):  # interleaved, because the processor's speed drifts
        alone.append(took("-c", IMPORTS))
        with tempfile.TemporaryDirectory() as folder:
            whole.append(took("-m", "tsadbench", *SMALL, "--out", folder))
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", TIMED, str(time.time()), json.dumps(STAGES), *SMALL, "--out", folder]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT)
            spent.append(json.loads(done.stderr.splitlines()[-1]))
    imports = statistics.median(alone)
    yield ["imports alone", f"{imports:.2f} s", "1.0"]
    seconds = {"from prompt to table": statistics.median(whole)}
    for name in ("interpreter and command line", *STAGES):
        seconds[name] = statistics.median(one.get(name, 0.0) for one in spent)
    for name, value in seconds.items():
        yield [name, f"{value:.2f} s", f"{value / imports:.1f}"]


def show(blocks: Mapping[str, Sequence[str]], *, write: bool) -> None:
    """Print tables, and put them into docs/performance.md if ``write``, by the names of their blocks."""
    for lines in blocks.values():
        print(*lines, "", sep="\n")
    if write:
        page = PAGE.read_text(encoding="utf-8")
        filled = BLOCK.sub(lambda one: "\n".join([one[1], *blocks[one[2]], ""]) if one[2] in blocks else one[0], page)
        PAGE.write_text(filled, encoding="utf-8")


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    parser.add_argument("--only", choices=("jobs", "start"), help="one of the two tables")
    given = parser.parse_args()
    blocks = {}
    if given.only != "jobs":
        blocks["start"] = table_lines(["Stage", "Time", "Over imports"], to_the_table())
    if given.only != "start":
        blocks["jobs"] = table_lines(["Jobs", "Threads", "Whole run", "DPR-GM: fit and scores"], jobs_by_threads())
    show(blocks, write=given.write)


if __name__ == "__main__":
    main()
