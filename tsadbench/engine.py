"""Runs a plan's trials on this machine and keeps what they gave."""

from __future__ import annotations

from typing import Protocol as Interface

from tsadbench.plan import Plan, Trial
from tsadbench.record import Record
from tsadbench.store import Store
from tsadbench.trial import run_trial


class Observer(Interface):
    """Who wants to know how far a run has come."""

    def started(self, trial: Trial) -> None:
        """Hear that a trial begins."""

    def progressed(self, done: int, total: int, note: str) -> None:
        """Hear how far the trial's fit has come."""

    def finished(self, record: Record) -> None:
        """Hear what the trial gave."""


class Silent:
    """An observer that says nothing."""

    def started(self, trial: Trial) -> None:
        """Say nothing."""

    def progressed(self, done: int, total: int, note: str) -> None:
        """Say nothing."""

    def finished(self, record: Record) -> None:
        """Say nothing."""


def run_plan(plan: Plan, store: Store | None, observer: Observer | None = None) -> tuple[Record, ...]:
    """Run all trials and return their records, in the plan's order.

    Parameters
    ----------
    plan
        What to run.
    store
        Where each trial's record and scores are kept as soon as it has ended; None keeps nothing.
    observer
        Hears of each trial's beginning, progress and end.
    """
    watching = observer or Silent()
    records = []
    for trial in plan.trials:
        watching.started(trial)
        outcome = run_trial(trial, plan, watching.progressed)
        if store is not None:
            store.add(outcome)
        watching.finished(outcome.record)
        records.append(outcome.record)
    return tuple(records)
