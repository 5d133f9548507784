"""Records as data frames: one row a trial and split, then one row a detector and split, ranked against the floors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tsadbench.base.protocol import SplitJudgement
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.replays import weakest
from tsadbench.leaderboard.checks import CheckReports
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import nearest

TABLE = ["dataset", "rules", "split"]  # the rules are the protocol with its version: two versions are two tables
ROW = [*TABLE, "detector"]
# A detector that is not above the best floor in these has shown nothing. F1 is not among them: where many rows are
# anomalous, a floor that flags every row has an F1 that a threshold with few false alarms cannot reach.
FLOOR_METRICS = ("auroc", "auprc", "mcc")
METRIC, DIAGNOSTIC = "metric_", "diagnostic_"
# Measured by a clock: they differ between two runs, so a comparison of tables leaves them out.
COST_COLUMNS = ("rows_per_second", "fit_seconds", "score_seconds", "peak_memory_mib")
_OF_RECORD = (
    "dataset", "protocol", "rules", "protocol_version", "dataset_version", "family", "floor", "seed", "threads",
    "status", "look_ahead", "leaky", "smoothing", "seal", "seal_reason", "replay", "pretrained_on", *COST_COLUMNS,
)  # fmt: skip
# What all trials of a row have in common, so that the one of the lowest seed tells it.
_OF_FIRST = (
    "protocol", "protocol_version", "dataset_version", "name", "family", "floor", "look_ahead", "leaky", "smoothing",
    "stored", "n_entities", "n_rows", "n_anomalous",
)  # fmt: skip


def trials(
    records: Iterable[Record],
    splits: Sequence[str] = (),
    *,
    stored: Iterable[Record] = (),
    reports: CheckReports | None = None,
) -> pd.DataFrame:
    """Return a row for each trial and split: what tables need of its record, the record, and ``metric_*``.

    Of several records of a trial the last counts; a trial that failed has a row for each split. ``stored`` records were
    made earlier, and those of a label that the others have are left out. ``reports`` are of checks of their detectors.
    A UsageError if no record has one of the ``splits`` (default: all).
    """
    newest = {trial_key(record): record for record in records}
    own = {key[:3] for key in newest}
    beside = {key: record for record in stored if (key := trial_key(record))[:3] not in own}
    every = _with_failures_beside([*newest.values(), *beside.values()])
    for split in splits:
        check_split(split, every)
    known = CheckReports() if reports is None else reports
    lines = []
    for table in grouped(every, lambda record: (record.dataset, record.rules)).values():
        held = splits_of(table)
        # If all trials failed there is still a table to say so.
        shown = [one for one in splits if one in held or not held] or ([] if splits else held or ("overall",))
        for record in sorted(table, key=lambda record: record.seed):
            about = {
                **{name: getattr(record, name) for name in _OF_RECORD},
                **{"detector": record.label, "name": record.detector, "stored": trial_key(record) in beside},
                **{"record": record, "reports": known.of(record), "n_entities": 0},
            }
            for split in shown:
                judged = record.splits.get(split)
                if judged is not None or record.status != "ok":
                    lines.append({**about, "split": split, **({} if judged is None else _of_split(judged))})
    frame = pd.DataFrame(lines)
    numbers = ["coverage", "far", "n_rows", "n_anomalous", *COST_COLUMNS]
    needed = [*ROW, *_OF_RECORD, "name", "stored", "record", "reports", "n_entities", *numbers]
    frame = frame.reindex(columns=list(dict.fromkeys([*needed, *frame])))
    metrics = [name for name in map(str, frame) if name.startswith(METRIC)]
    return frame.astype(dict.fromkeys([*numbers, *metrics], float))


def _of_split(judged: SplitJudgement) -> dict[str, object]:
    found = {f"{METRIC}{name}": value for name, value in judged.metrics.items()}
    counts = {name: getattr(judged, name) for name in ("n_rows", "n_anomalous", "coverage")}
    return {**counts, "n_entities": len(judged.entities), "far": _false_alarm_rate(judged), **found}


def _false_alarm_rate(judged: SplitJudgement) -> float | None:
    """Return the share of the normal rows that are flagged; None if the metrics do not tell."""
    if "far" in judged.metrics:
        return judged.metrics["far"]
    flagged, recall = judged.metrics.get("flagged"), judged.metrics.get("recall")
    n_normal = judged.n_rows - judged.n_anomalous
    if flagged is None or recall is None or not n_normal or judged.entities:
        return None
    return max(0.0, flagged * judged.n_rows - recall * judged.n_anomalous) / n_normal


def rows(trials: pd.DataFrame) -> pd.DataFrame:
    """Return a ranked row for each detector and split: means and deviations (ddof 1) over seeds, and what marks it.

    A number that is undefined for one seed, or of a row with a failed trial, is undefined: a mean over the seeds that
    survived is another number. The boolean columns are ``ok``, ``complete`` (every row has a score), ``forgets``,
    ``calibrated``, ``sound`` (it may be ranked) and ``above_floor`` (better than every floor in `FLOOR_METRICS`).
    """
    bad = trials["status"].mask(trials["status"] == "ok")
    lacking = (trials["coverage"] < 1) & (trials["n_rows"] > 0)
    by = trials.assign(bad=bad, lacking=lacking, guarded=trials["seal"] != "sealed").groupby(ROW, sort=False)
    frame = by[list(_OF_FIRST)].first()
    frame["status"], frame["n_failed"] = by["bad"].first().fillna("ok").astype(str), by["bad"].count()
    frame["ok"], frame["complete"] = frame["n_failed"] == 0, ~by["lacking"].any()
    frame["seal"] = by["guarded"].any().map({True: "guarded", False: "sealed"})
    costs = {"fit_seconds": "mean", "score_seconds": "mean", "peak_memory_mib": "max"}
    frame = frame.join(by.agg({"coverage": "min", **costs}))
    lists = {name: by[name].agg(list) for name in ("seed", "threads", "record", "replay", "reports")}
    frame["seeds"], frame["records"] = lists["seed"].map(tuple), lists["record"]
    frame["threads"] = [tuple(sorted(set(found))) for found in lists["threads"]]
    frame["seal_reasons"] = [_each(found) for found in by["seal_reason"].agg(list)]
    frame["pretrained_on"] = [_each(sum(found, ())) for found in by["pretrained_on"].agg(list)]
    frame["failed_checks"] = [_each(x for found in of for one in found for x in one.failed) for of in lists["reports"]]
    checked = np.where(lists["reports"].map(all), "pass", "no")
    frame["checked"] = np.where(frame["failed_checks"].map(len) > 0, "fail", checked)
    frame["replay"] = pd.Series([weakest(found) for found in lists["replay"]], frame.index, dtype=object)
    frame["forgets"] = [one is None or one.forgets for one in frame["replay"]]
    frame["calibrated"] = [one is None or one.calibrated for one in frame["replay"]]
    frame["sound"] = frame["ok"] & frame["complete"] & frame["forgets"] & (frame["leaky"] == "")
    frame.loc[~frame["ok"], ["coverage", "n_rows", "n_anomalous"]] = np.nan
    return order(frame.join(_over_seeds(trials)).join(_over_entities(trials)).reset_index())


def _each(values: Iterable[str]) -> tuple[str, ...]:
    """Return each value that is not empty once."""
    return tuple(dict.fromkeys(filter(None, values)))


def _over_seeds(trials: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation of each number, undefined where it is for one seed."""
    titles = {name: name.removeprefix(METRIC) for name in map(str, trials) if name.startswith((METRIC, DIAGNOSTIC))}
    names = [*titles, "far", "rows_per_second"]
    by = trials[[*ROW, *names]].groupby(ROW, sort=False)
    undefined = trials[names].isna().groupby([trials[key] for key in ROW], sort=False).any()
    means, deviations = by.mean().mask(undefined), by.std().mask(undefined)
    pairs = {
        f"{title}_{what}": of[name]
        for name, title in titles.items()
        for what, of in (("mean", means), ("std", deviations))
    }
    return pd.DataFrame({**pairs, "far": means["far"], "rows_per_second": means["rows_per_second"]}, index=means.index)


def _over_entities(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the deviation (ddof 1) of each metric over the entities for which it is defined, of their means."""
    ok = trials[(trials["status"] == "ok") & (trials["n_entities"] > 0)]
    lines = [
        {**dict(zip(ROW, key, strict=True)), "entity": entity, **metrics}
        for *key, record in ok[[*ROW, "record"]].itertuples(index=False)
        for entity, metrics in record.splits[key[2]].entities.items()
    ]
    frame = pd.DataFrame(lines, columns=None if lines else [*ROW, "entity"]).set_index([*ROW, "entity"]).astype(float)
    by = frame.groupby(level=[*ROW, "entity"], sort=False)
    means = by.mean().mask(by.count() < by.size().to_numpy()[:, None])
    return means.groupby(level=ROW, sort=False).std().add_suffix("_entity_std")


def order(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows by table, best mean AUPRC first and failures last, with their ranks and distances to the floors.

    A row that is not sound has no rank; nor has one that stands alone in its table.
    """
    for metric in FLOOR_METRICS:
        if f"{metric}_mean" not in frame:
            frame[f"{metric}_mean"] = np.nan
    means = [f"{metric}_mean" for metric in FLOOR_METRICS]
    floors = frame[frame["ok"] & frame["floor"]]
    best = frame[TABLE].join(floors.groupby(TABLE)[means].max(), on=TABLE)
    detectors = (frame["ok"] & ~frame["floor"]).to_numpy()
    below = (frame[means].fillna(-math.inf) <= best[means]).to_numpy() & detectors[:, None]
    has_floors = frame[TABLE].join(floors.groupby(TABLE).size().rename("n"), on=TABLE)["n"].notna()
    below_floor: list[Any] = [
        tuple(name for name, is_below in zip(FLOOR_METRICS, of_row, strict=True) if is_below) if known else None
        for of_row, known in zip(below, has_floors, strict=True)
    ]
    frame["below_floor"] = below_floor
    frame["above_floor"] = has_floors.to_numpy() & detectors & ~below.any(axis=1)
    frame["to_floor"] = frame["auprc_mean"] - best["auprc_mean"]
    ranked = frame["auprc_mean"].where(frame["sound"]).groupby([frame[key] for key in TABLE])
    frame["rank"] = ranked.rank(method="min", ascending=False).where(ranked.transform("count") > 1)
    table = pd.Series(pd.factorize(pd.MultiIndex.from_frame(frame[TABLE]))[0], frame.index)
    keys = frame.assign(table=table, bad=~frame["ok"], worst=-frame["auprc_mean"])
    return frame.loc[keys.sort_values(["table", "bad", "worst", "detector"]).index].reset_index(drop=True)


def places(table: pd.DataFrame, metric: str, better: str | None) -> pd.Series:
    """Return 1 for the best and 2 for the second in a metric, of one table's sound detectors that beat every floor."""
    values = table[f"{metric}_mean"] * {"higher": 1.0, "lower": -1.0}.get(better or "", math.nan)
    compared = values.where(table["sound"] & ~table["floor"])
    floor = values.where(table["ok"] & table["floor"]).max()
    above = compared.where(compared > (-math.inf if math.isnan(floor) else floor))
    found = above.rank(method="dense", ascending=False)
    return found.where((found <= 2) & (compared.count() > 1), 0).astype(int)


def records_of(trials: pd.DataFrame) -> list[Record]:
    """Return the records behind a frame of trials, each once."""
    return list({id(record): record for record in trials["record"]}.values())


def trial_key(record: Record) -> tuple[str, str, str, int]:
    """Return data set, protocol, label and seed: of two records with the same, the newer counts."""
    return record.dataset, record.protocol, record.label, record.seed


def splits_of(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the splits that records have metrics of, in their order."""
    return tuple(dict.fromkeys(split for record in records for split in record.splits))


def check_split(split: str, records: Iterable[Record]) -> None:
    """Raise a UsageError if records have metrics, but none of this split."""
    held = splits_of(records)
    if held and split not in held:
        raise UsageError(f"there is no split {split!r} in these records{nearest(split, held)}")


def _with_failures_beside(records: Sequence[Record]) -> list[Record]:
    """Return records whose failed trials, which nobody judged, are of the newest version of their protocol."""
    newest: dict[tuple[str, str], int] = {}
    for record in records:
        table = record.dataset, record.protocol
        newest[table] = max(record.protocol_version, newest.get(table, 1))
    return [
        record if record.status == "ok" else replace(record, protocol_version=newest[record.dataset, record.protocol])
        for record in records
    ]
