"""Ranks rows on one data set or over several: ranks, floors beaten and win rates, with intervals over resamples.

Gains are metric values oriented so that higher is better: -inf for failed rows, NaN for missing ones. They are
[n_rows, n_columns], with a column per data set, or, for one data set, the original and a column per resample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from tsadbench.analysis.audit.findings import shipped_note
from tsadbench.analysis.significance import Result, interval, sentences
from tsadbench.analysis.significance.inference import ALPHA
from tsadbench.analysis.stored import BOUNDS, Stored
from tsadbench.base.protocol import Metric
from tsadbench.datasets.loading import Suite
from tsadbench.errors import UsageError
from tsadbench.leaderboard.render import Table
from tsadbench.leaderboard.table import LEAST_FOR_TESTS, older_rules
from tsadbench.utils.arrays import BoolArray, FloatArray

# Quantiles of a 90 % interval.
_TAILS = (0.05, 0.95)
# With this many units, bootstrap intervals are 1/40 too short: the variance is (n - 1) / n of the true one.
_FEW = 20

# Simulated data sets, with the simulated part if not everything is simulated.
_SIMULATED = {"tep": "", "pumploop": "", "causrca": " (hardware of the fault runs)"}


@dataclass(frozen=True, eq=False)
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

    @cached_property
    def lines(self) -> pd.DataFrame:
        """Its rows with their values."""
        return self.stored.ranked(self.split, self.metric.name)

    def by_name(self) -> pd.DataFrame:
        """Return a row with its gain per common name: the row without bounds, unless it failed."""
        lines = self.lines.assign(bad=self.lines["coverage"].isna()).sort_values(["bad", "bounded", "detector"])
        gains = (self.sign * lines["value"]).where(lines["status"] == "ok").mask(lines["status"] == "failed", -np.inf)
        lines = lines.assign(gain=gains).drop_duplicates("name").set_index("name")
        return lines.rename(columns={"detector": "label"})

    @property
    def sign(self) -> float:
        """Factor that turns a value into a gain."""
        return -1.0 if self.metric.better == "lower" else 1.0


def rank_split(part: Part, *, stability: bool = False, only: Sequence[str] = ()) -> Result:
    """Rank the rows of one data set and show ``only`` some; with ``stability``, rank only rows with resamples."""
    first, metric, every = part.stored.first, part.metric, part.lines
    lines = every[every["placed"] & (every["detector"].isin(part.drawn) | (not stability))].reset_index(drop=True)
    values = lines["value"].to_numpy(dtype=np.float64)[:, None]
    if part.drawn and len(lines):
        values = np.hstack([values, np.stack([part.drawn[label][1:] for label in lines["detector"]])])
    defined = ~np.isnan(values).any(axis=0)
    n_resamples = int(np.count_nonzero(defined[1:]))
    gains, floors = part.sign * values[:, defined], lines["floor"].to_numpy(dtype=np.bool_)
    ranks = stats.rankdata(-gains, axis=0)
    alone = stats.rankdata(np.where(floors[:, None], np.nan, -gains), axis=0, nan_policy="omit")
    content = {name: getattr(first, name) for name in ("dataset", "protocol", "protocol_version")}
    content |= {"split": part.split, "metric": metric.name}
    content |= {"rank": ranks[:, 0], **interval_of("rank", ranks[:, 1:])}
    content |= {"detector_rank": alone[:, 0], **interval_of("detector_rank", alone[:, 1:])}
    content |= {name: lines[name] for name in ("detector", "floor", "seeds", "coverage", "value")}
    content |= interval_of("value", part.sign * gains[:, 1:])
    content["beats_floors"] = above_floors(gains, floors)[:, min(n_resamples, 1) :].mean(axis=1)
    frame = _shown(pd.DataFrame(content).sort_values(["rank", "detector"]), only, "detector")
    unscored = ", ".join(every.loc[every["placed"] & ~every["detector"].isin(lines["detector"]), "detector"])
    unplaced = every[~every["placed"]].groupby("reason", sort=False)["detector"].agg(", ".join)
    rows = part.stored.rows
    said = sentences(
        "rank_split",
        **{"dataset": first.dataset, "split": part.split, "n_resamples": n_resamples, "unscored": unscored},
        **{"n_sessions": part.n_sessions, "least_for_tests": LEAST_FOR_TESTS, "unplaced": unplaced},
        **{"n_undefined": np.count_nonzero(~defined), "left_out": part.stored.left_out},
        **{"n_entities": rows.loc[rows["split"] == part.split, "n_entities"].max()},
        notes=older_rules(part.stored.records),
    )
    title = f"{metric.title} on {first.dataset}, split {part.split}, protocol {first.rules}"
    if n_resamples:
        title += f": {part.n_recordings} recordings, {part.n_sessions} sessions"
    return Result(
        tables=[_split_table(title, frame, metric, stable=n_resamples > 0)] if len(frame) else [],
        frames=[Table(title, frame)],
        sentences=said,
    )


def rank_parts(
    parts: Sequence[Part], suite: Suite | None, *, n_draws: int, seed: int, only: Sequence[str] = ()
) -> Result:
    """Rank the rows of several data sets under one protocol; a UsageError if fewer than two rows ran on all."""
    metric, rules, found = parts[0].metric, parts[0].stored.first.rules, [part.dataset for part in parts]
    lines = [part.by_name() for part in parts]
    table = pd.concat(dict(zip(found, lines, strict=True)), names=["dataset"])
    names = list(table[table["status"].isin(("ok", "failed"))].index.unique("name"))
    lines = [one.reindex(names) for one in lines]
    gains = np.stack([one["gain"].to_numpy(dtype=np.float64) for one in lines], axis=1)
    missing: BoolArray = np.isnan(gains)
    complete: BoolArray = np.asarray(~missing.any(axis=1))
    if (n_complete := int(complete.sum())) < 2:
        where = f"{f'suite {suite.name}: ' if suite else ''}expected at least two detectors with a rank on each of"
        raise UsageError(f"{where} {', '.join(found)}, found {n_complete}")
    floors = table.groupby("name")["floor"].any().reindex(names).to_numpy(dtype=np.bool_)
    n, won, above = len(parts), wins(gains), above_floors(gains, floors)
    drawn = np.random.default_rng((seed, n)).integers(n, size=(n, n_draws))  # with replacement
    times = (drawn == np.arange(n)[:, None, None]).sum(axis=1, dtype=np.float64)
    ranks, alone = ranks_among(won, complete), ranks_among(won, complete & ~floors)
    against = won[:, complete]
    content: dict[str, Any] = {"detector": names, "floor": floors, "complete": complete}
    content["lacks"] = [", ".join(np.array(found)[row]) for row in missing]
    content |= {"datasets": (~missing).sum(axis=1), "failed": np.isneginf(gains).sum(axis=1)}
    content |= estimates("rank", np.where(complete[:, None], ranks, np.nan), times)
    content |= estimates("detector_rank", np.where((complete & ~floors)[:, None], alone, np.nan), times)
    content |= estimates("beats_floors", above, times)
    content |= {"wins": np.nansum(against, axis=(1, 2)), "pairs": np.count_nonzero(~np.isnan(against), axis=(1, 2))}
    for place, (name, one) in enumerate(zip(found, lines, strict=True)):
        of_each: dict[str, Any] = {"status": one["status"].fillna("missing"), "label": one["label"]}
        of_each |= {"value": one["value"], "rank": ranks[:, place], "beats_floors": above[:, place]}
        content |= {f"{name}_{what}": np.asarray(values) for what, values in of_each.items()}
    keys = ["complete", "rank", "datasets", "detector"]
    ordered = pd.DataFrame(content).sort_values(keys, ascending=[False, True, False, True])
    first, second = (ordered.index.to_numpy()[places] for places in np.triu_indices(len(names), 1))
    shared = np.count_nonzero(~missing[first] & ~missing[second], axis=1)
    rates = {"first": np.array(names)[first], "second": np.array(names)[second]}
    rates |= {**estimates("rate", won[first, second], times), "datasets": shared}
    frame = _shown(ordered, only, "detector")
    listed = frame[frame["datasets"] == n]  # a note names the others
    win_rates = _shown(pd.DataFrame(rates)[shared > 0], only, "first", "second")
    about = [(part.dataset, part.stored.first.dataset_version, part.split) for part in parts]
    datasets = pd.DataFrame(about, columns=["dataset", "dataset_version", "split"])
    absent = [name for name in (suite.datasets if suite else ()) if name not in found]
    wanted = f" of {len(found) + len(absent)}" if absent else ""
    title = f"{metric.title} over {len(found)}{wanted} data sets{f', suite {suite}' if suite else ''}, protocol {rules}"
    table = table.reset_index()
    alike = table[table["reason"] != ""].groupby(["label", "status", "reason"], sort=False)["dataset"].agg(", ".join)
    audits = [shipped_note(part.dataset, part.stored.first.dataset_version) for part in parts]
    said = sentences(
        "rank_parts",
        **{"n_draws": n_draws, "absent": absent, "n": n, "few": _FEW, "n_rows": n_complete},
        lacking=frame[~frame["complete"]].groupby("lacks", sort=False)["detector"].agg(", ".join),
        critical=critical_difference(n_complete, n),
        simulated=[name + _SIMULATED[name] for name in found if name in _SIMULATED],
        **{"bounded": ", ".join(table.loc[table["bounded"], "dataset"].unique()), "bounds": BOUNDS, "alike": alike},
        parts=[
            {"dataset": part.dataset, "left_out": part.stored.left_out, "audit": note}
            for part, note in zip(parts, audits, strict=True)
        ],
    )
    return Result(
        tables=[_suite_table(title, listed, datasets)] if len(listed) else [],
        frames=[Table(title, frame), Table("win rates", win_rates), Table("data sets", datasets)],
        sentences=said,
    )


def _shown(frame: pd.DataFrame, only: Sequence[str], *columns: str) -> pd.DataFrame:
    return (frame[frame[list(columns)].isin(only).all(axis=1)] if only else frame).reset_index(drop=True)


def wins(gains: FloatArray) -> FloatArray:
    """Return whether each row beats each other row, [n_rows, n_rows, n_columns]: 1, 0, or .5 for a tie.

    NaN where either row is missing, and between a row and itself.
    """
    first, second = gains[:, None, :], gains[None, :, :]
    won: FloatArray = (first > second) + 0.5 * (first == second)
    won[np.isnan(first) | np.isnan(second) | np.eye(len(gains), dtype=np.bool_)[:, :, None]] = np.nan
    return won


def ranks_among(won: FloatArray, among: BoolArray) -> FloatArray:
    """Return each row's rank among itself and a selection [n_rows]: [n_rows, n_columns], NaN if it is missing."""
    present = ~np.isnan(won).all(axis=1)
    ranks: FloatArray = np.where(present, 1.0 + np.nansum(1.0 - won[:, among], axis=1), np.nan)
    return ranks


def above_floors(gains: FloatArray, floors: BoolArray) -> FloatArray:
    """Return whether each row is better than the best floor, [n_rows, n_columns], 1 or 0.

    NaN for floors, for missing rows, and without floors. ``floors``, [n_rows], says which rows are floors.
    """
    best = np.fmax.reduce(gains[floors], axis=0, initial=np.nan)
    unknown = np.isnan(gains) | floors[:, None] | np.isnan(best)
    above: FloatArray = np.where(unknown, np.nan, gains > best)
    return above


def estimates(name: str, values: FloatArray, times: FloatArray) -> dict[str, FloatArray]:
    """Return the mean over defined values of [n, n_data sets], and its 90 % interval over draws of the data sets."""
    known, times = ~np.isnan(values), np.hstack([np.ones((len(times), 1)), times])
    total, count = np.nan_to_num(values) @ times, known @ times
    means: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return {name: means[:, 0], **interval_of(name, means[:, 1:])}


def interval_of(name: str, drawn: FloatArray) -> dict[str, FloatArray]:
    """Return the 90 % interval of each row of [n, n_draws], ignoring NaN."""
    low, high = pd.DataFrame(drawn.T).quantile(list(_TAILS)).to_numpy(dtype=np.float64)
    return {f"{name}_low": low, f"{name}_high": high}


def critical_difference(n_rows: int, n_datasets: int) -> float:
    """Return the critical difference of mean ranks in Nemenyi's test (Demsar 2006, section 3.2.2)."""
    quantile = stats.studentized_range.ppf(1 - ALPHA, n_rows, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_rows * (n_rows + 1) / (6 * n_datasets)))


def _split_table(title: str, frame: pd.DataFrame, metric: Metric, *, stable: bool) -> Table:
    detector = frame["detector"] + np.where(frame["floor"], " (floor)", "")
    detector += np.where(frame["coverage"] < 1, " (rows not scored)", "")
    columns: dict[str, Any] = {"rank": frame["rank"], "detector": detector, "detectors alone": frame["detector_rank"]}
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
        columns[name if split == "overall" else f"{name} ({split})"] = places.where(status == "ok", status)
    return Table(title, pd.DataFrame(columns), {"mean rank": 2, "detectors alone": 2})
