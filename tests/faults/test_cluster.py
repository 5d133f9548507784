"""A real scheduler and real workers on loopback: the table stays the same, whichever of them dies."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.helpers.plant import Plant, table, trials, wait_until
from tsadbench.errors import ClusterError, UsageError
from tsadbench.execution.cluster import require_same

pytestmark = pytest.mark.cluster

WORKER_SUICIDE = '''

class Murderer(Steady):
    """Gives itself a name by which the test finds its worker and kills it: the box lets it see no other process."""
    def _fit(self, recordings):
        import ctypes
        ctypes.CDLL(None).prctl(15, b"murderer", 0, 0, 0)
        time.sleep(60)

class OnGpu(Steady):
    """Asks for a GPU."""
    def __init__(self, *, device: str = "cpu", seed: int = 0):
        super().__init__(seed=seed)
        self.device = device

class LooksForGpu(OnGpu):
    """Asks for a GPU, which no machine has."""
    def _check_machine(self):
        self._require(self.device == "cpu", "device", "'cpu' on this machine")
'''


@dataclass
class Cluster:
    """A scheduler and workers, each a process with a log file in the folder."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    address: str = ""

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"log-{len(self.processes)}.txt").open("wb")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments], stdout=log, stderr=log, cwd=self.folder
            )
        self.processes.append(process)
        return process

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        file = self.folder / "scheduler.json"
        scheduler = self.start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
        )
        wait_until(lambda: file.is_file() and bool(file.read_text()))
        self.address = json.loads(file.read_text())["address"]
        return scheduler

    def start_worker(self, *more: str) -> subprocess.Popen[bytes]:
        return self.start("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *more)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    found = Cluster(folder)
    yield found
    for process in found.processes:
        process.kill()
        process.wait()


def test_a_cluster_gives_the_table_of_this_machine(small: Plant, tsadbench):
    """Takes some 8 s: a scheduler and a worker start."""
    plan = ["Steady", "Steady[power=2.0]"]
    there = tsadbench(*small.arguments(*plan, seeds=2, more=("--cluster", "local:1")))
    assert there.code == 0, there.err
    small.runs.rename(small.folder / "runs-of-the-cluster")
    here = tsadbench(*small.arguments(*plan, seeds=2))
    assert table(there.out) == table(here.out)
    # A trial has the same name wherever it ran, so that a run can be resumed here or on a cluster.
    assert trials(small.runs) == trials(small.folder / "runs-of-the-cluster")


@pytest.mark.long
def test_a_worker_killed_during_a_run_changes_nothing(small: Plant, cluster: Cluster, tsadbench):
    cluster.start_scheduler()
    victim, _ = cluster.start_worker(), cluster.start_worker()
    plan = ["Steady[seconds=0.3]", "Steady[power=2.0]"]
    run = small.start(*plan, seeds=5, more=("--cluster", cluster.address))
    wait_until(lambda: small.runs.is_dir() and len(trials(small.runs)) >= 3)
    victim.kill()
    out, told = run.communicate(timeout=240)
    assert run.returncode == 0, told
    assert len(trials(small.runs)) == 10
    here = tsadbench(*small.arguments(*plan, seeds=5, more=("--rerun", "ok")))
    assert table(out) == table(here.out)


@pytest.mark.long
def test_a_lost_scheduler_is_reported_and_the_run_can_be_resumed_here(small: Plant, cluster: Cluster, tsadbench):
    scheduler = cluster.start_scheduler()
    cluster.start_worker()
    run = small.start("Steady[seconds=0.5]", seeds=8, more=("--cluster", cluster.address))
    wait_until(lambda: small.runs.is_dir() and len(trials(small.runs)) >= 2)
    scheduler.kill()
    _, told = run.communicate(timeout=240)
    assert run.returncode == 2
    assert "scheduler" in told
    assert "Traceback" not in told
    kept = len(trials(small.runs))
    assert kept >= 2
    resumed = tsadbench(*small.arguments("Steady[seconds=0.5]", seeds=8, more=("--jobs", "2")))
    assert resumed.code == 0
    assert re.search(rf"^8 .* {small.runs}, {kept} ", resumed.err, re.M)


@pytest.mark.long
def test_an_interrupt_ends_the_trials_of_the_cluster_too(small: Plant, cluster: Cluster):
    cluster.start_scheduler()
    worker = cluster.start_worker()
    run = small.start("Steady", "Steady[seconds=600]", seeds=1, more=("--cluster", cluster.address))
    wait_until(lambda: small.runs.is_dir() and len(trials(small.runs)) == 1)
    run.send_signal(signal.SIGINT)
    _, told = run.communicate(timeout=60)
    assert run.returncode == 130, told
    assert "1 of 2 trials" in told
    assert worker.poll() is None
    # The worker is free again: a trial that sleeps for ten minutes would be in the way of this one.
    again = small.run("Steady[power=3.0]", seeds=1, more=("--cluster", cluster.address))
    assert again.returncode == 0, again.stderr


def run_without_mercy(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command, and kill every worker whose box runs a murderer: the process that started the box's server."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        deadline = time.monotonic() + 300
        while run.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(psutil.Error):
                for process in psutil.Process(run.pid).children(recursive=True):
                    if process.name() == "murderer":
                        for server in process.parents()[1:2]:
                            server.kill()
            time.sleep(0.1)
        assert run.poll() is not None
        return subprocess.CompletedProcess(command, run.returncode, *run.communicate())


@pytest.mark.long
def test_a_trial_that_loses_every_worker_is_a_row_with_a_status(small: Plant):
    file = small.folder / "detectors.py"
    file.write_text(file.read_text() + WORKER_SUICIDE)
    done = run_without_mercy(small.command("Murderer", "Steady", seeds=1, more=("--cluster", "local:1")))
    rows = {row["detector"].rpartition(":")[2]: row["status"] for row in table(done.stdout)}
    assert rows == {"Steady": "ok", "Murderer": "killed"}, done.stderr
    assert re.search(r"worker .*\b3 more", done.stderr)
    assert done.returncode == 1


@pytest.mark.long
def test_a_trial_that_asks_for_a_gpu_does_not_wait_for_ever(small: Plant, tsadbench):
    file = small.folder / "detectors.py"
    file.write_text(file.read_text() + WORKER_SUICIDE)
    done = tsadbench(*small.arguments("OnGpu[device=cuda]", seeds=1, more=("--cluster", "local:1")))
    assert done.code == 2
    assert "OnGpu[device=cuda]" in done.err
    assert "--resources GPU=1" in done.err


@pytest.mark.long
def test_trials_for_a_gpu_are_planned_on_a_machine_without_one(small: Plant, cluster: Cluster, tsadbench):
    file = small.folder / "detectors.py"
    file.write_text(file.read_text() + WORKER_SUICIDE)
    for here in ((), ("--cluster", "local:1")):
        done = tsadbench(*small.arguments("LooksForGpu[device=cuda]", "Steady", seeds=1, more=here))
        assert done.code == 2
        assert re.search("device .*'cpu'.*'cuda'", done.err)
        assert not small.runs.exists() or not trials(small.runs)
    cluster.start_scheduler()
    cluster.start_worker("--resources", "GPU=1")  # it only claims to have one
    done = small.run("LooksForGpu[device=cuda]", "Steady", seeds=1, more=("--cluster", cluster.address))
    assert done.returncode == 1, done.stderr
    rows = {row["detector"].rpartition(":")[2]: row for row in table(done.stdout)}
    assert rows["Steady"]["status"] == "ok"
    assert rows["LooksForGpu[device=cuda]"]["status"] == "error"
    assert re.search("device .*'cpu'.*'cuda'", done.stderr)


@pytest.mark.long
def test_an_address_at_which_no_scheduler_answers(small: Plant, tsadbench, monkeypatch):
    monkeypatch.setattr("tsadbench.execution.cluster.CONNECT_SECONDS", 1)
    done = tsadbench(*small.arguments("Steady", seeds=1, more=("--cluster", "tcp://127.0.0.1:1")))
    assert done.code == 2
    assert "tcp://127.0.0.1:1" in done.err
    assert "Traceback" not in done.err


def test_data_given_in_python_are_refused(small_data):
    import tsadbench

    with pytest.raises(UsageError, match="name or card"):
        tsadbench.run("t2", small_data, cluster="local:1")


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"versions": {"numpy": "1.0"}}, "numpy"),
        ({"data_hash": "0"}, r"\bdata\b"),
        ({"rules": {"strict": "0"}}, "strict"),
    ],
)
def test_a_worker_with_other_versions_or_data_says_so(other, named):
    client = {"versions": {"numpy": "2.0", "python": "3.12"}, "data_hash": "1", "rules": {"strict": "1"}}
    require_same(client, {**client, "versions": {"numpy": "2.0", "python": "3.13"}})
    with pytest.raises(ClusterError, match=named):
        require_same(client, client | other)
