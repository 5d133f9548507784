"""Ranks rows over several data sets: mean ranks, floors beaten and wins, with intervals over resamples of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from tsadbench.analysis.audit.findings import shipped_note
from tsadbench.analysis.significance.pairs import ALPHA
from tsadbench.analysis.significance.suite_draws import Draws, above_floors, interval, mean_over_datasets, ranks, wins
from tsadbench.analysis.significance.suite_ranks import (
    Estimate,
    OnDataset,
    Pairing,
    Part,
    Standing,
    SuiteRanking,
)
from tsadbench.analysis.significance.suite_rows import BOUNDS, MEANINGS, Standings, bounded, mark_of
from tsadbench.datasets.suites import SIMULATED, Suite
from tsadbench.errors import UsageError
from tsadbench.leaderboard.formatting import number
from tsadbench.leaderboard.ranking import failed
from tsadbench.leaderboard.throughput import core_minutes
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped

# With so many units a bootstrap's intervals are short by less than a fortieth: its variance is n - 1 of n parts.
_FEW = 20


def rank_over_all(
    standings: Sequence[Standings], suites: Sequence[Suite], n_draws: int, seed: int
) -> Iterator[SuiteRanking]:
    """Yield a ranking over the data sets of each suite; without suites one for each protocol of several data sets.

    A UsageError if fewer than two data sets of a suite have rows, or fewer than two rows ran on all of them.
    """
    for suite in suites:
        of_suite = [one for one in standings if one.dataset in suite.datasets]
        of_suite.sort(key=lambda one: suite.datasets.index(one.dataset))
        newest = max((one.table.first.protocol_version for one in of_suite), default=0)
        chosen = [one for one in of_suite if one.table.first.protocol_version == newest]
        if len(chosen) < 2:
            found = ", ".join(one.dataset for one in chosen) or "none"
            raise UsageError(
                f"suite {suite.name}: expected rows on two of its data sets or more, under one version of a protocol, "
                f"found {found}; run them with `tsadbench run --suite {suite.name}`"
            )
        ranking = _Ranks.of(chosen).ranking(suite, n_draws, seed)
        if ranking.n_complete < 2:
            raise UsageError(
                f"suite {suite.name}: expected two detectors or more with a rank on each of "
                f"{', '.join(one.dataset for one in chosen)}, found {ranking.n_complete}"
            )
        yield ranking
    if suites:
        return
    for alike in grouped(standings, lambda one: one.table.first.rules).values():
        if len(alike) > 1:
            ranking = _Ranks.of(alike).ranking(None, n_draws, seed)
            if ranking.n_complete > 1:
                yield ranking


@dataclass(frozen=True, slots=True, eq=False)
class _Ranks:
    """Rows by data sets, each an array with the data set as it is in the first column, and resamples in the others.

    Parameters
    ----------
    standings
        One a data set.
    names
        What the rows are called over all data sets.
    complete, floors
        [n_rows], which rows have a rank on every data set, and which are floors.
    gains, wins, ranks, above
        One a data set, as `suite_draws` defines them.
    """

    standings: Sequence[Standings]
    names: tuple[str, ...]
    complete: BoolArray
    floors: BoolArray
    gains: Sequence[FloatArray]
    wins: Sequence[FloatArray]
    ranks: Sequence[FloatArray]
    above: Sequence[FloatArray]

    @classmethod
    def of(cls, standings: Sequence[Standings]) -> _Ranks:
        """Compute what each data set says."""
        ranked = {name for one in standings for name in one.rows if one.status(name) in ("ok", "failed")}
        names = tuple(name for name in dict.fromkeys(name for one in standings for name in one.rows) if name in ranked)
        gains = [one.gains(names) for one in standings]
        complete = np.array([all(not np.isnan(one[i, 0]) for one in gains) for i in range(len(names))])
        floors = np.array([any(name in one.rows and one.rows[name].floor for one in standings) for name in names])
        won = [wins(one) for one in gains]
        return cls(
            standings=standings,
            names=names,
            complete=complete,
            floors=floors,
            gains=gains,
            wins=won,
            ranks=[ranks(one, complete) for one in won],
            above=[above_floors(one, floors) for one in gains],
        )

    def ranking(self, suite: Suite | None, n_draws: int, seed: int) -> SuiteRanking:
        """Return the ranking with its intervals."""
        draws = Draws.of([one.shape[-1] for one in self.gains], n_draws, seed)
        mean_rank, above, rates = (_Estimates.of(values, draws) for values in (self.ranks, self.above, self.wins))
        places = np.where(np.isnan(mean_rank.value), np.inf, mean_rank.value)
        order = sorted(range(len(self.names)), key=lambda i: (not self.complete[i], places[i], self.names[i]))
        found = [one.dataset for one in self.standings]
        first = self.standings[0].table.first
        shared = np.sum([~np.isnan(one[..., 0]) for one in self.wins], axis=0)
        return SuiteRanking(
            suite="" if suite is None else str(suite),
            protocol=first.protocol,
            protocol_version=first.protocol_version,
            metric=self.standings[0].metric,
            parts=tuple(map(self._part, range(len(self.standings)))),
            missing=() if suite is None else tuple(name for name in suite.datasets if name not in found),
            standings=tuple(self._standing(i, mean_rank[i], above[i]) for i in order),
            pairings=tuple(
                Pairing(first=self.names[i], second=self.names[j], rate=rates[i, j], n_datasets=int(shared[i, j]))
                for place, i in enumerate(order)
                for j in order[place + 1 :]
                if shared[i, j]
            ),
            n_draws=n_draws,
            notes=tuple(_notes(self.standings, int(self.complete.sum()), suite)),
        )

    def _part(self, place: int) -> Part:
        one, gains = self.standings[place], self.gains[place]
        of_floors = {name: one.value(name) for i, name in enumerate(self.names) if self.floors[i]}
        values = {name: value for name, value in of_floors.items() if value is not None and one.status(name) == "ok"}
        best = (min if one.metric.better == "lower" else max)(values, key=values.__getitem__, default=None)
        return Part(
            dataset=one.dataset,
            dataset_version=one.table.first.dataset_version,
            split=one.split,
            best_floor=None if best is None else (best, values[best]),
            n_resamples=gains.shape[1] - 1 or None,
            core_minutes=core_minutes(record for row in one.table.all_rows for record in row.records),
        )

    def _standing(self, i: int, mean_rank: Estimate, above: Estimate) -> Standing:
        won = np.concatenate([one[i, self.complete, 0] for one in self.wins])
        on = {one.dataset: self._on(i, place) for place, one in enumerate(self.standings)}
        return Standing(
            label=self.names[i],
            floor=bool(self.floors[i]),
            complete=bool(self.complete[i]),
            n_datasets=sum(found.rank is not None for found in on.values()),
            n_failed=sum(found.status == "failed" for found in on.values()),
            mean_rank=mean_rank,
            beats_floors=above,
            wins=float(np.nansum(won)),
            pairs=int(np.count_nonzero(~np.isnan(won))),
            on=on,
        )

    def _on(self, i: int, place: int) -> OnDataset:
        name, one = self.names[i], self.standings[place]
        row = one.rows.get(name)
        if row is None:
            return OnDataset(status="missing")
        status, above = one.status(name), self.above[place][i, 0]
        return OnDataset(
            status=status,
            label=row.label,
            seeds=len(row.seeds),
            mark=mark_of(row),
            value=one.value(name),
            rank=_or_none(self.ranks[place][i, 0]),
            beats_floors=None if np.isnan(above) else bool(above),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Estimates:
    """Numbers over data sets with their intervals, arrays of one shape."""

    value: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, values: Sequence[FloatArray], draws: Draws) -> _Estimates:
        """Return the mean over data sets of [..., n_columns], and over draws of them."""
        return cls(mean_over_datasets(values), *interval(draws.means(values)))

    def __getitem__(self, place: int | tuple[int, int]) -> Estimate:
        value, low, high = (_or_none(numbers[place]) for numbers in (self.value, self.low, self.high))
        return Estimate(value=value, low=low, high=high)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _notes(standings: Sequence[Standings], n_complete: int, suite: Suite | None) -> Iterator[str]:
    """Yield what readers must know: which rows are which, what is missing or failed, what is wrong with the data."""
    found = {one.dataset for one in standings}
    if missing := [name for name in (suite.datasets if suite else ()) if name not in found]:
        yield f"No rows on {', '.join(missing)}: the ranking is over the others."
    n = len(standings)
    few = (
        f"{n} data sets are few: draws repeat these and contain no other, so intervals are too short, and one without "
        "width (0% to 0%) says that these agree, not that another one would. "
        if n < _FEW
        else ""
    )
    yield (
        f"{few}By Nemenyi's test two mean ranks of {n_complete} rows over {n} data sets differ from "
        f"{critical_difference(n_complete, n):.1f} on (at {number(ALPHA, 2)}); win rates say more about a pair, but of "
        "so many pairs some differ by chance."
    )
    if simulated := [name + SIMULATED[name] for one in standings if (name := one.dataset) in SIMULATED]:
        yield f"{len(simulated)} of {n} data sets are simulated, all or in part: {', '.join(simulated)}."
    for one in standings:
        if others := [f"{row.label} for {name}" for name, row in one.rows.items() if row.label != name]:
            yield f"On {one.dataset} these rows stand for others: {', '.join(others)}."
    if limited := [one.dataset for one in standings if any(map(bounded, one.rows.values()))]:
        yield (
            f"On {_listed(limited)} fits are bounded ({', '.join(sorted(BOUNDS))}): a row may rank low there because "
            "its fit ended early."
        )
    for one in standings:
        if one.beside:
            yield f"{one.dataset}: another row of the same name counts instead of {', '.join(one.beside)}."
        for name, row in one.rows.items():
            if one.status(name) == "failed":
                yield f"{one.dataset}: {row.label} failed, {row.failure_count} trials: {failed(row.records)[0].reason}."
        undefined = [name for name in one.rows if one.status(name) == "undefined"]
        if undefined:
            yield f"{one.dataset}: {one.metric.title} is undefined for {', '.join(undefined)}."
        known = {row.label for row in one.table.all_rows}
        yield from (
            f"{one.dataset}: without a rank, {reason}."
            for reason in one.table.left_out
            if reason.partition(": ")[0] not in known
        )
    marked = [
        (mark, row.label, one.dataset) for one in standings for row in one.rows.values() if (mark := mark_of(row))
    ]
    for (mark, label), alike in grouped(marked, lambda one: one[:2]).items():
        yield f"{mark} {label} takes no part on {_listed([dataset for *_, dataset in alike])}: {MEANINGS[mark]}."
    for one in standings:
        if note := shipped_note(one.dataset, one.table.first.dataset_version):
            yield f"Audit of {note}"


def critical_difference(n_rows: int, n_datasets: int) -> float:
    """Return how far two mean ranks must lie apart to differ by Nemenyi's test (Demsar 2006, section 3.2.2)."""
    quantile = stats.studentized_range.ppf(1 - ALPHA, n_rows, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_rows * (n_rows + 1) / (6 * n_datasets)))


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
