"""Records as data frames: one row a trial and split, then one row a detector and split, ranked against the floors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import compress

import pandas as pd

from tsadbench.base.protocol import SplitJudgement
from tsadbench.errors import UsageError
from tsadbench.execution.identity import code_of
from tsadbench.execution.record import Record
from tsadbench.execution.replays import weakest
from tsadbench.leaderboard.checks import CHECKS_VERSION, CheckReport
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
    "dataset", "protocol", "protocol_version", "dataset_version", "label", "detector", "family", "floor", "look_ahead",
    "leaky", "smoothing", "seed", "status", *COST_COLUMNS,
)  # fmt: skip
_OF_SPLIT = ("coverage", "far", "n_entities", "n_rows", "n_anomalous")
# What all trials of a row have in common, so that the first tells it.
_COMMON = (
    "protocol", "protocol_version", "dataset_version", "name", "family", "floor", "look_ahead", "leaky", "smoothing",
    "stored", "n_entities", "n_rows", "n_anomalous",
)  # fmt: skip


def trials(
    records: Iterable[Record],
    splits: Sequence[str] = (),
    *,
    stored: Iterable[Record] = (),
    reports: Iterable[CheckReport] = (),
) -> pd.DataFrame:
    """Return a row for each trial and split: what tables need of its record, the record, and ``metric_*``.

    Of several records of a trial the last counts; a trial that failed has a row for each split. ``stored`` records were
    made earlier, and those of a label that the others have are left out. ``reports`` are of checks of their detectors.
    A UsageError if no record has one of the ``splits`` (default: all).
    """
    last = {trial_key(record): record for record in records}
    own = {key[:3] for key in last}
    beside = {key: record for record in stored if (key := trial_key(record))[:3] not in own}
    every = [*last.values(), *beside.values()]
    for split in splits:
        check_split(split, every)
    current = (one for one in reports if one.checks == CHECKS_VERSION)
    known = grouped(current, lambda one: (one.label, one.code_hash))
    of_table = grouped(every, lambda one: (one.dataset, one.protocol))
    newest = {table: max(one.protocol_version for one in some) for table, some in of_table.items()}

    def version(one: Record) -> int:  # nobody judged what failed, so it stands beside the newest
        return one.protocol_version if one.status == "ok" else newest[one.dataset, one.protocol]

    lines = []
    for (_, protocol, number), table in grouped(every, lambda one: (one.dataset, one.protocol, version(one))).items():
        held = splits_of(table)
        # If all trials failed there is still a table to say so.
        shown = [one for one in splits if one in held or not held] or ([] if splits else held or ("overall",))
        for one in sorted(table, key=lambda one: one.seed):
            about = {name: getattr(one, name) for name in _OF_RECORD}
            about |= {"rules": f"{protocol} {number}", "protocol_version": number, "stored": trial_key(one) in beside}
            about |= {"record": one, "reports": known.get((one.label, code_of(one.manifest)), ())}
            judged = {split: one.splits.get(split) for split in shown if split in one.splits or one.status != "ok"}
            lines += [{**about, "split": split, **_of_split(found)} for split, found in judged.items()]
    metrics = [*dict.fromkeys(name for line in lines for name in line if name.startswith(METRIC))]
    columns = ["split", *_OF_SPLIT, *metrics, *_OF_RECORD, "rules", "stored", "record", "reports"]
    frame = pd.DataFrame(lines, columns=columns).rename(columns={"detector": "name", "label": "detector"})
    frame = frame.astype(dict.fromkeys([*COST_COLUMNS, *_OF_SPLIT, *metrics], float))
    # The share of the normal rows that are flagged; means over entities do not tell it.
    far, flagged, recall = (frame.get(f"{METRIC}{name}", frame["far"]) for name in ("far", "flagged", "recall"))
    n_normal = (frame["n_rows"] - frame["n_anomalous"]).where(frame["n_entities"] == 0).replace(0.0, math.nan)
    frame["far"] = far.fillna((flagged * frame["n_rows"] - recall * frame["n_anomalous"]).clip(lower=0.0) / n_normal)
    return frame


def _of_split(judged: SplitJudgement | None) -> dict[str, float | None]:
    if judged is None:
        return {}
    counts = {"n_entities": len(judged.entities), "n_rows": judged.n_rows, "n_anomalous": judged.n_anomalous}
    return {"coverage": judged.coverage, **counts, **{f"{METRIC}{name}": one for name, one in judged.metrics.items()}}


def rows(trials: pd.DataFrame) -> pd.DataFrame:
    """Return a ranked row for each detector and split: means and deviations (ddof 1) over seeds, and what marks it.

    A number that is undefined for one seed, or of a row with a failed trial, is undefined: a mean over the seeds that
    survived is another number. The boolean columns are ``ok``, ``complete`` (every row has a score), ``forgets``,
    ``calibrated``, ``sound`` (it may be ranked) and ``above_floor`` (better than every floor in `FLOOR_METRICS`).
    """
    by = trials.assign(complete=(trials["coverage"] >= 1) | ~(trials["n_rows"] > 0)).groupby(ROW, sort=False)
    hows = {**dict.fromkeys(_COMMON, "first"), "fit_seconds": "mean", "score_seconds": "mean", "peak_memory_mib": "max"}
    frame = by.agg({**hows, "coverage": "min", "complete": "all", "record": list, "reports": list})
    lines = [_of_trials(*some) for some in zip(frame["record"], frame.pop("reports"), strict=True)]
    frame = frame.rename(columns={"record": "records"}).join(
        pd.DataFrame(lines, index=frame.index, columns=[*_of_trials((), ())])
    )
    flags = ("floor", "stored", "ok", "complete", "forgets", "calibrated")
    frame = frame.fillna({"n_entities": 0}).astype({"n_entities": int, **dict.fromkeys(flags, bool)})
    frame["sound"] = frame["ok"] & frame["complete"] & frame["forgets"] & (frame["leaky"] == "")
    frame.loc[~frame["ok"], ["coverage", "n_rows", "n_anomalous"]] = math.nan
    spreads = over_entities(trials).groupby(level=ROW, sort=False).std().add_suffix("_entity_std")
    return order(frame.join(_over_seeds(trials)).join(spreads).reset_index())


def _of_trials(records: Sequence[Record], reports: Sequence[Sequence[CheckReport]]) -> dict[str, object]:
    """Return the columns of a row that its trials have together."""
    bad = [record.status for record in records if record.status != "ok"]
    failed = _each(check for found in reports for one in found for check in one.failed)
    replay = weakest(record.replay for record in records)
    return {
        **{"status": bad[0] if bad else "ok", "n_failed": len(bad), "ok": not bad},
        "seal": "sealed" if all(record.seal == "sealed" for record in records) else "guarded",
        "seal_reasons": _each(record.seal_reason for record in records),
        "seeds": tuple(record.seed for record in records),
        "threads": tuple(sorted({record.threads for record in records})),
        "pretrained_on": _each(corpus for record in records for corpus in record.pretrained_on),
        **{"failed_checks": failed, "checked": "fail" if failed else "pass" if all(reports) else "no"},
        "replay": replay,
        "forgets": replay is None or replay.forgets,
        "calibrated": replay is None or replay.calibrated,
    }


def _each(values: Iterable[str]) -> tuple[str, ...]:
    """Return each value that is not empty once."""
    return tuple(dict.fromkeys(filter(None, values)))


def _over_seeds(trials: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation of each number, undefined where it is for one seed."""
    names = [name for name in map(str, trials) if name.startswith((METRIC, DIAGNOSTIC))]
    by = trials[[*ROW, *names, "far", "rows_per_second"]].groupby(ROW, sort=False)
    means = by.mean().mask(by.count().lt(by.size(), axis=0))
    deviations = by[names].std().mask(means[names].isna()).add_suffix("_std")
    spreads = means[names].add_suffix("_mean").join(deviations)
    return spreads.rename(columns=lambda name: name.removeprefix(METRIC)).join(means[["far", "rows_per_second"]])


def over_entities(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over seeds of each entity's metrics, by row and entity, undefined as those of rows."""
    lines = [
        {**dict(zip(ROW, key, strict=True)), "entity": entity, **metrics}
        for *key, record in trials.loc[trials["n_entities"] > 0, [*ROW, "record"]].itertuples(index=False)
        for entity, metrics in record.splits[key[2]].entities.items()
    ]
    frame = pd.DataFrame(lines, columns=None if lines else [*ROW, "entity"]).set_index([*ROW, "entity"]).astype(float)
    by = frame.groupby(level=[*ROW, "entity"], sort=False)
    return by.mean().mask(by.count().lt(by.size(), axis=0))


def order(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows by table, best mean AUPRC first and failures last, with their ranks and distances to the floors.

    A row that is not sound has no rank; nor has one that stands alone in its table. ``below_floor`` has the metrics in
    which a detector is not above the best floor, None without floors.
    """
    names = [f"{metric}_mean" for metric in FLOOR_METRICS]
    frame = frame.reindex(columns=list(dict.fromkeys([*frame, *names])))
    tables, detectors = pd.MultiIndex.from_frame(frame[TABLE]), frame["ok"] & ~frame["floor"]
    floors = frame[frame["ok"] & frame["floor"]].groupby(TABLE)[names].max()
    best, has_floors = floors.reindex(tables).set_axis(frame.index), tables.isin(floors.index)
    below = (frame[names].fillna(-math.inf) <= best).mul(detectors, axis=0)
    of_rows = [tuple(compress(FLOOR_METRICS, row)) for row in below.to_numpy()]
    frame["below_floor"] = pd.Series(of_rows, frame.index, dtype=object).where(has_floors, None)
    frame["above_floor"] = has_floors & detectors & ~below.any(axis=1)
    frame["to_floor"] = frame["auprc_mean"] - best["auprc_mean"]
    ranked = frame["auprc_mean"].where(frame["sound"]).groupby([frame[key] for key in TABLE])
    frame["rank"] = ranked.rank(method="min", ascending=False).where(ranked.transform("count") > 1)
    keys = frame.assign(table=pd.factorize(tables)[0], bad=~frame["ok"], worst=-frame["auprc_mean"])
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
