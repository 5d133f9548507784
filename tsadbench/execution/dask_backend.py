"""Runs trials on a Dask cluster, whose workers need only the package and the data.

A worker is sent the detector and the plan without its data, which it reads itself, and sends back the trial's outcome.
It runs the trial in a box. If a worker is lost, so is the trial in flight, and Dask runs it again elsewhere.
"""

from __future__ import annotations

import logging
import platform
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import ClusterError, DataError, UsageError
from tsadbench.execution.observer import Observer
from tsadbench.execution.plan import Plan, Trial
from tsadbench.execution.provenance import identity, library_versions
from tsadbench.execution.trial import Keep, Outcome, failed_outcome, run_variants
from tsadbench.sandbox import BoxFailure
from tsadbench.utils.extras import extra
from tsadbench.utils.parameters import JsonValue

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster


# How often a trial is run again after its worker was lost.
MAX_LOST = 3
_TOPIC = "tsadbench"
_CONNECT_SECONDS = 10
# Groups of trials that the scheduler knows of at a time: more than a cluster runs at once, and so few that its memory
# and the client's stay bounded however long the plan is.
IN_FLIGHT = 5_000
# How often a worker checks whether its trial was cancelled, and reports the progress of a fit.
_POLL_SECONDS = 1.0
# Dask waits this long for a lost local worker, then drops its nanny without a replacement; we start one.
RETURN_SECONDS = 60.0
_HEAL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Task:
    """What a worker needs for trials that share a fit.

    Parameters
    ----------
    trials
        The trials.
    data_hash, labels_hash
        Of the data that the worker has to have.
    rules
        The plan's other fields by name, but for the data and the episodes: the worker reads and makes these itself.
    versions
        Versions of libraries that the worker has to have.
    """

    trials: tuple[Trial, ...]
    data_hash: str
    labels_hash: str
    rules: Mapping[str, Any]
    versions: Mapping[str, object]


def run_on_cluster(groups: Sequence[Sequence[Trial]], plan: Plan, address: str, watching: Observer, keep: Keep) -> None:
    """Run trials on a cluster and keep each as soon as it comes back.

    Parameters
    ----------
    groups
        Groups of trials that one fit serves.
    plan
        The plan; its data set must have been named, not given in Python.
    address
        ``tcp://host:port`` of a scheduler, or ``local:N`` for N worker processes of this machine.
    watching
        Receives the progress that workers report.
    keep
        Receives trials and their outcomes.

    Raises
    ------
    UsageError
        If the address is malformed, nothing answers there, or no worker has the GPU that a trial asks for.
    ClusterError
        If the scheduler is gone, or a worker has another version of a library or other data. Outcomes that had come
        back are kept.
    MissingExtraError
        If dask is not installed.
    """
    if plan.source is None:
        raise UsageError("a cluster needs the data set's name or card: its workers read the data themselves")
    with _connected(address) as client:
        _require_gpus(client, groups)
        run = _Run(client, plan, watching)
        try:
            run.all(groups, keep)
        except BaseException:
            run.cancel()
            raise


class _Run:
    """Trials on a cluster: which were submitted, and how often each has begun."""

    def __init__(self, client: Client, plan: Plan, watching: Observer) -> None:
        self._client, self._plan, self._watching = client, plan, watching
        self._groups: dict[str, tuple[Trial, ...]] = {}
        self._futures: dict[Future[Any], tuple[Trial, ...]] = {}
        # By name of the first trial. Dask counts a lost worker against all trials in its queue, although only one had
        # begun; so we count ourselves.
        self._begun: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()
        client.subscribe_topic(_TOPIC, lambda event: self._hear(event[1]))

    def all(self, groups: Sequence[Sequence[Trial]], keep: Keep) -> None:
        """Run all groups; each outcome goes to ``keep``."""
        from distributed import KilledWorker, as_completed

        unsent = iter(groups)
        waiting = as_completed([self._submit(tuple(group)) for group in islice(unsent, IN_FLIGHT)])
        for future in waiting:
            group = self._futures.pop(future)
            del self._groups[future.key]
            waiting.update(self._submit(tuple(following)) for following in islice(unsent, 1))
            name = self._name(group)
            try:
                keep(group, self._outcomes(future, group))
            except KilledWorker:
                # A worker may die before its report that the trial has begun arrives, so attempts that were sent count
                # as well: otherwise a trial that kills its worker at once would be sent forever.
                if self._begun[name] <= MAX_LOST and self._sent[name] <= MAX_LOST:
                    waiting.add(self._submit(group))
                    continue
                failure = BoxFailure("killed", f"its worker was lost, and so were those of {MAX_LOST} more attempts")
                keep(group, [failed_outcome(trial, self._plan, failure) for trial in group])
            future.release()

    def cancel(self) -> None:
        """Cancel the trials that were submitted."""
        self._client.cancel(list(self._futures), force=True)

    def _name(self, group: Sequence[Trial]) -> str:
        return identity(group[0], self._plan).trial

    def _submit(self, group: tuple[Trial, ...]) -> Future[Any]:
        # A key of its own per attempt: Dask would answer a known key with the lost attempt's failure.
        key = f"tsadbench-{self._name(group)}-{time.time_ns()}"
        self._sent[self._name(group)] += 1
        self._groups[key] = group
        resources = {"GPU": 1} if _on_gpu(group) else None
        packed = _packed(group, self._plan)
        future = self._client.submit(_work, packed, key, key=key, pure=False, resources=resources)
        self._futures[future] = group
        return future

    def _hear(self, event: Mapping[str, Any]) -> None:
        # Called in the client's own thread. Other runs on the same cluster report on this topic, too; and a report may
        # arrive after its trial's outcome.
        group = self._groups.get(event["key"])
        if group is None:
            return
        if event["what"] == "started":
            self._begun[self._name(group)] += 1
            for trial in group:
                self._watching.started(trial)
        else:
            self._watching.progressed(group[0], event["done"], event["total"], event["note"])

    def _outcomes(self, future: Future[Any], group: Sequence[Trial]) -> list[Outcome]:
        from concurrent.futures import CancelledError

        from distributed.comm import CommClosedError

        try:
            outcomes = cast("Sequence[Outcome]", future.result())
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise ClusterError(
                "the cluster's scheduler is gone; what had come back is kept: run the command again"
            ) from error
        return [self._own(trial, outcome) for trial, outcome in zip(group, outcomes, strict=True)]

    def _own(self, trial: Trial, outcome: Outcome) -> Outcome:
        """Return an outcome as if its trial had run here."""
        code_hash = trial.contender.description.code_hash
        manifest: dict[str, JsonValue] = {**outcome.record.manifest, "command": [*sys.argv], "code_hash": code_hash}
        return replace(
            outcome, record=replace(outcome.record, **asdict(identity(trial, self._plan)), manifest=manifest)
        )


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    with extra("--cluster", "cluster"):
        import dask
        from distributed import Client, LocalCluster
    _silence()
    kind, _, rest = address.partition(":")
    if kind == "local" and rest.isdigit() and int(rest) > 0:
        with (
            dask.config.set(
                {
                    "distributed.scheduler.allowed-failures": MAX_LOST,
                    "distributed.deploy.lost-worker-timeout": RETURN_SECONDS,
                }
            ),
            LocalCluster(
                n_workers=int(rest), threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR
            ) as cluster,
            _healed(cluster, int(rest)),
            Client(cluster) as client,
        ):
            yield client
    elif kind in ("tcp", "tls") and rest:
        try:
            client = Client(address, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--cluster {address}: no scheduler answers there; start one with  dask scheduler"
            ) from error
        with client:
            yield client
    else:
        raise UsageError(f"--cluster {address}: expected tcp://host:port or local:N")


@contextmanager
def _healed(cluster: LocalCluster, n_workers: int) -> Iterator[None]:
    """Replace the workers that Dask has given up; a run without workers would wait forever."""
    from tornado.ioloop import PeriodicCallback

    def heal() -> None:
        if len(cluster.workers) < n_workers:
            cluster.scale(n_workers)

    healing = PeriodicCallback(heal, _HEAL_SECONDS * 1000)
    # The cluster lives in the loop's thread, and neither it nor the callback may be touched from any other.
    cluster.loop.add_callback(healing.start)
    try:
        yield
    finally:
        cluster.loop.add_callback(healing.stop)


def _silence() -> None:
    """Keep Dask from printing tracebacks of lost connections; those that matter are reported as our errors."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _on_gpu(group: Sequence[Trial]) -> bool:
    return group[0].contender.device.startswith("cuda")


def _require_gpus(client: Client, groups: Sequence[Sequence[Trial]]) -> None:
    """Refuse trials that would wait forever for a worker with a GPU."""
    label = next((group[0].contender.label for group in groups if _on_gpu(group)), None)
    workers = cast("Mapping[str, Mapping[str, Any]]", client.scheduler_info(n_workers=-1)["workers"])
    if label and not any(worker.get("resources", {}).get("GPU") for worker in workers.values()):
        raise UsageError(
            f"{label} asks for a GPU, and no worker offers one: start it with  dask worker --resources GPU=1"
        )


def _packed(group: Sequence[Trial], plan: Plan) -> bytes:
    import cloudpickle

    here = ("data", "episodes", "trials")
    task = _Task(
        trials=tuple(group),
        data_hash=plan.data.dataset.content_hash,
        labels_hash=plan.data.labels.content_hash,
        rules={field.name: getattr(plan, field.name) for field in fields(Plan) if field.name not in here},
        versions=library_versions(),
    )
    return cast("bytes", cloudpickle.dumps(task))


def _work(packed: bytes, key: str) -> tuple[Outcome, ...]:
    """Run trials that share a fit, on a worker."""
    import pickle

    from distributed import get_worker

    worker = get_worker()
    task: _Task = pickle.loads(packed)  # the client wrote it, for this cluster
    _require_same_versions(task.versions)
    worker.log_event(_TOPIC, {"what": "started", "key": key})
    data = _data(*task.rules["source"], task.data_hash, task.labels_hash)
    episodes = tuple(task.rules["protocol"].episodes(data.dataset))
    plan = Plan(data=data, episodes=episodes, trials=task.trials, **task.rules)
    stop, over = threading.Event(), threading.Event()
    reported = 0.0

    def report(done: int, total: int, note: str) -> None:
        nonlocal reported
        if time.monotonic() - reported > _POLL_SECONDS:
            reported = time.monotonic()
            event = {"what": "progress", "key": key, "done": done, "total": total, "note": note}
            worker.log_event(_TOPIC, event)

    def watch() -> None:
        while not over.wait(_POLL_SECONDS):
            state = worker.state.tasks.get(key)
            if state is None or state.state == "cancelled":
                stop.set()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return run_variants(plan.trials, plan, report, stop)
    finally:
        over.set()
        watcher.join()


@cache
def _data(name: str, options: DataOptions, data_hash: str, labels_hash: str) -> LabelledDataset:
    data = load_dataset(name)(options)
    if (data.dataset.content_hash, data.labels.content_hash) != (data_hash, labels_hash):
        raise DataError(
            f"the worker on {platform.node()} has other data for {name} than the client: hash "
            f"{data.dataset.content_hash[:12]}, expected {data_hash[:12]}; give both the same files"
        )
    return data


def _require_same_versions(expected: Mapping[str, object]) -> None:
    here = library_versions()
    differing = {name: (here.get(name), version) for name, version in expected.items() if here.get(name) != version}
    if differing:
        versions = ", ".join(f"{name} {mine} there and {theirs} here" for name, (mine, theirs) in differing.items())
        raise ClusterError(f"the worker on {platform.node()} has other versions: {versions}; install the same ones")
