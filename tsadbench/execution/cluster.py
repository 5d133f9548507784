"""Trials on a Dask cluster, whose workers need the package and the data.

A worker is sent trials and their plan without its data, which it reads itself. It runs them in a box and sends back
their outcomes. If a worker is lost, Dask runs its trial again elsewhere.
"""

from __future__ import annotations

import logging
import pickle
import platform
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, fields, replace
from functools import cache
from typing import TYPE_CHECKING

from tsadbench._version import __version__
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import ClusterError, DataError, UsageError
from tsadbench.execution.identity import identity, library_versions
from tsadbench.execution.plan import Plan, Trial
from tsadbench.execution.trial import Outcome, failed_outcome, run_trials
from tsadbench.sandbox import BoxFailure
from tsadbench.utils.extras import extra
from tsadbench.utils.parameters import JsonValue

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10
_GONE = "the cluster's scheduler is gone; what had come back is kept: run the command again"
# What a worker makes or reads itself.
_NOT_SENT = ("data", "episodes", "trials")


@contextmanager
def connected(address: str, plan: Plan) -> Iterator[Cluster]:
    """Yield the cluster at an address: ``tcp://host:port``, ``tls://host:port``, or ``local:N`` for N processes."""
    if plan.source is None:
        raise UsageError("a cluster needs the data set's name or card: its workers read the data themselves")
    with extra("--cluster", "cluster"):
        from distributed import Client, LocalCluster
    # The errors that matter are reported as ours: no traceback of a lost connection is printed.
    for name in [name for name in logging.root.manager.loggerDict if name.startswith(("distributed", "tornado"))]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with ExitStack() as stack:
        try:
            kind, _, n = address.partition(":")
            at = address
            if kind == "local":
                at = stack.enter_context(LocalCluster(n_workers=int(n), threads_per_worker=1, dashboard_address=None))
            client = stack.enter_context(Client(at, timeout=CONNECT_SECONDS))
        except OSError as error:
            raise UsageError(
                f"--cluster {address}: no scheduler answers there; start one with  dask scheduler"
            ) from error
        except (ValueError, TypeError) as error:  # no port, or tls without a configuration
            raise UsageError(f"--cluster {address}: {' '.join(str(error).split())}") from error
        yield Cluster(client, plan)


class Cluster:
    """Submits trials to the workers of a scheduler."""

    def __init__(self, client: Client, plan: Plan) -> None:
        self._client, self._plan = client, plan
        self._executor = client.get_executor(pure=False)

    @property
    def n_at_a_time(self) -> int:
        """One trial a worker's thread: Dask counts a lost worker against all trials that it was sent."""
        if self._client.status != "running":
            raise ClusterError(_GONE)
        try:
            n_threads: int = sum(self._client.nthreads().values())
        except OSError as error:
            raise ClusterError(_GONE) from error
        return max(1, n_threads)

    def submit(self, trials: Sequence[Trial]) -> Future[tuple[Outcome, ...]]:
        """Send trials that share a fit."""
        import cloudpickle

        contender = trials[0].contender
        resources: dict[str, int] = {}
        if contender.device.startswith("cuda"):
            resources = {"GPU": 1}
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
            if not any(worker["resources"].get("GPU") for worker in workers):
                raise UsageError(
                    f"{contender.label} asks for a GPU, and no worker offers one: start it with  "
                    "dask worker --resources GPU=1"
                )
        data = self._plan.data
        rules = {one.name: getattr(self._plan, one.name) for one in fields(Plan) if one.name not in _NOT_SENT}
        task = (trials, rules, (data.dataset.content_hash, data.labels.content_hash), _versions(trials))
        future: Future[tuple[Outcome, ...]]
        future = self._executor.submit(_work, cloudpickle.dumps(task), resources=resources)
        return future

    def outcomes(self, future: Future[tuple[Outcome, ...]], trials: Sequence[Trial]) -> Sequence[Outcome]:
        """Return the outcomes of trials that have come back, as if they had run here."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        try:
            found = future.result()
        except KilledWorker as error:
            lost = BoxFailure(
                "killed", f"its worker was lost, and so were those of {error.allowed_failures} more attempts"
            )
            return [failed_outcome(trial, self._plan, lost) for trial in trials]
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise ClusterError(_GONE) from error
        return [self._own(trial, outcome) for trial, outcome in zip(trials, found, strict=True)]

    def _own(self, trial: Trial, outcome: Outcome) -> Outcome:
        manifest: dict[str, JsonValue] = {**outcome.record.manifest, "command": [*sys.argv]}
        record = replace(outcome.record, **asdict(identity(trial, self._plan)), manifest=manifest)
        return replace(outcome, record=record)

    def cancel(self) -> None:
        """End all trials."""
        self._executor.shutdown(wait=False)


def _work(packed: bytes) -> tuple[Outcome, ...]:
    """Run trials that share a fit, on a worker."""
    from distributed import get_worker

    trials, rules, hashes, versions = pickle.loads(packed)  # the client wrote it, for this cluster
    require_same_versions(versions, _versions(trials))
    data = read_data(*rules["source"], *hashes)
    plan = Plan(data=data, episodes=tuple(rules["protocol"].episodes(data.dataset)), trials=trials, **rules)
    worker, stop, over = get_worker(), threading.Event(), threading.Event()
    key = worker.get_current_task()

    def watch() -> None:
        while not over.wait(1.0):
            state = worker.state.tasks.get(key)
            if state is None or state.state == "cancelled":
                stop.set()

    threading.Thread(target=watch, daemon=True).start()
    try:
        return run_trials(trials, plan, None, stop)
    finally:
        over.set()


@cache
def read_data(name: str, options: DataOptions, data_hash: str, labels_hash: str) -> LabelledDataset:
    """Return a data set; a DataError if it is another one than the client's."""
    data = load_dataset(name)(options)
    if (data.dataset.content_hash, data.labels.content_hash) != (data_hash, labels_hash):
        raise DataError(
            f"the worker on {platform.node()} has other data for {name} than the client: hash "
            f"{data.dataset.content_hash[:12]}, expected {data_hash[:12]}; give both the same files"
        )
    return data


def _versions(trials: Sequence[Trial]) -> dict[str, object]:
    description = trials[0].contender.description
    return {"tsadbench": __version__, **library_versions(description.sources.packages, description.libraries)}


def require_same_versions(expected: Mapping[str, object], here: Mapping[str, object]) -> None:
    """Raise a ClusterError if this worker has other versions of libraries than the client."""
    other = [f"{name} {here.get(name)} there and {one} here" for name, one in expected.items() if here.get(name) != one]
    if other:
        raise ClusterError(
            f"the worker on {platform.node()} has other versions: {', '.join(other)}; install the same ones"
        )
