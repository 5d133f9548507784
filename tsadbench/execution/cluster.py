"""Trials on a Dask cluster, whose workers need the package and the data.

A worker receives trials and their plan, reads the data itself, runs the trials in a box, and returns their outcomes. If
a worker is lost, Dask runs its trial again elsewhere.
"""

from __future__ import annotations

import logging
import pickle
import platform
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import ClusterError, UsageError
from tsadbench.execution.identity import differences, manifest
from tsadbench.execution.plan import Plan, Trial
from tsadbench.execution.trial import Outcome, failed_outcome, run_trials
from tsadbench.sandbox import BoxFailure, describe
from tsadbench.utils.extras import extra
from tsadbench.utils.parameters import JsonValue

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10
_GONE = "the cluster's scheduler is lost; finished trials are kept: run the command again"


@contextmanager
def connected(address: str, plan: Plan) -> Iterator[Cluster]:
    """Yield the cluster at an address: ``tcp://host:port``, ``tls://host:port``, or ``local:N`` for N processes."""
    if plan.source is None:
        raise UsageError("a cluster needs the data set's name or card: its workers read the data themselves")
    with extra("a cluster", "cluster"):
        from distributed import Client, LocalCluster
    # We report the errors that matter, without tracebacks of lost connections.
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
            message = f"no scheduler answers at {address}; start one with  dask scheduler"
            raise UsageError(message, field="cluster") from error
        except (ValueError, TypeError) as error:  # no port, or tls without a configuration
            raise UsageError(f"{address}: {' '.join(str(error).split())}", field="cluster") from error
        yield Cluster(client, plan)


class Cluster:
    """Submits trials to the workers of a scheduler."""

    def __init__(self, client: Client, plan: Plan) -> None:
        self._client, self._plan = client, plan
        self._executor = client.get_executor(pure=False)

    @property
    def n_at_a_time(self) -> int:
        """Number of trials to submit: one per worker thread, since Dask blames all trials of a lost worker."""
        with suppress(OSError):
            if self._client.status == "running":
                return max(1, int(sum(self._client.nthreads().values())))
        raise ClusterError(_GONE)

    def submit(self, trials: Sequence[Trial]) -> Future[tuple[Outcome, ...]]:
        """Send trials that share a fit."""
        import cloudpickle

        contender = trials[0].contender
        resources = {"GPU": 1} if contender.construction.device.startswith("cuda") else {}
        if resources:
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
            if not any(worker["resources"].get("GPU") for worker in workers):
                start = "dask worker --resources GPU=1"
                raise UsageError(f"{contender.label} needs a GPU, but no worker has one: start a worker with  {start}")
        plan = replace(self._plan, data=cast("Any", None), episodes=(), trials=tuple(trials))
        task = cloudpickle.dumps((plan, manifest(trials[0], self._plan, datetime.now(UTC))))
        future: Future[tuple[Outcome, ...]] = self._executor.submit(_work, task, resources=resources)
        return future

    def outcomes(self, future: Future[tuple[Outcome, ...]], trials: Sequence[Trial]) -> Sequence[Outcome]:
        """Return the outcomes of finished trials."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        try:
            return future.result()
        except KilledWorker as error:
            lost = BoxFailure(
                "killed", f"its worker was lost, as were the workers of {error.allowed_failures} more attempts"
            )
            return [failed_outcome(trial, self._plan, lost) for trial in trials]
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise ClusterError(_GONE) from error

    def cancel(self) -> None:
        """End all trials."""
        self._executor.shutdown(wait=False)


def _work(packed: bytes) -> tuple[Outcome, ...]:
    """Run trials that share a fit, as a worker."""
    from distributed import get_worker

    plan, client = pickle.loads(packed)  # written by the client
    data = _data(*plan.source)
    plan = replace(plan, data=data, episodes=tuple(plan.protocol.episodes(data.dataset)))
    contender = (trial := plan.trials[0]).contender
    here = replace(contender.description, sources=describe(contender.construction.source).sources)
    trial = replace(trial, contender=replace(contender, description=here))
    require_same(client, manifest(trial, plan, datetime.now(UTC)))
    worker, stop = get_worker(), threading.Event()
    key = worker.get_current_task()

    def watch() -> None:
        while not stop.wait(1.0):
            state = worker.state.tasks.get(key)
            if state is None or state.state == "cancelled":
                stop.set()

    threading.Thread(target=watch, daemon=True).start()
    outcomes = run_trials(plan.trials, plan, None, stop)
    stop.set()  # ends the watch
    manifests = ({**one.record.manifest, "command": client["command"]} for one in outcomes)
    return tuple(replace(o, record=replace(o.record, manifest=m)) for o, m in zip(outcomes, manifests, strict=True))


@cache
def _data(name: str, options: DataOptions) -> LabelledDataset:
    return load_dataset(name)(options)


def require_same(client: Mapping[str, JsonValue], worker: Mapping[str, JsonValue]) -> None:
    """Raise a ClusterError if a trial's manifest would differ between this worker and the client."""
    if found := [*differences(client, worker)]:
        raise ClusterError(
            f"the worker on {platform.node()} differs from the client: {', '.join(found)}; install the same versions "
            "and files there, and restart it"
        )
