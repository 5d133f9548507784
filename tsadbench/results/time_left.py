"""How long the rest of a run will take, from what trials like its own have taken."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tsadbench.errors import StoreError, UsageError
from tsadbench.execution.plan import Plan, Trial
from tsadbench.execution.provenance import identity
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.results.shipped import shipped_datasets, stored_records
from tsadbench.utils.grouping import grouped

# An estimate must not delay a run, however large its store: how many stored trials are read for it, how many are looked
# for by their names, with which seeds, and for how many seconds an answer stays.
_SAMPLE = 200
_LOOKUPS = 200
_SEEDS = 5
_FRESH_SECONDS = 1.0


class _Means:
    """The mean seconds of trials' fits and of their scoring, by what the trials have in common."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._sums: dict[tuple[object, ...], tuple[int, float, float]] = {}
        self.learn(records)

    def learn(self, records: Iterable[Record]) -> None:
        """Take in those that are ok."""
        for record in records:
            if record.status == "ok":
                self.add(record, record.fit_seconds or 0.0)

    def add(self, record: Record, fit: float) -> None:
        """Take in a trial whose fit, with all that it took beside scoring, lasted so many seconds."""
        same = record.dataset, record.protocol, record.label, record.threads
        counts: dict[tuple[object, ...], int]
        counts = {same: 1, (record.dataset, record.detector): 1, (): 1, (record.detector,): record.rows_scored or 0}
        for key, count in counts.items():
            n, fits, scores = self._sums.get(key, (0, 0.0, 0.0))
            if count:
                self._sums[key] = n + count, fits + fit, scores + (record.score_seconds or 0.0)

    def by_rows(self, kind: _Kind) -> tuple[float, float] | None:
        """Return what a trial takes at the pace of its detector on any data set."""
        pace = self.of(kind.trial.contender.name)
        return None if pace is None else (pace[0] * kind.n_rows, pace[1] * kind.n_rows)

    def of(self, *key: object) -> tuple[float, float] | None:
        n, fits, scores = self._sums.get(key, (0, 0.0, 0.0))
        return (fits / n, scores / n) if n else None


@dataclass(slots=True, eq=False)
class _Kind:
    """The trials of a plan that differ in nothing but their seeds: one of them, and how many have not ended."""

    trial: Trial
    plan: Plan
    fit: object  # equal for kinds that share fits
    n_left: int = 0

    @property
    def table(self) -> tuple[str, str]:
        return self.plan.data.dataset.name, self.plan.protocol_label

    @property
    def same(self) -> tuple[object, ...]:
        return *self.table, self.trial.contender.label, self.trial.threads

    @property
    def similar(self) -> tuple[object, ...]:
        return self.table[0], self.trial.contender.name

    @property
    def n_rows(self) -> int:
        dataset = self.plan.data.dataset
        return sum(recording.n_rows for recording in (*dataset.train, *dataset.test))


class TimeLeft:
    """Estimates how long the rest of a run will take; it learns from what an observer of the run hears.

    A trial is expected to take the mean of the first of these, as far as any is known:

    - the same detector with the same parameters on the same data set under the same protocol with as many threads, with
      any seed: in this run, else in the store
    - the same detector on that data set: in this run, else in the store
    - the same two in the leaderboard that ships with the package
    - the same detector on other data sets, by the number of rows: in this run, in the store, or in those leaderboards
    - any trial of this run that has ended

    Trials of this run count from their start to their end, all others with the seconds of their fits and scoring.

    Parameters
    ----------
    plans
        What the run does.
    store
        The trials of earlier runs; None if there are none. It is asked only if an estimate needs it, and a few hundred
        trials at most are read, so that a large store delays nothing.
    jobs
        How many fits run at a time; None: as many as were seen running.
    clock
        Returns seconds.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        store: Store | None = None,
        *,
        jobs: int | None = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.n_trials = sum(len(plan.trials) for plan in plans)
        self._store = store
        self._jobs = jobs
        self._clock = clock
        self._kinds: dict[int, _Kind] = {}  # by contender: a plan's are its own
        for plan in plans:
            for trial in plan.trials:
                if id(trial.contender) not in self._kinds:
                    fit = id(plan), replace(trial, seed=0).fit_key
                    self._kinds[id(trial.contender)] = _Kind(trial, plan, fit)
                self._kinds[id(trial.contender)].n_left += 1
        self._here, self._earlier = _Means(), _Means()
        self._shipped: dict[tuple[str, str], _Means] = {}
        # By what shares a fit, and its seed: when it began, and how many trials it serves.
        self._running: dict[tuple[object, int], tuple[float, int]] = {}
        self._most_running = 1
        self._answer: tuple[float, float | None] | None = None
        self._lock = threading.Lock()  # trials report from several threads

    def kept(self, trial: Trial, record: Record) -> None:
        """Hear that an earlier run has completed the trial."""
        with self._lock:
            self._kinds[id(trial.contender)].n_left -= 1
            self._earlier.learn([record])

    def started(self, trial: Trial) -> None:
        """Hear that a trial begins."""
        with self._lock:
            key = self._kinds[id(trial.contender)].fit, trial.seed
            begun, n_served = self._running.get(key, (self._clock(), 0))
            self._running[key] = begun, n_served + 1
            self._most_running = max(self._most_running, len(self._running))

    def finished(self, trial: Trial, record: Record) -> None:
        """Hear the result of a trial."""
        with self._lock:
            kind = self._kinds[id(trial.contender)]
            kind.n_left -= 1
            begun, n_served = self._running.pop((kind.fit, trial.seed), (None, 0))
            fit = record.fit_seconds or 0.0
            if begun is not None:  # else it shared the fit of a trial that was heard of before
                fit = max(fit, self._clock() - begun - n_served * (record.score_seconds or 0.0))
            if begun is not None or record.status == "ok":
                self._here.add(record, fit)

    def seconds(self) -> float | None:
        """Return how many seconds the rest of the run will take; None if too little is known to say."""
        with self._lock:
            now = self._clock()
            if self._answer is None or now - self._answer[0] >= _FRESH_SECONDS:
                self._answer = now, self._estimate(now)
            at, left = self._answer
            return None if left is None else max(0.0, left - (now - at))

    def _estimate(self, now: float) -> float | None:
        lasts: dict[object, float] = {}  # seconds of a fit with the scoring of all trials that it serves
        n_running = Counter(fit for fit, _ in self._running)
        total = longest = 0.0
        left = [kind for kind in self._kinds.values() if kind.n_left > 0]
        for fit, variants in grouped(left, lambda kind: kind.fit).items():
            expected = [found for kind in variants if (found := self._expected(kind)) is not None]
            if len(expected) < len(variants):
                return None
            lasts[fit] = max(seconds for seconds, _ in expected) + sum(seconds for _, seconds in expected)
            n_fits = max(kind.n_left for kind in variants)
            total += n_fits * lasts[fit]
            if n_fits > n_running[fit]:
                longest = max(longest, lasts[fit])
        for (fit, _), (begun, _) in self._running.items():
            expects = lasts.get(fit, 0.0)  # a cluster may start again what has ended
            spent = min(now - begun, expects)
            total, longest = total - spent, max(longest, expects - spent)
        return max(total / (self._jobs or self._most_running), longest)

    def _expected(self, kind: _Kind) -> tuple[float, float] | None:
        """Return the seconds of a trial's fit and scoring by the best experience there is; search only if needed."""
        if known := self._here.of(*kind.same) or self._earlier.of(*kind.same):
            return known
        self._read_store()
        if kind.table not in self._shipped:
            self._shipped[kind.table] = _shipped(*kind.table)
        shipped = self._shipped[kind.table]
        return (
            self._earlier.of(*kind.same)
            or self._here.of(*kind.similar)
            or self._earlier.of(*kind.similar)
            or shipped.of(*kind.same)
            or shipped.of(*kind.similar)
            or self._here.by_rows(kind)
            or self._earlier.by_rows(kind)
            or self._shipped_by_rows(kind)
            or self._here.of()
        )

    def _shipped_by_rows(self, kind: _Kind) -> tuple[float, float] | None:
        """Look through the shipped leaderboards of the protocol until one has the detector; each is read once."""
        protocol = kind.table[1]
        for dataset in shipped_datasets(protocol):
            table = dataset, protocol
            if table not in self._shipped:
                self._shipped[table] = _shipped(*table)
            if found := self._shipped[table].by_rows(kind):
                return found
        return None

    def _read_store(self) -> None:
        """Read trials that are called as this run's with the first seeds would be, and a sample; only once."""
        store, self._store = self._store, None
        if store is None:
            return
        kinds = [kind for kind in self._kinds.values() if kind.n_left > 0 and not self._earlier.of(*kind.same)]
        trials = ((replace(kind.trial, seed=seed), kind.plan) for seed in range(_SEEDS) for kind in kinds)
        named = (store.find(identity(*one).trial) for one in islice(trials, _LOOKUPS))
        self._earlier.learn(record for record in (*named, *store.sample(_SAMPLE)) if record is not None)


def _shipped(dataset: str, protocol: str) -> _Means:
    try:
        return _Means(stored_records(dataset, protocol))
    except (UsageError, StoreError):  # none ships
        return _Means()
