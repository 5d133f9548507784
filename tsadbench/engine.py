"""Runs a plan's trials on this machine, several at a time where asked, and keeps what they gave."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol as Interface

from tsadbench.plan import Plan, Trial
from tsadbench.record import Record
from tsadbench.store import Store
from tsadbench.trial import run_trial


class Observer(Interface):
    """Who wants to know how far a run has come. Called from several threads."""

    def started(self, trial: Trial) -> None:
        """Hear that a trial begins."""

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Hear how far a trial's fit has come."""

    def finished(self, trial: Trial, record: Record) -> None:
        """Hear what a trial gave."""


class Silent:
    """An observer that says nothing."""

    def started(self, trial: Trial) -> None:
        """Say nothing."""

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Say nothing."""

    def finished(self, trial: Trial, record: Record) -> None:
        """Say nothing."""


def run_plan(plan: Plan, store: Store | None, observer: Observer | None = None, *, jobs: int = 1) -> tuple[Record, ...]:
    """Run all trials and return their records, in the plan's order.

    Parameters
    ----------
    plan
        What to run.
    store
        Where each trial's record and scores are kept as soon as it has ended; None keeps nothing.
    observer
        Hears of each trial's beginning, progress and end.
    jobs
        How many trials run at a time. Each has a process of its own, so the results do not depend on it.

    Raises
    ------
    KeyboardInterrupt
        Where the user interrupts: trials in flight are ended, those that had ended are kept.
    """
    watching = observer or Silent()
    stop = threading.Event()

    def run_one(trial: Trial) -> Record:
        watching.started(trial)
        outcome = run_trial(trial, plan, lambda done, total, note: watching.progressed(trial, done, total, note), stop)
        if store is not None:
            store.add(outcome)
        watching.finished(trial, outcome.record)
        return outcome.record

    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="trial") as workers:
        futures: list[Future[Record]] = [workers.submit(run_one, trial) for trial in plan.trials]
        try:
            return tuple(future.result() for future in futures)
        except BaseException:
            stop.set()
            workers.shutdown(wait=True, cancel_futures=True)
            raise
