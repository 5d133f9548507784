"""Ranks rows on one data set or over several: ranks, floors beaten and win rates, with intervals over resamples.

Gains are values of a metric of which the higher one is better: -inf for a row that failed, NaN for one that is missing.
A data set has one column of gains as it is, and others for resamples of its sessions, if there are any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from tsadbench.analysis.audit.findings import shipped_note
from tsadbench.analysis.significance.inference import ALPHA, LEAST_FOR_TESTS
from tsadbench.analysis.significance.result import Result, interval
from tsadbench.analysis.stored import BOUNDS, Stored
from tsadbench.base.protocol import Metric
from tsadbench.datasets.suites import SIMULATED, Suite
from tsadbench.errors import UsageError
from tsadbench.leaderboard.render import Table
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray

# Of a 90 % interval.
_TAILS = (0.05, 0.95)
# With this many units a bootstrap's intervals are short by less than a fortieth: its variance is n - 1 of n parts.
_FEW = 20


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A split of a data set; ``drawn`` has each row's metric on it and its resamples, [1 + n_resamples], by label."""

    stored: Stored
    split: str
    metric: Metric
    n_sessions: int = 0
    n_recordings: int = 0
    drawn: dict[str, FloatArray] = field(default_factory=dict)

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.stored.first.dataset

    @property
    def lines(self) -> pd.DataFrame:
        """Its rows with their values."""
        return self.stored.ranked(self.split, self.metric.name)

    @property
    def sign(self) -> float:
        """Turns a value into a gain."""
        return -1.0 if self.metric.better == "lower" else 1.0

    def described(self, lines: pd.DataFrame) -> dict[str, Any]:
        """Return the data set and its best floor by the names of ``lines``."""
        values = lines[lines["floor"] & (lines["status"] == "ok")]["value"]
        best = (self.sign * values).sort_values(ascending=False).index[:1]
        floor = {"best_floor": best[0], "best_floor_value": values[best[0]]} if len(best) else {}
        about = {"dataset": self.dataset, "dataset_version": self.stored.first.dataset_version, "split": self.split}
        return about | floor


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranking(Result):
    """Rows by rank, on one data set or over several.

    ``frame`` has a line for each row. ``rank`` is among all rows and ``detector_rank`` among detectors alone: 1 is the
    best, equal values share theirs; over several data sets they are means. ``beats_floors`` is the share of the
    resamples, or of the data sets, on which a row is better than the best floor. ``_low`` and ``_high`` bound 90 %
    intervals.

    Over several data sets, rows that lack some come last, without a mean rank. A row wins ``wins`` of ``pairs``
    comparisons with a complete row on a data set, and ``rate`` says on which share of these ``first`` beats ``second``.
    """

    title: str
    suite: str = ""
    protocol: str
    frame: pd.DataFrame
    datasets: pd.DataFrame
    win_rates: pd.DataFrame = field(default_factory=pd.DataFrame)


def rank_split(part: Part, *, stability: bool = False, only: Sequence[str] = ()) -> Ranking:
    """Rank the rows of one data set, of which ``only`` some are shown; for ``stability`` those with resamples."""
    first, metric, every = part.stored.first, part.metric, part.lines
    lines = every[every["placed"] & (every["detector"].isin(part.drawn) | (not stability))].reset_index(drop=True)
    values = lines["value"].to_numpy(dtype=np.float64)[:, None]
    if part.drawn:
        values = np.hstack([values, np.stack([part.drawn[label][1:] for label in lines["detector"]])])
    defined = ~np.isnan(values).any(axis=0)
    n_resamples = int(np.count_nonzero(defined[1:]))
    gains, floors = part.sign * values[:, defined], lines["floor"].to_numpy(dtype=np.bool_)
    alone = np.full(gains.shape, np.nan)
    alone[~floors] = stats.rankdata(-gains[~floors], axis=0)
    above = above_floors(gains, floors)[:, min(n_resamples, 1) :]
    whole, draws = np.array([0]), np.arange(1, gains.shape[1])[None]
    keys = {"dataset": first.dataset, "protocol": first.protocol, "protocol_version": first.protocol_version}
    frame = pd.DataFrame(
        {
            **keys,
            **{"split": part.split, "metric": metric.name},
            **estimates("rank", stats.rankdata(-gains, axis=0), whole, draws),
            **estimates("detector_rank", alone, whole, draws),
            **{name: lines[name] for name in ("detector", "floor", "seeds", "coverage")},
            **estimates("value", part.sign * gains, whole, draws),
            "beats_floors": above.mean(axis=1),
        }
    )
    frame = _shown(frame.sort_values(["rank", "detector"]), only, "detector")
    unplaced = every.loc[~every["placed"], ["detector", "reason"]].to_numpy().tolist()
    unscored = ", ".join(every.loc[every["placed"] & ~every["detector"].isin(lines["detector"]), "detector"])
    notes = {
        f"{part.n_sessions} sessions are few: resamples repeat these and contain no other, so another session may "
        "change the ranks by more than the intervals say.": 1 < part.n_sessions < LEAST_FOR_TESTS,
        "not resampled: one session says nothing about how ranks vary between sessions.": part.n_sessions == 1,
        f"without stored scores: {unscored}.": unscored and part.n_sessions != 1,
        f"{np.count_nonzero(~defined)} resamples are left out, on which it is undefined.": not defined.all(),
        **{f"{label} has no rank: {why}.": True for label, why in [*part.stored.left_out.items(), *unplaced]},
        **dict.fromkeys(part.stored.notes(part.split), True),
    }
    legend = "Rank: among all rows, floors included, beside it among detectors alone; equal values share theirs."
    title = f"{metric.title} on {first.dataset}, split {part.split}, protocol {first.rules}"
    if n_resamples:
        title += f": {part.n_recordings} recordings, {part.n_sessions} sessions"
        legend += (
            " Intervals: 5 % to 95 % over resamples of the sessions, and of the recordings in each, seeds averaged. "
            "Beats the best floor: in which share of the resamples, by the floor that is best in each."
        )
    said = [f"{first.dataset}, split {part.split}: {note}" for note, applies in notes.items() if applies]
    return Ranking(
        title=title,
        protocol=first.rules,
        frame=frame,
        datasets=pd.DataFrame([{**part.described(lines.set_index("name")), "n_resamples": n_resamples}]),
        tables=[_split_table(title, frame, metric, stable=n_resamples > 0)] if len(frame) else [],
        frames=[Table(title, frame)],
        sentences=[legend, *said],
    )


def rank_parts(
    parts: Sequence[Part], suite: Suite | None, *, n_draws: int, seed: int, only: Sequence[str] = ()
) -> Ranking:
    """Rank the rows of several data sets under one protocol; a UsageError if fewer than two rows ran on all of them."""
    metric, rules, found = parts[0].metric, parts[0].stored.first.rules, [part.dataset for part in parts]
    lines = [_by_name(part) for part in parts]
    table = pd.concat(dict(zip(found, lines, strict=True)), names=["dataset"])
    names = list(table[table["status"].isin(("ok", "failed"))].index.unique("name"))
    columns = [_gains(part, one.reindex(names)) for part, one in zip(parts, lines, strict=True)]
    sizes = [one.shape[1] for one in columns]
    gains, whole = np.concatenate(columns, axis=1), np.cumsum([0, *sizes[:-1]])
    missing: BoolArray = np.asarray(np.isnan(gains[:, whole]))
    complete: BoolArray = np.asarray(~missing.any(axis=1))
    if (n_complete := int(complete.sum())) < 2:
        where = f"{f'suite {suite.name}: ' if suite else ''}expected two detectors or more with a rank on each of"
        raise UsageError(f"{where} {', '.join(found)}, found {n_complete}")
    floors = table.groupby("name")["floor"].any().reindex(names).to_numpy(dtype=np.bool_)
    won, above, draws = wins(gains), above_floors(gains, floors), draw_datasets(sizes, n_draws, seed)
    ranks, alone = ranks_among(won, complete), ranks_among(won, complete & ~floors)
    against = won[:, complete][:, :, whole]
    content: dict[str, Any] = {
        **{"detector": names, "floor": floors, "complete": complete},
        "lacks": [", ".join(np.array(found)[row]) for row in missing],
        **{"datasets": (~missing).sum(axis=1), "failed": np.isneginf(gains[:, whole]).sum(axis=1)},
        **estimates("rank", np.where(complete[:, None], ranks, np.nan), whole, draws),
        **estimates("detector_rank", np.where((complete & ~floors)[:, None], alone, np.nan), whole, draws),
        **estimates("beats_floors", above, whole, draws),
        "wins": np.nansum(against, axis=(1, 2)),
        "pairs": np.count_nonzero(~np.isnan(against), axis=(1, 2)),
    }
    for name, one, place in zip(found, lines, whole, strict=True):
        of_one = one.reindex(names)
        content |= {f"{name}_status": of_one["status"].fillna("missing").to_numpy()}
        content |= {f"{name}_label": of_one["detector"].to_numpy(), f"{name}_value": of_one["value"].to_numpy()}
        content |= {f"{name}_rank": ranks[:, place], f"{name}_beats_floors": above[:, place]}
    keys = ["complete", "rank", "datasets", "detector"]
    ordered = pd.DataFrame(content).sort_values(keys, ascending=[False, True, False, True])
    first, second = (ordered.index.to_numpy()[places] for places in np.triu_indices(len(names), 1))
    shared = np.count_nonzero(~missing[first] & ~missing[second], axis=1)
    rates = {"first": np.array(names)[first], "second": np.array(names)[second]}
    rates |= {**estimates("rate", won[first, second], whole, draws), "datasets": shared}
    frame = _shown(ordered, only, "detector")
    win_rates = _shown(pd.DataFrame(rates)[shared > 0], only, "first", "second")
    datasets = pd.DataFrame([part.described(one) for part, one in zip(parts, lines, strict=True)])
    datasets["n_resamples"] = np.subtract(sizes, 1)
    absent = [name for name in (suite.datasets if suite else ()) if name not in found]
    wanted = f" of {len(found) + len(absent)}" if absent else ""
    title = f"{metric.title} over {len(found)}{wanted} data sets{f', suite {suite}' if suite else ''}, protocol {rules}"
    resampled = ", ".join(datasets[datasets["n_resamples"] > 0]["dataset"])
    legend = (
        "Mean rank: over the data sets, 1 for the best, floors included; beside it the same among detectors alone. "
        "Equal values share their mean rank, a failure is the last one. Beats the best floor: on how many data sets. "
        f"Intervals: 5 % to 95 % over {n_draws:,} draws of the data sets with replacement"
        f"{f', and of each drawn one a resample of its sessions ({resampled})' if resampled else ''}; seeds are "
        "averaged."
    )
    lacking = frame[~frame["complete"]].groupby("lacks", sort=False)["detector"].agg(", ".join)
    without = [f"Without a mean rank for lack of {lacks}: {labels}." for lacks, labels in lacking.items()]
    return Ranking(
        title=title,
        suite=str(suite or ""),
        protocol=rules,
        frame=frame,
        datasets=datasets,
        win_rates=win_rates,
        tables=[_suite_table(title, frame, datasets)],
        frames=[Table(title, frame), Table("win rates", win_rates), Table("data sets", datasets)],
        sentences=[legend, *without, *_about_datasets(parts, absent, table.reset_index(), n_complete)],
    )


def _shown(frame: pd.DataFrame, only: Sequence[str], *columns: str) -> pd.DataFrame:
    return (frame[frame[list(columns)].isin(only).all(axis=1)] if only else frame).reset_index(drop=True)


def _by_name(part: Part) -> pd.DataFrame:
    """Return rows by their name over all data sets; of several an unbounded one that did not fail counts."""
    lines = part.lines
    lines = lines.assign(bad=lines["coverage"].isna()).sort_values(["bad", "bounded", "detector"], kind="stable")
    others = lines[lines.duplicated("name")].groupby("name")["detector"].agg(", ".join)
    return lines.drop_duplicates("name").set_index("name").join(others.rename("others"))


def _gains(part: Part, lines: pd.DataFrame) -> FloatArray:
    """Return gains, [n_rows, 1 + n_resamples]; resamples on which the metric of a row is undefined are left out."""
    ok = (lines["status"] == "ok").to_numpy()
    values = np.where(ok, lines["value"].to_numpy(dtype=np.float64), np.nan)
    gains = np.repeat(values[:, None], max(map(len, part.drawn.values()), default=1), axis=1)
    for place, label in enumerate(lines["detector"]):
        if ok[place] and label in part.drawn:
            gains[place, 1:] = part.drawn[label][1:]
    gains = part.sign * gains[:, ~np.isnan(gains[ok]).any(axis=0)]
    gains[(lines["status"] == "failed").to_numpy()] = -np.inf
    return gains


def wins(gains: FloatArray) -> FloatArray:
    """Return whether each row beats each other one, [n_rows, n_rows, n_columns]: 1, 0, or .5 for a tie.

    NaN where one of the two is missing, and between a row and itself.
    """
    first, second = gains[:, None, :], gains[None, :, :]
    won: FloatArray = (first > second) + 0.5 * (first == second)
    won[np.isnan(first) | np.isnan(second) | np.eye(len(gains), dtype=np.bool_)[:, :, None]] = np.nan
    return won


def ranks_among(won: FloatArray, among: BoolArray) -> FloatArray:
    """Return the rank of each row among some, [n_rows], and itself, [n_rows, n_columns]; NaN if it is missing."""
    present = ~np.isnan(won).all(axis=1)
    ranks: FloatArray = np.where(present, 1.0 + np.nansum(1.0 - won[:, among], axis=1), np.nan)
    return ranks


def above_floors(gains: FloatArray, floors: BoolArray) -> FloatArray:
    """Return whether each row is better than the best floor, [n_rows, n_columns], 1 or 0.

    NaN for floors, for missing rows, and if no floor takes part. ``floors``, [n_rows], says which rows are floors.
    """
    of_floors = gains[floors]
    best = np.where(np.isnan(of_floors), -np.inf, of_floors).max(axis=0, initial=-np.inf)
    above: FloatArray = (gains > best).astype(np.float64)
    above[np.isnan(gains) | floors[:, None] | np.isnan(of_floors).all(axis=0)] = np.nan
    return above


def draw_datasets(sizes: Sequence[int], n_draws: int, seed: int) -> IntArray:
    """Draw as many data sets as there are, with replacement, and of each drawn one a resample if it has any.

    Return columns of gains, [n_data sets, n_draws], of which data set i has ``sizes[i]``, the first one as it is.
    """
    generator = np.random.default_rng((seed, len(sizes)))
    datasets = generator.integers(len(sizes), size=(len(sizes), n_draws))
    n_resamples = np.array(sizes)[datasets] - 1
    resamples = 1 + np.floor(generator.random(datasets.shape) * n_resamples).astype(np.int64)
    drawn: IntArray = np.cumsum([0, *sizes[:-1]])[datasets] + np.where(n_resamples > 0, resamples, 0)
    return drawn


def means(values: FloatArray, columns: IntArray) -> FloatArray:
    """Return means of the chosen columns, [n_chosen, n_draws], of what is defined, [n, n_draws]; NaN for nothing."""
    total, count = np.zeros((2, len(values), columns.shape[1]))
    for chosen in columns:
        total += np.nan_to_num(values[:, chosen])
        count += ~np.isnan(values[:, chosen])
    found: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return found


def estimates(name: str, values: FloatArray, whole: IntArray, draws: IntArray) -> dict[str, FloatArray]:
    """Return the mean of the columns ``whole`` of [n, n_columns], and the 90 % interval of it over ``draws``."""
    drawn = means(values, draws)
    some = ~np.isnan(drawn).all(axis=1)
    bounds = np.full((2, len(values)), np.nan)
    if some.any():
        bounds[:, some] = np.nanquantile(drawn[some], _TAILS, axis=1)
    return {name: means(values, whole[:, None])[:, 0], f"{name}_low": bounds[0], f"{name}_high": bounds[1]}


def critical_difference(n_rows: int, n_datasets: int) -> float:
    """Return how far two mean ranks must lie apart to differ by Nemenyi's test (Demsar 2006, section 3.2.2)."""
    quantile = stats.studentized_range.ppf(1 - ALPHA, n_rows, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_rows * (n_rows + 1) / (6 * n_datasets)))


def _split_table(title: str, frame: pd.DataFrame, metric: Metric, *, stable: bool) -> Table:
    said = np.where(frame["floor"], " (floor)", "") + np.where(frame["coverage"] < 1, " (rows not scored)", "")
    columns = {"rank": frame["rank"], "detector": frame["detector"] + said, "detectors alone": frame["detector_rank"]}
    columns |= {"seeds": frame["seeds"], metric.title: frame["value"]}
    if stable:
        columns["90 % of ranks"] = interval(frame["rank_low"], frame["rank_high"], "g")
        columns["90 % of values"] = interval(frame["value_low"], frame["value_high"], ".4f")
        columns["beats the best floor"] = frame["beats_floors"].map("{:.0%}".format).replace("nan%", "-")
    return Table(title, pd.DataFrame(columns), {"rank": 1, "detectors alone": 1})


def _suite_table(title: str, frame: pd.DataFrame, datasets: pd.DataFrame) -> Table:
    beaten = frame[[f"{name}_beats_floors" for name in datasets["dataset"]]]
    shares = interval(frame["beats_floors_low"], frame["beats_floors_high"], ".0%")
    counts = zip(beaten.sum(axis=1), beaten.count(axis=1), shares, strict=True)
    columns: dict[str, Any] = {
        "mean rank": frame["rank"],
        "detector": frame["detector"] + np.where(frame["floor"], " (floor)", ""),
        "detectors alone": frame["detector_rank"],
        "90 % interval": interval(frame["rank_low"], frame["rank_high"], ".1f"),
        "beats the best floor": [f"{won:.0f} of {of} ({share})" if of else "-" for won, of, share in counts],
    }
    for name, split in zip(datasets["dataset"], datasets["split"], strict=True):
        status, places = frame[f"{name}_status"], frame[f"{name}_rank"].map("{:g}".format)
        shown = places.where(status == "ok", status.replace("missing", "-"))
        columns[name if split == "overall" else f"{name} ({split})"] = shown
    return Table(title, pd.DataFrame(columns), {"mean rank": 2, "detectors alone": 2})


def _about_datasets(parts: Sequence[Part], absent: Sequence[str], table: pd.DataFrame, n_rows: int) -> Iterator[str]:
    """Yield how far results carry, which rows are which, what failed, and what is wrong with the data."""
    n = len(parts)
    simulated = [part.dataset + SIMULATED[part.dataset] for part in parts if part.dataset in SIMULATED]
    bounded = ", ".join(table.loc[table["bounded"], "dataset"].unique())
    said = {
        f"No rows on {', '.join(absent)}: the ranking is over the others.": absent,
        f"{n} data sets are few: draws repeat these and contain no other, so intervals are too short, and one without "
        "width (0% to 0%) says that these agree, not that another one would.": n < _FEW,
        f"By Nemenyi's test two mean ranks of {n_rows} rows over {n} data sets differ from "
        f"{critical_difference(n_rows, n):.1f} on (at .05); win rates say more about a pair, but of so many pairs some "
        "differ by chance.": True,
        f"{len(simulated)} of {n} data sets are simulated, all or in part: {', '.join(simulated)}.": simulated,
        f"On {bounded} some fits are bounded ({', '.join(BOUNDS)}) and may have ended early; such a row counts as the "
        "row without the bound.": bounded,
    }
    yield from (text for text, applies in said.items() if applies)
    alike = table[table["reason"] != ""].groupby(["detector", "status", "reason"], sort=False)["dataset"]
    for (label, status, reason), of in alike:
        yield f"{label} {'failed' if status == 'failed' else 'takes no part'} on {', '.join(of)}: {reason}."
    for name, others, counts in table.loc[table["others"].notna(), ["dataset", "others", "detector"]].to_numpy():
        yield f"On {name} {counts} counts instead of {others}."
    for part in parts:
        yield from (f"{part.dataset}: {label} has no rank: {why}." for label, why in part.stored.left_out.items())
        if note := shipped_note(part.dataset, part.stored.first.dataset_version):
            yield f"Audit of {note}"
