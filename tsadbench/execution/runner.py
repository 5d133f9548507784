"""Runs a plan's trials on this machine, several at a time where asked, or on a cluster, and keeps what they gave."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol as Interface
from typing import get_args

from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan, Trial
from tsadbench.execution.provenance import identity
from tsadbench.execution.record import Record, Status
from tsadbench.execution.run_store import Store
from tsadbench.execution.trial import Keep, Outcome, run_variants

ALL_BUT_OK: frozenset[str] = frozenset(get_args(Status)) - {"ok"}
# Not a status: of the trials that are ok, those that hold no contributions although their detector offers them.
NO_CONTRIBUTIONS = "no-contributions"


class Observer(Interface):
    """Who wants to know how far a run has come. Called from several threads."""

    def kept(self, trial: Trial, record: Record) -> None:
        """Hear that the store has the trial from an earlier run."""

    def started(self, trial: Trial) -> None:
        """Hear that a trial begins."""

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Hear how far a trial's fit has come."""

    def finished(self, trial: Trial, record: Record) -> None:
        """Hear what a trial gave."""


class Silent:
    """An observer that says nothing."""

    def kept(self, trial: Trial, record: Record) -> None:
        """Say nothing."""

    def started(self, trial: Trial) -> None:
        """Say nothing."""

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Say nothing."""

    def finished(self, trial: Trial, record: Record) -> None:
        """Say nothing."""


def run_plan(
    plan: Plan,
    store: Store | None,
    observer: Observer | None = None,
    *,
    jobs: int = 1,
    rerun: Collection[str] = ALL_BUT_OK,
    cluster: str | None = None,
) -> tuple[Record, ...]:
    """Run what the store does not hold yet, and return all trials' records, in the plan's order.

    Parameters
    ----------
    plan
        What to run.
    store
        Where each trial's record and scores are kept as soon as it has ended, and where those of earlier runs lie;
        None keeps nothing.
    observer
        Hears of each trial's beginning, progress and end.
    jobs
        How many fits run at a time. Each has a process of its own, so the results do not depend on it.
    rerun
        Statuses of kept trials that are run again; "no-contributions" means those that are ok and hold none, although
        the plan asks for contributions and the detector offers them.
    cluster
        A Dask cluster that runs them in the place of this machine: ``tcp://host:port`` or ``local:N``.

    Raises
    ------
    UsageError, ClusterError
        If the cluster cannot be had, or breaks down; what had come back is kept.
    KeyboardInterrupt
        If the user interrupts: trials in flight are ended, those that had ended are kept.
    """
    if jobs < 1:
        raise UsageError(f"--jobs must be at least 1, found {jobs}")
    watching = observer or Silent()
    records = {} if store is None else {one.trial: one for one in kept_records(plan, store, rerun=rerun)}
    missing = []
    for trial in plan.trials:
        kept = records.get(identity(trial, plan))
        if kept is None:
            missing.append(trial)
        else:
            watching.kept(trial, kept)

    def keep(trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> None:
        for trial, outcome in zip(trials, outcomes, strict=True):
            if store is not None:
                store.add(outcome)
            records[outcome.record.trial] = outcome.record
            watching.finished(trial, outcome.record)

    groups = plan.shared_fits(missing)
    if cluster is None:
        _run_here(groups, plan, jobs, watching, keep)
    elif groups:
        from tsadbench.execution.dask_backend import run_on_cluster

        run_on_cluster(groups, plan, cluster, watching, keep)
    return tuple(records[identity(trial, plan)] for trial in plan.trials)


def _run_here(
    groups: Sequence[tuple[Trial, ...]],
    plan: Plan,
    jobs: int,
    watching: Observer,
    keep: Keep,
) -> None:
    stop = threading.Event()

    def run_group(trials: tuple[Trial, ...]) -> None:
        first, *_ = trials
        for trial in trials:
            watching.started(trial)
        outcomes = run_variants(
            trials, plan, lambda done, total, note: watching.progressed(first, done, total, note), stop
        )
        keep(trials, outcomes)

    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="trial") as workers:
        futures: list[Future[None]] = [workers.submit(run_group, trials) for trials in groups]
        try:
            for future in futures:
                future.result()
        except BaseException:
            stop.set()
            workers.shutdown(wait=True, cancel_futures=True)
            raise


def kept_records(plan: Plan, store: Store, *, rerun: Collection[str] = ALL_BUT_OK) -> tuple[Record, ...]:
    """Return the records of those of a plan's trials that the store holds, in the plan's order.

    Parameters
    ----------
    plan, store
        The plan and the store.
    rerun
        What does not count as held, as for `run_plan`.
    """
    found = ((trial, store.find(identity(trial, plan))) for trial in plan.trials)
    kept = [(trial, record) for trial, record in found if record is not None and record.status not in rerun]
    if NO_CONTRIBUTIONS in rerun and plan.contributions:
        kept = [(trial, record) for trial, record in kept if not _lacks_contributions(trial, record, store)]
    return tuple(record for _, record in kept)


def _lacks_contributions(trial: Trial, record: Record, store: Store) -> bool:
    offered = trial.contender.construction.cls.offers_contributions()
    return record.status == "ok" and offered and not store.has_contributions(record.trial)
