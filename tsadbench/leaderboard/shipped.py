"""The leaderboards that travel with the package: records, and their metrics on each recording and session.

``<data set>/<protocol>/recordings.jsonl`` has these metrics, because the scores do not ship. Its first line says
which recordings each unit is made of; every other line holds one trial's metrics on these units.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.base.protocol import SplitJudgement
from tsadbench.datasets.sessions import sessions_of
from tsadbench.errors import DataError, StoreError, UsageError
from tsadbench.execution.record import RECORDS, Record, committed_records
from tsadbench.results.trial_result import TrialResult, data_faults
from tsadbench.utils.files import LEADERBOARDS, write_file
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import nearest
from tsadbench.utils.text import one_line

RECORDINGS = "recordings.jsonl"
# Of the values. A comparison rounds fresh values alike, so that a row does not differ from itself.
DECIMALS = 6


@dataclass(frozen=True, eq=False)
class UnitValues:
    """Metrics of the trials of a data set and protocol on units: recordings, sessions, and parts of them in splits.

    ``about`` is the first line of the file, ``trials`` are the others by label and seed: values [n_units, n_metrics],
    None where undefined, and a digest of what the judge of the record found.
    """

    about: Mapping[str, Any]
    trials: Mapping[tuple[str, int], Mapping[str, Any]]

    @cached_property
    def units(self) -> dict[tuple[str, ...], tuple[int, int]]:
        """The recordings of each unit, with its numbers of evaluated and of anomalous rows."""
        return {tuple(one["recordings"]): (one["n_rows"], one["n_anomalous"]) for one in self.about["units"]}

    @classmethod
    def read(cls, file: Path) -> UnitValues:
        """Return the values in a file; a StoreError if it cannot be read, or a line is not what it should be."""
        try:
            about, *lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
            found = cls(about, {(one["label"], one["seed"]): one for one in lines})
            shape = len(found.units), len(about["metrics"])
            if any(np.array(one["values"], dtype=np.float64).shape != shape for one in lines):
                raise ValueError(f"expected {shape[0]} units with {shape[1]} metrics for each trial")
            return found
        except (OSError, ValueError, TypeError, KeyError) as error:
            reason = one_line(str(error), 200)
            raise StoreError(f"{file}: expected what `leaderboard --write` writes; {reason}") from error

    def holds(self, record: Record) -> bool:
        """Return whether the values of a record's trial are here, judged as the record says."""
        return self.trials.get((record.label, record.seed), {}).get("judged") == _digest(record)

    def judge(self, record: Record, groups: Mapping[str, Sequence[str]]) -> dict[str, SplitJudgement]:
        """Return the same as `TrialResult.judge`, from the file; a UsageError if the trial or a unit is missing."""
        if not self.holds(record):
            raise UsageError(f"no metrics by recording ship for {record.label}, seed {record.seed}")
        judged = dict(zip(self.units, self.trials[record.label, record.seed]["values"], strict=True))
        scored = {name for members in self.units for name in members}
        found = {}
        for name, group in groups.items():
            members = tuple(member for member in group if member in scored)
            if members and members not in judged:
                raise UsageError(
                    f"no values of the shipped rows on {name!r} ship with tsadbench ({len(members)} recordings judged "
                    "together): compare on another split, or run the detectors in a store of your own"
                )
            if members:
                metrics = dict(zip(self.about["metrics"], judged[members], strict=True))
                found[name] = SplitJudgement(metrics, *self.units[members], 1.0)
        return found


def write_values(file: Path, results: Iterable[TrialResult], data: LabelledDataset) -> Path:
    """Judge trials of one data set and protocol on each unit, one in memory at a time, and write the metrics.

    Metrics of other trials that the file has stay; a UsageError if they are of other data, rules or units.
    """
    about: dict[str, Any] = {}
    trials: dict[tuple[str, int], Mapping[str, Any]] = {}
    for result in results:
        record, metrics = result.record, [metric.name for metric in result.protocol.metrics]
        scored = [[one for one in unit if one in result.recordings] for unit in units_of(data.dataset)]
        groups = {str(unit): unit for unit in scored if unit}
        judged = {name: rounded(one) for name, one in result.judge(groups).items()}
        units = [
            {"recordings": groups[name], "n_rows": one.n_rows, "n_anomalous": one.n_anomalous}
            for name, one in judged.items()
        ]
        rules = {"dataset": record.dataset, "protocol": record.protocol, "protocol_version": record.protocol_version}
        hashes = {"data_hash": data.dataset.content_hash, "labels_hash": data.labels.content_hash}
        about = {"schema": 1, **rules, **hashes, "metrics": metrics, "units": units}
        values = [[one.metrics[name] for name in metrics] for one in judged.values()]
        trial = {"label": record.label, "seed": record.seed, "judged": _digest(record), "values": values}
        trials[record.label, record.seed] = trial
    if not trials:
        raise UsageError("expected at least one trial with scores, found none")
    if file.is_file():
        kept = UnitValues.read(file)
        n_kept = len(kept.about["metrics"])
        known = {**about, "metrics": about["metrics"][:n_kept]}  # those added since are undefined for earlier trials
        if other := [name for name, value in known.items() if kept.about.get(name) != value]:
            raise UsageError(f"their {other[0]} is not that of the committed {RECORDINGS}: remove that file")
        undefined = [None] * (len(about["metrics"]) - n_kept)
        earlier = {
            key: {**one, "values": [[*row, *undefined] for row in one["values"]]} for key, one in kept.trials.items()
        }
        trials = {**earlier, **trials}
    lines = [about, *(trial for _, trial in sorted(trials.items()))]
    texts = [json.dumps(line, separators=(",", ":"), allow_nan=False) for line in lines]
    return write_file(file, "".join(f"{text}\n" for text in texts))


def session_counts(folder: Path, dataset: str) -> dict[str, int]:
    """Return how many sessions the split ``overall`` of a data set has, if its metrics by recording lie in a folder."""
    for file in sorted((folder / dataset).glob(f"*/{RECORDINGS}")):
        with file.open(encoding="utf-8") as lines:
            units = [frozenset(one["recordings"]) for one in json.loads(lines.readline())["units"]]
        # Other units are parts of sessions.
        return {"overall": sum(not any(unit < other for other in units) for unit in units)}
    return {}


def rounded(judged: SplitJudgement) -> SplitJudgement:
    """Return a judgement with metrics of `DECIMALS` decimals, as they ship."""
    metrics = {name: None if value is None else round(value, DECIMALS) for name, value in judged.metrics.items()}
    return replace(judged, metrics=metrics)


def units_of(dataset: Dataset) -> list[tuple[str, ...]]:
    """Return the test recordings by themselves, the sessions of several, and what splits take of these; each once."""
    session_of = sessions_of(dataset)
    alone = [(recording.id,) for recording in dataset.test]
    groups = [[name for (name,) in alone], *dataset.splits.values()]
    together = [tuple(some) for group in groups for some in grouped(group, session_of.__getitem__).values()]
    return list(dict.fromkeys([*alone, *together]))


def _digest(record: Record) -> str:
    """Return a digest of what a record's judge found: values by recording belong to the record that has the same."""
    found = {name: [dict(one.metrics), one.n_rows, one.n_anomalous] for name, one in sorted(record.splits.items())}
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:12]


def stored_records(dataset: str, protocol: str, data: LabelledDataset | None = None) -> tuple[Record, ...]:
    """Return the records of a leaderboard that ships.

    A UsageError, which names those that do, if none does; a DataError if they were not made on ``data``.
    """
    records = committed_records(LEADERBOARDS, dataset, protocol)
    if not records:
        shipped = tuple(sorted(file.parent.name for file in LEADERBOARDS.glob(f"{dataset}/*/{RECORDS}")))
        raise UsageError(
            f"no leaderboard of data set {dataset!r} under protocol {protocol!r} ships with tsadbench"
            f"{nearest(protocol, shipped)}"
        )
    if data is not None and any(data_faults(record, data) for record in records):
        raise DataError(
            f"the stored rows of {dataset!r} were made on other data than these files hold; leave --against out, or "
            f"get the published files (`tsadbench data fetch {dataset}`)"
        )
    return records


def stored_values(data: LabelledDataset, protocol: str) -> UnitValues:
    """Return the metrics by recording of stored rows.

    A UsageError if none ship, a DataError if they were made on other data.
    """
    name = data.dataset.name
    stored_records(name, protocol, data)
    file = LEADERBOARDS / name / protocol / RECORDINGS
    if not file.is_file():
        raise UsageError(
            f"no metrics by recording ship for data set {name!r} under protocol {protocol!r}: leave --against out, and "
            "run the detectors in a store of your own"
        )
    return UnitValues.read(file)
