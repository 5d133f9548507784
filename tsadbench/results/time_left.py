"""How long the rest of a run will take, from what trials like its own have taken."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tsadbench.errors import StoreError, UsageError
from tsadbench.execution.plan import Plan, Trial
from tsadbench.execution.provenance import identity
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.results.shipped import stored_records
from tsadbench.utils.grouping import grouped

# What trials have in common; the first part says how much of it.
_Key: TypeAlias = tuple[str | int, ...]
# An estimate must not delay a run, however large its store: how many stored trials are read for it, how many are looked
# for by their names, with which seeds, and for how many seconds an answer stays.
_SAMPLE = 200
_LOOKUPS = 200
_SEEDS = 5
_FRESH_SECONDS = 1.0
# Trials shorter than this in total say nothing about a machine's speed.
_TELLING_SECONDS = 1.0


@dataclass(slots=True)
class Mean:
    """The mean seconds of trials' fits and of their scoring."""

    n: int = 0
    fit_sum: float = 0.0
    score_sum: float = 0.0

    @property
    def fit(self) -> float:
        """Seconds of a trial's fits."""
        return self.fit_sum / self.n

    @property
    def score(self) -> float:
        """Seconds of a trial's scoring."""
        return self.score_sum / self.n

    def add(self, fit: float, score: float) -> None:
        """Take a trial in."""
        self.n += 1
        self.fit_sum += fit
        self.score_sum += score

    def scaled(self, factor: float) -> Mean:
        """Return the means times a factor."""
        return Mean(self.n, self.fit_sum * factor, self.score_sum * factor)


class Experience:
    """What trials took, by what they have in common.

    Parameters
    ----------
    records
        Trials to learn from; those that failed are left out.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._means: dict[_Key, Mean] = {}
        for record in records:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Take in a trial that is ok, with the seconds that its record holds."""
        if record.status == "ok":
            self.add(record, record.fit_seconds or 0.0, record.score_seconds or 0.0)

    def add(self, record: Record, fit: float, score: float) -> None:
        """Take in a trial that took these seconds."""
        label = record.dataset, record.protocol, record.label, record.threads
        for key in (("same", *label), ("similar", record.dataset, record.detector), ("any",)):
            self._means.setdefault(key, Mean()).add(fit, score)

    def of(self, *key: str | int) -> Mean | None:
        """Return what trials with this in common took; None if there were none."""
        return self._means.get(key)

    def same(self) -> Iterable[tuple[_Key, Mean]]:
        """Return what trials took that differ in nothing but their seeds."""
        return [(key, mean) for key, mean in self._means.items() if key[0] == "same"]


@dataclass(slots=True, eq=False)
class _Kind:
    """The trials of a plan that differ in nothing but their seeds.

    Parameters
    ----------
    trial, plan
        One of them, and their plan.
    group
        Equal for kinds that share fits.
    n_left
        How many have not ended.
    looked_for
        Whether the store was searched for their like.
    """

    trial: Trial
    plan: Plan
    group: object
    n_left: int = 0
    looked_for: bool = False

    @property
    def table(self) -> tuple[str, str]:
        return self.plan.data.dataset.name, self.plan.protocol_label

    @property
    def same(self) -> _Key:
        return "same", *self.table, self.trial.contender.label, self.trial.threads

    @property
    def similar(self) -> _Key:
        return "similar", self.table[0], self.trial.contender.name


class TimeLeft:
    """Estimates how long the rest of a run will take; it learns from what an observer of the run hears.

    A trial is expected to take what the first of these took, as far as any is known:

    - the same detector with the same parameters on the same data set under the same protocol with as many threads, with
      any seed, in the store or in this run
    - the same detector on that data set, in the store or in this run
    - the same two in the leaderboard that ships with the package, times what trials of this run that have ended took
      over what that leaderboard says of them
    - any trial of this run that has ended

    What a trial takes beside fitting and scoring is learned from this run alone.

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
                    group = id(plan), replace(trial, seed=0).fit_key
                    self._kinds[id(trial.contender)] = _Kind(trial, plan, group)
                self._kinds[id(trial.contender)].n_left += 1
        self._known, self._measured = Experience(), Experience()
        self._shipped: dict[tuple[str, str], Experience] = {}
        # By what shares a fit, and its seed: when it began, and what is scored.
        self._running: dict[tuple[object, int], tuple[float, list[_Kind]]] = {}
        self._most_running = 1
        # What trials took beside fitting and scoring, by what they have in common, and the least of all.
        self._beside: dict[_Key, Mean] = {}
        self._least_beside: float | None = None
        self._n_lookups = 0
        self._sampled = False
        self._answer: tuple[float, float | None] | None = None
        self._lock = threading.Lock()  # trials report from several threads

    def kept(self, trial: Trial, record: Record) -> None:
        """Hear that an earlier run has completed the trial."""
        with self._lock:
            self._kinds[id(trial.contender)].n_left -= 1
            self._known.learn(record)

    def started(self, trial: Trial) -> None:
        """Hear that a trial begins."""
        with self._lock:
            kind = self._kinds[id(trial.contender)]
            _, together = self._running.setdefault((kind.group, trial.seed), (self._clock(), []))
            if kind not in together:  # a cluster may start a trial a second time
                together.append(kind)
            self._most_running = max(self._most_running, len(self._running))

    def finished(self, trial: Trial, record: Record) -> None:
        """Hear the result of a trial."""
        with self._lock:
            kind = self._kinds[id(trial.contender)]
            kind.n_left -= 1
            begun, together = self._running.pop((kind.group, trial.seed), (None, []))
            fit, score = record.fit_seconds or 0.0, record.score_seconds or 0.0
            if begun is not None and len(together) == 1:
                lasted = self._clock() - begun
                if record.status == "ok":
                    beside = max(0.0, lasted - fit - score)
                    self._beside.setdefault(kind.same, Mean()).add(beside, 0.0)
                    self._least_beside = min(beside, beside if self._least_beside is None else self._least_beside)
                else:
                    fit, score = lasted, 0.0
            for experience in (self._known, self._measured):
                experience.add(record, fit, score)

    def seconds(self) -> float | None:
        """Return how many seconds the rest of the run will take; None if too little is known to say."""
        with self._lock:
            now = self._clock()
            if self._answer is None or now - self._answer[0] >= _FRESH_SECONDS:
                self._answer = now, self._estimate(now)
            at, left = self._answer
            return None if left is None else max(0.0, left - (now - at))

    def _estimate(self, now: float) -> float | None:
        kinds = [kind for kind in self._kinds.values() if kind.n_left > 0]
        means = {id(kind): self._expected(kind) for kind in kinds}
        known = {name: mean for name, mean in means.items() if mean is not None}
        if len(known) < len(means):
            return None
        n_running = Counter(group for group, _ in self._running)
        total = longest = 0.0
        for group, variants in grouped(kinds, lambda kind: kind.group).items():
            n_fits = max(kind.n_left for kind in variants)
            fit = self._fit_seconds(variants, known)
            total += n_fits * fit + sum(kind.n_left * known[id(kind)].score for kind in variants)
            if n_fits > n_running[group]:
                longest = max(longest, fit + sum(known[id(kind)].score for kind in variants))
        for begun, together in self._running.values():
            if all(id(kind) in known for kind in together):  # a cluster may start again what has ended
                lasts = self._fit_seconds(together, known) + sum(known[id(kind)].score for kind in together)
                spent = min(now - begun, lasts)
                total, longest = total - spent, max(longest, lasts - spent)
        return max(total / (self._jobs or self._most_running), longest)

    def _fit_seconds(self, variants: Sequence[_Kind], known: Mapping[int, Mean]) -> float:
        """Return what one fit that serves these variants takes, with all that a trial takes beside."""
        # A network takes seconds to be loaded, a floor none: of another detector only the least is assumed.
        seen = [mean.fit for kind in variants if (mean := self._beside.get(kind.same))]
        return max(known[id(kind)].fit for kind in variants) + max(seen, default=self._least_beside or 0.0)

    def _expected(self, kind: _Kind) -> Mean | None:
        """Return what a trial takes by the best experience there is, which is searched only if it is needed."""
        if mean := self._known.of(*kind.same):
            return mean
        self._look_for(kind)
        if mean := self._known.of(*kind.same):
            return mean
        self._sample()
        shipped = self._of_shipped(kind.table)
        found = shipped.of(*kind.same) or shipped.of(*kind.similar)
        return (
            self._known.of(*kind.same)
            or self._known.of(*kind.similar)
            or (found.scaled(self._slowness()) if found else None)
            or self._measured.of("any")
        )

    def _look_for(self, kind: _Kind) -> None:
        """Look for trials of this kind in the store by their names, one of each of the first seeds."""
        if self._store is None or kind.looked_for:
            return
        kind.looked_for = True
        for seed in range(_SEEDS):
            if self._n_lookups < _LOOKUPS:
                self._n_lookups += 1
                found = self._store.find(identity(replace(kind.trial, seed=seed), kind.plan).trial)
                if found is not None:
                    self._known.learn(found)

    def _sample(self) -> None:
        if self._store is not None and not self._sampled:
            self._sampled = True
            for record in self._store.sample(_SAMPLE):
                self._known.learn(record)

    def _of_shipped(self, table: tuple[str, str]) -> Experience:
        if table not in self._shipped:
            try:
                self._shipped[table] = Experience(stored_records(*table))
            except (UsageError, StoreError):  # none ships
                self._shipped[table] = Experience()
        return self._shipped[table]

    def _slowness(self) -> float:
        """Return what this machine has taken over what shipped rows say of the same trials; 1 if that is too little."""
        took = expected = 0.0
        for key, mean in self._measured.same():
            shipped = self._of_shipped((str(key[1]), str(key[2]))).of(*key)
            if shipped is not None:
                took += mean.n * (mean.fit + mean.score)
                expected += mean.n * (shipped.fit + shipped.score)
        return took / expected if expected >= _TELLING_SECONDS else 1.0
