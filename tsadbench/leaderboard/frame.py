"""Records as data frames: a row per trial and split, then a row per detector and split, ranked against the floors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Any

import pandas as pd

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
_FLOORED = [f"{metric}_mean" for metric in FLOOR_METRICS]
METRIC, DIAGNOSTIC = "metric_", "diagnostic_"
# Time and memory differ between two runs, so bit-for-bit comparisons leave these columns out.
COST_COLUMNS = ("rows_per_second", "fit_seconds", "score_seconds", "peak_memory_mib")
# Equal in all trials of a row, so the first one's is taken.
_COMMON = ("protocol", "protocol_version", "dataset_version", "family", "floor", "look_ahead", "leaky", "differs")
_OF_RECORD = ("dataset", "label", "detector", "seed", "status", *_COMMON, *COST_COLUMNS)
_COUNTS = ("n_entities", "n_rows", "n_anomalous", "sessions")
_OF_SPLIT = (*_COUNTS, "coverage", "far")


def trials(
    records: Iterable[Record],
    splits: Sequence[str] = (),
    *,
    stored: Iterable[Record] = (),
    reports: Iterable[CheckReport] = (),
    sessions: Mapping[str, Mapping[str, int]] | None = None,
) -> pd.DataFrame:
    """Return a row for each trial and split: what tables need of its record, the record, and ``metric_*``.

    Of several records of a trial the last counts; a failed trial has a row for each split. ``splits`` and ``stored``
    are as for `Leaderboard.from_records`; ``sessions`` are numbers of independent sessions, by data set and split.
    """
    last = {trial_key(record): record for record in records}
    own = {key[:3] for key in last}
    beside = {key: record for record in stored if (key := trial_key(record))[:3] not in own}
    every = [*last.values(), *beside.values()]
    for split in splits:
        check_split(split, every)
    known = grouped((one for one in reports if one.checks == CHECKS_VERSION), lambda one: (one.label, one.code_hash))
    lines = []
    for (dataset, protocol), of_all in grouped(every, lambda one: (one.dataset, one.protocol)).items():
        newest, n_sessions = max(one.protocol_version for one in of_all), (sessions or {}).get(dataset, {})
        # Failed trials were not judged: they go into the table of the newest version.
        versions = [one.protocol_version if one.status == "ok" else newest for one in of_all]
        for version in dict.fromkeys(versions):
            table = [*compress(of_all, (one == version for one in versions))]
            held = splits_of(table)
            # If all trials failed, a table still shows it.
            shown = [one for one in splits if one in held or not held] or ([] if splits else held or ("overall",))
            for one in sorted(table, key=lambda one: one.seed):
                about = {name: getattr(one, name) for name in _OF_RECORD} | {"protocol_version": version, "record": one}
                about |= {"rules": f"{protocol} {version}", "stored": trial_key(one) in beside}
                about |= {"reports": known.get((one.label, code_of(one.manifest)), ())}
                own_splits = (split for split in shown if split in one.splits or one.status != "ok")
                lines += [{**about, **_of_split(one, split), "sessions": n_sessions.get(split)} for split in own_splits]
    metrics = [*dict.fromkeys(name for line in lines for name in line if name.startswith(METRIC))]
    columns = ["split", *_OF_SPLIT, *metrics, *_OF_RECORD, "rules", "stored", "record", "reports"]
    frame = pd.DataFrame(lines, columns=columns).rename(columns={"detector": "name", "label": "detector"})
    frame = frame.astype(dict.fromkeys([*COST_COLUMNS, *_OF_SPLIT, *metrics], float))
    # Share of the normal rows that are flagged; it cannot be computed from means over several entities.
    far, flagged, recall = (frame.get(f"{METRIC}{name}", frame["far"]) for name in ("far", "flagged", "recall"))
    n_normal = (frame["n_rows"] - frame["n_anomalous"]).where(frame["n_entities"] <= 1).replace(0.0, math.nan)
    n_found = (recall * frame["n_anomalous"]).where(frame["n_anomalous"] > 0, 0.0)  # no recall without anomalies
    frame["far"] = far.fillna((flagged * frame["n_rows"] - n_found).clip(lower=0.0) / n_normal)
    return frame


def _of_split(record: Record, split: str) -> dict[str, object]:
    if (judged := record.splits.get(split)) is None:
        return {"split": split}
    counts = {"n_entities": len(judged.entities), "n_rows": judged.n_rows, "n_anomalous": judged.n_anomalous}
    metrics = {f"{METRIC}{name}": value for name, value in judged.metrics.items()}
    return {"split": split, "coverage": judged.coverage, **counts, **metrics}


def rows(trials: pd.DataFrame) -> pd.DataFrame:
    """Return a ranked row for each detector and split: means and deviations (ddof 1) over seeds, and remarks.

    A number that is undefined for one seed, or belongs to a row with a failed trial, is undefined: a mean over the
    remaining seeds cannot be compared. Boolean columns are ``ok``, ``complete`` (every row has a score), ``forgets``,
    ``calibrated``, ``sound`` (it may be ranked) and ``above_floor`` (better than every floor in `FLOOR_METRICS`).
    """
    by = trials.assign(complete=(trials["coverage"] >= 1) | ~(trials["n_rows"] > 0)).groupby(ROW, sort=False)
    hows: dict[str, Any] = dict.fromkeys(("name", *_COMMON, "stored", *_COUNTS), "first")
    hows |= {"coverage": "min", "complete": "all", "record": list, "reports": list}
    hows |= {"fit_seconds": "mean", "score_seconds": "mean", "peak_memory_mib": "max"}
    frame = by.agg(hows).rename(columns={"record": "records"})
    lines = [_of_trials(*some) for some in zip(frame["records"], frame.pop("reports"), strict=True)]
    frame = frame.join(pd.DataFrame(lines, index=frame.index, columns=[*_of_trials((), ())]))
    frame = frame.astype(dict.fromkeys(("floor", "stored", "ok", "complete", "forgets", "calibrated"), bool))
    frame["sound"] = frame["ok"] & frame["complete"] & frame["forgets"] & (frame["leaky"] == "")
    spreads = over_entities(trials).groupby(level=ROW, sort=False).std().add_suffix("_entity_std")
    frame = frame.join(_over_seeds(trials)).join(spreads).reset_index()
    frame.loc[~frame["ok"], ["coverage", *_COUNTS, *COST_COLUMNS]] = math.nan
    frame = frame.reindex(columns=[*dict.fromkeys([*frame, *_FLOORED])])
    tables = [_ranked(table.copy()) for _, table in frame.groupby(TABLE, sort=False)]
    return pd.concat(tables or [_ranked(frame)], ignore_index=True)


def _of_trials(records: Sequence[Record], reports: Sequence[Sequence[CheckReport]]) -> dict[str, object]:
    """Return the columns of a row that summarise its trials."""
    bad = [record.status for record in records if record.status != "ok"]
    every = [*chain(*reports)]
    failed = _each(check for one in every for check in one.failed)
    replay = weakest(record.replay for record in records)
    return {
        **{"status": bad[0] if bad else "ok", "n_failed": len(bad), "ok": not bad},
        "seal": "sealed" if all(record.seal == "sealed" for record in records) else "guarded",
        "seal_reasons": _each(record.seal_reason for record in records),
        **{"seeds": tuple(one.seed for one in records), "threads": tuple(sorted({one.threads for one in records}))},
        "pretrained_on": _each(corpus for record in records for corpus in record.pretrained_on),
        **{"failed_checks": failed, "checked": "fail" if failed else "pass" if all(reports) else "no"},
        "carries": _each(one.reasons.get("files", "") for one in every if one.results.get("files") == "warn"),
        **{"replay": replay, "forgets": not replay or replay.forgets, "calibrated": not replay or replay.calibrated},
    }


def _each(values: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct values that are not empty."""
    return tuple(dict.fromkeys(filter(None, values)))


def _over_seeds(trials: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation of each number; undefined if the number is undefined for one seed."""
    names = [name for name in map(str, trials) if name.startswith((METRIC, DIAGNOSTIC))]
    by = trials[[*ROW, *names, "far", "rows_per_second"]].groupby(ROW, sort=False)
    means = by.mean().mask(by.count().lt(by.size(), axis=0))
    deviations = by[names].std().mask(means[names].isna()).add_suffix("_std")
    spreads = means[names].add_suffix("_mean").join(deviations)
    return spreads.rename(columns=lambda name: name.removeprefix(METRIC)).join(means[["far", "rows_per_second"]])


def over_entities(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over seeds of each entity's metrics, by row and entity; undefined if undefined for one seed."""
    lines = [
        {**dict(zip(ROW, key, strict=True)), "entity": entity, **metrics}
        for *key, record in trials.loc[trials["n_entities"] > 0, [*ROW, "record"]].itertuples(index=False)
        for entity, metrics in record.splits[key[2]].entities.items()
    ]
    frame = pd.DataFrame(lines, columns=None if lines else [*ROW, "entity"]).set_index([*ROW, "entity"]).astype(float)
    by = frame.groupby(level=[*ROW, "entity"], sort=False)
    return by.mean().mask(by.count().lt(by.size(), axis=0))


def _ranked(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one table, best mean AUPRC first and failures last: ranks, distances to floors, remarks.

    A row that is not sound has no rank, nor has a single sound row. ``below_floor`` has the metrics in which a
    detector is not above the best floor, None without floors.
    """
    detectors, floors = table["ok"] & ~table["floor"], table[table["sound"] & table["floor"]]
    best = floors[_FLOORED].max()
    below = (table[_FLOORED].fillna(-math.inf) <= best).mul(detectors, axis=0)
    of_rows = [tuple(compress(FLOOR_METRICS, row)) if len(floors) else None for row in below.to_numpy()]
    table["below_floor"] = pd.Series(of_rows, table.index, dtype=object)
    table["above_floor"] = detectors & table[_FLOORED].notna().all(axis=1) & ~below.any(axis=1) & (len(floors) > 0)
    table["to_floor"] = table["auprc_mean"] - best["auprc_mean"]
    ranked = table["auprc_mean"].where(table["sound"])
    table["rank"] = ranked.rank(method="min", ascending=False) if ranked.count() > 1 else math.nan
    table = table.sort_values(["ok", "auprc_mean", "detector"], ascending=[False, False, True])
    remarks = pd.Series(_remarks(table), table.index, dtype=object)
    return table.assign(n_ranked=table["rank"].count(), remarks=remarks)


def _remarks(table: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the remarks on each row; properties such as its seal are mentioned only where rows differ."""
    ran = table[table["ok"]]
    best_floor = ran.loc[ran["sound"] & ran["floor"] & (ran["to_floor"] == 0), "detector"].tolist()[:1]
    differs = {name: ran[name].nunique() > 1 for name in ("seal", "look_ahead", "threads")}
    some_checked, some_own = (ran["checked"] != "no").any(), not table["stored"].all()
    row: Any  # a named tuple of all columns
    for row in table.itertuples(index=False):
        ok, below = row.ok, row.below_floor or ()
        why = {"leaky": row.leaky, "rows without a score": not row.complete}
        why["depends on the recording's start"] = not row.forgets
        wins = ", ".join(one.upper() for one in FLOOR_METRICS if one not in below).replace("MCC", "MCC (own threshold)")
        words = {
            f"{row.n_failed} of {len(row.seeds)} seeds failed: {row.status}": not ok,
            "best floor" if row.detector in best_floor else "floor": row.floor,
            f"unranked: {', '.join(text for text, applies in why.items() if applies)}": any(why.values()),
            f"beats the floors in {wins}": ok and 0 < len(below) < len(FLOOR_METRICS),
            "uncalibrated": not row.calibrated,
            "guarded": ok and differs["seal"] and row.seal == "guarded",
            f"fails checks: {', '.join(row.failed_checks)}": ok and row.checked == "fail",
            "not checked": ok and some_checked and row.checked == "no",
            "pretrained": bool(row.pretrained_on),
            **dict.fromkeys((*row.carries, *row.differs), ok),
            f"look-ahead {row.look_ahead}": ok and differs["look_ahead"] and row.look_ahead > 0,
            f"{'/'.join(map(str, row.threads))} threads": ok and differs["threads"] and row.threads != (1,),
            "stored": some_own and row.stored,
        }
        yield [text for text, applies in words.items() if applies]


def metric_names(frame: pd.DataFrame) -> list[str]:
    """Return the names of the metrics and diagnostics of rows."""
    return [name[:-4] for name in map(str, frame) if name.endswith("_std") and not name.endswith("_entity_std")]


def places(table: pd.DataFrame, metric: str, better: str | None) -> pd.Series:
    """Return 1 for the best and 2 for the second in a metric among sound detectors that beat every floor, else 0."""
    values = table[f"{metric}_mean"] * {"higher": 1.0, "lower": -1.0}.get(better or "", math.nan)
    compared = values.where(table["sound"] & ~table["floor"])
    floor = values.where(table["sound"] & table["floor"]).max()
    above = compared.where(compared > (-math.inf if math.isnan(floor) else floor))
    found = above.rank(method="dense", ascending=False)
    return found.where((found <= 2) & (compared.count() > 1), 0).astype(int)


def records_of(trials: pd.DataFrame) -> list[Record]:
    """Return the records behind a frame of trials, each once."""
    return list({id(record): record for record in trials["record"]}.values())


def trial_key(record: Record) -> tuple[str, str, str, int]:
    """Return data set, protocol, label and seed: of two records with the same key, the newer counts."""
    return record.dataset, record.protocol, record.label, record.seed


def splits_of(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the splits that records have metrics of, in their order."""
    return tuple(dict.fromkeys(split for record in records for split in record.splits))


def check_split(split: str, records: Iterable[Record]) -> None:
    """Raise a UsageError if records have metrics, but none of this split."""
    if (held := splits_of(records)) and split not in held:
        raise UsageError(f"there is no split {split!r} in these records{nearest(split, held)}")
