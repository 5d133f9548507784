"""Metrics of committed rows on each recording and each session: what a comparison needs where no scores are.

``<data set>/<protocol>/recordings.jsonl`` lies beside the records. Its first line says which recordings each unit is
made of; every other line holds one trial's metrics on these units.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.base.protocol import SplitJudgement
from tsadbench.base.sessions import sessions_of
from tsadbench.errors import StoreError, UsageError
from tsadbench.execution.record import Record
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.text import one_line

RECORDINGS = "recordings.jsonl"
SCHEMA = 1
# Of the values. A comparison rounds fresh values alike, so that a row does not differ from itself.
DECIMALS = 6
_ABOUT = ("dataset", "protocol", "protocol_version", "data_hash", "labels_hash", "metrics")


@dataclass(frozen=True, slots=True, eq=False)
class UnitValues:
    """Metrics of the trials of a data set and protocol on units: recordings, sessions, and parts of them in splits.

    ``units`` are the recordings of each unit, with its numbers of evaluated and of anomalous rows; ``values``
    [n_units, n_metrics] of each trial, NaN where undefined, by label, seed and `judgement_digest` of its record.
    """

    dataset: str
    protocol: str
    protocol_version: int
    data_hash: str
    labels_hash: str
    metrics: list[str]
    units: Mapping[tuple[str, ...], tuple[int, int]]
    values: Mapping[tuple[str, int, str], FloatArray]

    @classmethod
    def of(cls, results: Iterable[TrialResult], data: LabelledDataset) -> UnitValues:
        """Judge trials of one data set and protocol on each unit by itself, one trial's scores in memory at a time."""
        units: dict[tuple[str, ...], tuple[int, int]] = {}
        values: dict[tuple[str, int, str], FloatArray] = {}
        for result in results:
            first, metrics = result.record, [metric.name for metric in result.protocol.metrics]
            scored = [tuple(one for one in unit if one in result.recordings) for unit in units_of(data.dataset)]
            groups = {str(i): unit for i, unit in enumerate(dict.fromkeys(filter(None, scored)))}
            judged = result.judge(groups)
            units |= {groups[name]: (one.n_rows, one.n_anomalous) for name, one in judged.items()}
            table = np.array([[one.metrics[name] for name in metrics] for one in judged.values()], dtype=np.float64)
            values[_key(result.record)] = table.round(DECIMALS)
        if not values:
            raise UsageError("expected at least one trial with scores, found none")
        hashes = data.dataset.content_hash, data.labels.content_hash
        return cls(first.dataset, first.protocol, first.protocol_version, *hashes, metrics, units, values)

    @classmethod
    def read(cls, file: Path) -> UnitValues:
        """Return the values in a file; a StoreError if it cannot be read, or a line is not what it should be."""
        try:
            about, *lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
            units = {tuple(one["recordings"]): (one["n_rows"], one["n_anomalous"]) for one in about["units"]}
            values = {
                (one["label"], one["seed"], one["judged"]): np.array(one["values"], dtype=np.float64) for one in lines
            }
            shape = len(units), len(about["metrics"])
            if any(table.shape != shape for table in values.values()):
                raise ValueError(f"expected {shape[0]} units with {shape[1]} metrics for each trial")
            return cls(**{name: about[name] for name in _ABOUT}, units=units, values=values)
        except (OSError, ValueError, TypeError, KeyError) as error:
            reason = one_line(str(error), 200)
            raise StoreError(f"{file}: expected what `leaderboard --write` writes; {reason}") from error

    def joined_with(self, committed: UnitValues) -> UnitValues:
        """Return the values with those of committed trials whose label and seed are not here.

        A UsageError if the committed ones are of other data, rules or units.
        """
        for name in (*_ABOUT, "units"):
            if getattr(self, name) != getattr(committed, name):
                raise UsageError(f"their {name} is not that of the committed {RECORDINGS}: remove that file")
        own = {key[:2] for key in self.values}
        kept = {key: table for key, table in committed.values.items() if key[:2] not in own}
        return replace(self, values={**kept, **self.values})

    def lines(self) -> Iterator[str]:
        """Yield the lines of a file, trials by label and seed."""
        units = [
            {"recordings": list(members), "n_rows": n_rows, "n_anomalous": n_anomalous}
            for members, (n_rows, n_anomalous) in self.units.items()
        ]
        yield _json({"schema": SCHEMA, **{name: getattr(self, name) for name in _ABOUT}, "units": units})
        for (label, seed, judged), table in sorted(self.values.items()):
            values = [[None if np.isnan(value) else value for value in row] for row in table.tolist()]
            yield _json({"label": label, "seed": seed, "judged": judged, "values": values})

    def holds(self, record: Record) -> bool:
        """Return whether the values of a record's trial are here, judged as the record says."""
        return _key(record) in self.values

    def judge(self, record: Record, groups: Mapping[str, Sequence[str]]) -> dict[str, SplitJudgement]:
        """Return what `TrialResult.judge` returns, from the file; a UsageError if a group is none of the units."""
        places = {members: i for i, members in enumerate(self.units)}
        scored = {name for members in self.units for name in members}
        table, found = self.values[_key(record)], {}
        for name, group in groups.items():
            members = tuple(member for member in group if member in scored)
            if not members:
                continue
            if members not in places:
                raise UsageError(
                    f"no values of the shipped rows on {name!r} ship with tsadbench ({len(members)} recordings judged "
                    "together): compare on another split, or run the detectors in a store of your own"
                )
            row = table[places[members]].tolist()
            metrics = {key: None if np.isnan(value) else value for key, value in zip(self.metrics, row, strict=True)}
            found[name] = SplitJudgement(metrics, *self.units[members], 1.0)
        return found


def units_of(dataset: Dataset) -> list[tuple[str, ...]]:
    """Return the test recordings by themselves, the sessions of several, and what splits take of these; each once."""
    session_of = sessions_of(dataset)
    alone = [(recording.id,) for recording in dataset.test]
    groups = [[name for (name,) in alone], *dataset.splits.values()]
    together = [tuple(some) for group in groups for some in grouped(group, session_of.__getitem__).values()]
    return list(dict.fromkeys([*alone, *together]))


def judgement_digest(record: Record) -> str:
    """Return a digest of what a record's judge found: values by recording belong to the record that has the same."""
    found = {name: [dict(one.metrics), one.n_rows, one.n_anomalous] for name, one in sorted(record.splits.items())}
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:12]


def _key(record: Record) -> tuple[str, int, str]:
    return record.label, record.seed, judgement_digest(record)


def _json(content: object) -> str:
    return json.dumps(content, separators=(",", ":"), allow_nan=False)
