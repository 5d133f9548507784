"""Runs a plan's trials on this machine or on a cluster, and stores their records and scores."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import cache, partial
from typing import get_args

from tsadbench.base.status import Status
from tsadbench.errors import StoreError
from tsadbench.execution.cluster import Cluster, connected
from tsadbench.execution.identity import identity
from tsadbench.execution.judging import contribution_shapes, judge_again, score_shapes, scored_episodes
from tsadbench.execution.plan import ASKED_BY, Plan, Trial, shared_fits
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.execution.trial import Outcome, require_recordable, run_trials

ALL_BUT_OK: frozenset[str] = frozenset(get_args(Status)) - {"ok"}
# Not a status: selects ok trials without contributions whose detector offers them.
NO_CONTRIBUTIONS = "no-contributions"
# Seconds between checks of a cluster's health and number of workers.
_SECONDS = 2.0


class Observer:
    """Receives a run's events, from several threads; this one ignores them."""

    def kept(self, trial: Trial, record: Record) -> None:
        """Receive a trial that an earlier run has completed."""

    def started(self, trial: Trial) -> None:
        """Receive a trial that begins on this machine."""

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Receive the progress of a trial's fit."""

    def finished(self, trial: Trial, record: Record) -> None:
        """Receive the result of a trial."""


def run_plan(
    plan: Plan,
    store: Store | None,
    observer: Observer | None = None,
    *,
    jobs: int = 1,
    rerun: Collection[str] = ALL_BUT_OK,
    cluster: str | None = None,
) -> tuple[Record, ...]:
    """Run the trials that the store lacks, and return all trials' records in the plan's order.

    Each trial is stored as soon as it has ended. ``jobs`` fits run at a time on this machine, or a ``cluster`` of Dask
    runs them. ``rerun`` lists the statuses of stored trials to run again; "no-contributions" selects ok trials without
    contributions that the plan requests and the detector offers.

    Raises a UsageError or a ClusterError if the cluster is not available or breaks down. A KeyboardInterrupt ends the
    running trials. Finished trials are kept in any case.
    """
    if store is not None:
        plan = replace(plan, store=store.path)
    watching = observer or Observer()
    identities = [identity(trial, plan) for trial in plan.trials]
    records: dict[str, Record] = {}
    planned = [*zip(plan.trials, identities, strict=True)]
    if store is not None:
        records = {record.trial: record for record in kept_records(plan, store, rerun=rerun)}
    missing = [trial for trial, names in planned if names.trial not in records]
    for trial in missing:
        require_recordable(trial, plan)
    if store is not None:
        store.remember(planned={_words(trial, plan): names.trial for trial, names in planned})
    for trial, names in planned:
        if names.trial in records:
            watching.kept(trial, records[names.trial])
    if missing:
        at = nullcontext(_Here(plan, jobs, watching)) if cluster is None else connected(cluster, plan)
        with at as workers, closing(_ended(shared_fits(missing), workers)) as ended:
            for trial, outcome in ended:
                if store is not None:
                    store.add(outcome)
                records[outcome.record.trial] = outcome.record
                watching.finished(trial, outcome.record)
    return tuple(records[names.trial] for names in identities)


def _words(trial: Trial, plan: Plan) -> str:
    """Describe a trial regardless of its code and threads; of trials with the same description, the newest counts."""
    return f"{trial.contender.label}, seed {trial.seed}, {plan.data.dataset.name}, {plan.protocol_label}"


def n_kept(plans: Iterable[Plan], store: Store) -> int:
    """Return the number of the plans' trials that a store holds with status "ok"."""
    found = ((plan, store.find(identity(trial, plan).trial)) for plan in plans for trial in plan.trials)
    return sum(record is not None and record.status == "ok" and plan.accepts(record) for plan, record in found)


class _Here:
    """Runs trials in boxes of this machine, each watched by a thread."""

    def __init__(self, plan: Plan, jobs: int, observer: Observer) -> None:
        self.n_at_a_time, self._plan, self._observer = jobs, plan, observer
        self._stop = threading.Event()
        self._executor = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="trial")

    def submit(self, trials: Sequence[Trial]) -> Future[tuple[Outcome, ...]]:
        return self._executor.submit(self._run, trials)

    def outcomes(self, future: Future[tuple[Outcome, ...]], _: Sequence[Trial]) -> Sequence[Outcome]:
        return future.result()

    def cancel(self) -> None:
        self._stop.set()
        self._executor.shutdown(cancel_futures=True)

    def _run(self, trials: Sequence[Trial]) -> tuple[Outcome, ...]:
        for trial in trials:
            self._observer.started(trial)
        return run_trials(trials, self._plan, partial(self._observer.progressed, trials[0]), self._stop)


def _ended(groups: Iterable[Sequence[Trial]], workers: _Here | Cluster) -> Generator[tuple[Trial, Outcome], None, None]:
    """Run groups of trials, and yield each trial when it ends. Closing the generator ends running trials."""
    waiting, running = deque(groups), dict[Future[tuple[Outcome, ...]], Sequence[Trial]]()
    try:
        while waiting or running:
            for _ in range(min(len(waiting), workers.n_at_a_time - len(running))):
                trials = waiting.popleft()
                running[workers.submit(trials)] = trials
            ended, _ = wait(running, _SECONDS, FIRST_COMPLETED)
            for future in ended:
                trials = running.pop(future)
                yield from zip(trials, workers.outcomes(future, trials), strict=True)
    finally:
        workers.cancel()


def kept_records(plan: Plan, store: Store, *, rerun: Collection[str] = ALL_BUT_OK) -> tuple[Record, ...]:
    """Return the stored records of a plan's trials that need not run again, in the plan's order.

    If only the rules or the protocol's parameters differ, the stored scores are judged, and the record is stored.
    ``rerun`` is as for `run_plan`.
    """

    @cache
    def by_scoring() -> dict[str, Record]:  # the newest that is ok
        return {record.scoring: record for record in store.read()[0] if record.status == "ok"}

    def held(trial: Trial) -> Record | None:
        names = identity(trial, plan)
        record = store.find(names.trial)
        if record is None and "ok" not in rerun and store.holds(names.scoring):
            record = by_scoring().get(names.scoring)
        if record is None or record.status in rerun or not plan.accepts(record):
            return None
        if record.status != "ok":
            return record
        lacks = trial.contender.description.offers_contributions and not store.has_contributions(record)
        if plan.contributions and NO_CONTRIBUTIONS in rerun and lacks:
            return None
        try:
            scores = store.scores(record, score_shapes(plan.episodes))
            store.contributions(record, contribution_shapes(plan.episodes))  # raises if they are another run's
        except StoreError:  # run it again
            return None
        if (record.trial, record.judging) == (names.trial, names.judging):
            return record
        scored = scored_episodes(scores, plan.episodes, trial.contender.traits.fixed_threshold)
        judged = replace(record, trial=names.trial, protocol=plan.protocol_label)
        judged = judge_again(judged, scored, plan.protocol, plan.data, names.judging)
        if record.trial != names.trial:
            made = {key: value for key, value in judged.manifest.items() if key not in ASKED_BY}
            judged = replace(judged, manifest={**made, **plan.asked_by})
        store.put(judged)
        return judged

    return tuple(record for trial in plan.trials if (record := held(trial)))
