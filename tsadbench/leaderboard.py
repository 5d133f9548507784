"""From records to ranked rows: mean and spread over seeds, floors beside every detector, failures last."""

from __future__ import annotations

import csv
import io
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from tsadbench.errors import UsageError
from tsadbench.parameters import JsonValue, nearest
from tsadbench.protocol import SplitJudgement, Threshold
from tsadbench.record import Record

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
# A detector that is not above the best floor in these has shown nothing.
FLOOR_METRICS = ("auroc", "auprc", "prac_f1")
_THRESHOLD_FIELDS = ("value", "method", "t", "level", "q", "n", "excesses", "gamma", "sigma", "status")


@dataclass(frozen=True, slots=True)
class Summary:
    """A number over seeds: its mean, and its standard deviation (ddof 1; None for one seed)."""

    mean: float | None
    std: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One detector on one split, over its seeds: what ``design.md`` calls a row of the machine-readable output.

    Parameters
    ----------
    floor
        Whether it is a floor.
    status
        "ok", or the first bad one; metrics are None then, for a mean over the seeds that survived is another number.
    failed
        Seed, status and reason of each trial that failed.
    below_floor
        Those of AUROC, AUPRC and Prac-F1 in which it is not above the best floor; None where no floor took part.
    records
        The trials behind the row.
    """

    detector: str
    label: str
    family: str
    parameters: Mapping[str, JsonValue]
    floor: bool
    dataset: str
    protocol: str
    split: str
    seeds: tuple[int, ...]
    status: str
    failed: tuple[dict[str, JsonValue], ...]
    n_rows: int | None
    n_anomalous: int | None
    coverage: float | None
    look_ahead: int
    below_floor: tuple[str, ...] | None
    metrics: Mapping[str, Summary]
    records: tuple[Record, ...]

    @property
    def ok(self) -> bool:
        """Whether all of its trials are."""
        return self.status == "ok"

    @property
    def fit_seconds(self) -> float | None:
        """Mean wall-clock seconds of a fit."""
        return _mean([record.fit_seconds for record in self.records])

    @property
    def score_seconds(self) -> float | None:
        """Mean wall-clock seconds of scoring training and test recordings."""
        return _mean([record.score_seconds for record in self.records])

    @property
    def peak_memory_mib(self) -> float | None:
        """Largest resident size of the process that held the detector."""
        return max((r.peak_memory_mib for r in self.records if r.peak_memory_mib is not None), default=None)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the row as ``design.md`` lays it down."""
        below: JsonValue = None if self.below_floor is None else list(self.below_floor)
        return {
            "detector": self.detector,
            "label": self.label,
            "family": self.family,
            "parameters": dict(self.parameters),
            "dataset": self.dataset,
            "protocol": self.protocol,
            "split": self.split,
            "seeds": list(self.seeds),
            "status": self.status,
            "failed": list(self.failed),
            "n_rows": self.n_rows,
            "n_anomalous": self.n_anomalous,
            "coverage": self.coverage,
            "look_ahead": self.look_ahead,
            "below_floor": below,
            "metrics": {name: {"mean": one.mean, "std": one.std} for name, one in self.metrics.items()},
            "threshold": [
                {"seed": record.seed, "episode": one.episode, **_threshold_json(one.threshold)}
                for record in self.records
                for one in record.thresholds
            ],
            "seconds": {"fit": self.fit_seconds, "score": self.score_seconds},
            "peak_memory_mib": self.peak_memory_mib,
        }


class Leaderboard:
    """Ranked rows: by mean AUPRC, floors after the detectors, failures last; one table a data set, protocol, split.

    Parameters
    ----------
    rows
        In that order.
    notes
        What every table has to say about its data or its trials.
    """

    def __init__(self, rows: Sequence[Row], notes: Sequence[str] = ()) -> None:
        self.rows = tuple(rows)
        self.notes = tuple(notes)

    @classmethod
    def from_records(cls, records: Iterable[Record], splits: Sequence[str] = ()) -> Leaderboard:
        """Rank records.

        Parameters
        ----------
        records
            Of any data sets and protocols. Of several records of the same trial the newest counts.
        splits
            The splits to show, in order; none given: all.

        Raises
        ------
        UsageError
            Where no record has one of these splits.
        """
        newest = {(r.dataset, r.protocol, r.label, r.seed): r for r in records}
        tables: dict[tuple[str, str], list[Record]] = {}
        for record in newest.values():
            tables.setdefault((record.dataset, record.protocol), []).append(record)
        _check_splits(splits, tables.values())
        rows = [
            row
            for table in tables.values()
            for split in _shown(splits, table)
            for row in _ranked(_with_floors(_rows(table, split)))
        ]
        return cls(rows, _notes(list(newest.values())))

    def tables(self) -> dict[tuple[str, str, str], tuple[Row, ...]]:
        """Return the rows of each (data set, protocol, split)."""
        found: dict[tuple[str, str, str], tuple[Row, ...]] = {}
        for row in self.rows:
            key = (row.dataset, row.protocol, row.split)
            found[key] = (*found.get(key, ()), row)
        return found

    def to_json(self) -> str:
        """Return ``{"schema": 1, "rows": [...]}`` as ``design.md`` lays it down."""
        content = {"schema": SCHEMA, "rows": [row.to_json() for row in self.rows]}
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return the rows as CSV, full precision, empty where undefined.

        Over several tables the columns data set, protocol and split come first.
        """
        several = len(self.tables()) > 1
        records = [{**(_place(row) if several else {}), **_flat(row)} for row in self.rows]
        columns = list(dict.fromkeys(column for record in records for column in record))
        tail = ["fit_seconds", "score_seconds", "peak_memory_mib"]
        text = io.StringIO()
        writer = csv.DictWriter(text, [*(c for c in columns if c not in tail), *tail], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame, one row a detector and split, columns as in the CSV."""
        import pandas as pd

        return pd.DataFrame.from_records([{**_place(row), **_flat(row)} for row in self.rows])

    def write(self, folder: Path) -> list[Path]:
        """Write ``<data set>/<protocol>/<split>.csv``, ``.md`` and ``.json`` below a folder; return the files.

        Raises
        ------
        UsageError
            Where a file cannot be written.
        """
        written = []
        for (dataset, protocol, split), rows in self.tables().items():
            table = Leaderboard(rows, [note for note in self.notes if note.startswith(f"{dataset}: ")])
            for ending, text in ((".csv", table.to_csv()), (".md", table.to_markdown()), (".json", table.to_json())):
                file = folder / dataset / protocol / (split + ending)
                try:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text, encoding="utf-8")
                except OSError as error:
                    raise UsageError(f"{file}: cannot be written ({error.strerror}); choose another folder") from error
                written.append(file)
        return written

    def to_markdown(self) -> str:
        """Return one Markdown table a data set, protocol and split, with the marks explained below."""
        from tsadbench.render import markdown

        return markdown(self)

    def _repr_html_(self) -> str:
        from tsadbench.render import html

        return html(self)


def _rows(records: Sequence[Record], split: str) -> list[Row]:
    by_label: dict[str, list[Record]] = {}
    for record in records:
        by_label.setdefault(record.label, []).append(record)
    return [_row(sorted(of_label, key=lambda record: record.seed), split) for of_label in by_label.values()]


def _row(records: Sequence[Record], split: str) -> Row:
    first = records[0]
    bad = [record for record in records if record.status != "ok"]
    judged = [record.splits[split] for record in records if split in record.splits]
    return Row(
        detector=first.detector,
        label=first.label,
        family=first.family,
        parameters=first.parameters,
        floor=first.floor,
        dataset=first.dataset,
        protocol=first.protocol,
        split=split,
        seeds=tuple(record.seed for record in records),
        status=bad[0].status if bad else "ok",
        failed=tuple({"seed": one.seed, "status": one.status, "reason": one.reason} for one in bad),
        n_rows=None if bad else judged[0].n_rows,
        n_anomalous=None if bad else judged[0].n_anomalous,
        coverage=None if bad else min(one.coverage for one in judged),
        look_ahead=first.look_ahead,
        below_floor=None,
        metrics={} if bad else _summaries(judged),
        records=tuple(records),
    )


def _summaries(judged: Sequence[SplitJudgement]) -> dict[str, Summary]:
    summaries = {}
    for name in judged[0].metrics:
        values = [one.metrics[name] for one in judged]
        defined = [value for value in values if value is not None]
        if len(defined) < len(values):
            summaries[name] = Summary(None, None)
        else:
            summaries[name] = Summary(
                statistics.fmean(defined), statistics.stdev(defined) if len(defined) > 1 else None
            )
    return summaries


def _with_floors(rows: list[Row]) -> list[Row]:
    floors = [row for row in rows if row.floor and row.ok]
    if not floors:
        return rows
    best = {name: max((_value(floor, name) for floor in floors), default=-math.inf) for name in FLOOR_METRICS}
    marked = []
    for row in rows:
        below = tuple(
            name for name in FLOOR_METRICS if row.ok and not row.floor and _value(row, name) <= best[name] > -math.inf
        )
        values = {field.name: getattr(row, field.name) for field in fields(row)}
        marked.append(Row(**{**values, "below_floor": below}))
    return marked


def _ranked(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (not row.ok, row.floor, -_value(row, "auprc"), row.label))


def _value(row: Row, metric: str) -> float:
    summary = row.metrics.get(metric)
    return -math.inf if summary is None or summary.mean is None else summary.mean


def _flat(row: Row) -> dict[str, str | int | float]:
    flat: dict[str, str | int | float | None] = {
        "detector": row.label,
        "family": row.family,
        "seeds": len(row.seeds),
        "status": row.status,
        "coverage": row.coverage,
        "look_ahead": row.look_ahead,
        "below_floor": " ".join(row.below_floor or ()),
    }
    for name, summary in row.metrics.items():
        flat[f"{name}_mean"] = summary.mean
        flat[f"{name}_std"] = summary.std
    flat |= {
        "fit_seconds": row.fit_seconds,
        "score_seconds": row.score_seconds,
        "peak_memory_mib": row.peak_memory_mib,
    }
    return {name: "" if value is None else value for name, value in flat.items()}


def _place(row: Row) -> dict[str, str | int | float]:
    return {"dataset": row.dataset, "protocol": row.protocol, "split": row.split}


def _threshold_json(threshold: Threshold) -> dict[str, JsonValue]:
    return {name: getattr(threshold, name) for name in _THRESHOLD_FIELDS}


def _shown(wanted: Sequence[str], records: Sequence[Record]) -> tuple[str, ...]:
    """Return the splits of one table's records; where all trials failed there is still a table to say so."""
    found = tuple(dict.fromkeys(split for record in records for split in record.splits))
    if not found:
        return tuple(wanted) or ("overall",)
    return tuple(split for split in wanted if split in found) if wanted else found


def _check_splits(wanted: Sequence[str], tables: Iterable[Sequence[Record]]) -> None:
    known = tuple(dict.fromkeys(split for records in tables for record in records for split in record.splits))
    for split in wanted:
        if known and split not in known:
            raise UsageError(f"there is no split {split!r} in these records{nearest(split, known)}")


def _notes(records: Sequence[Record]) -> list[str]:
    notes = list(dict.fromkeys(f"{record.dataset}: {note}" for record in records for note in record.notes))
    for dataset in dict.fromkeys(record.dataset for record in records):
        of_dataset = [record for record in records if record.dataset == dataset]
        seen: dict[str, set[str]] = {
            "data": {json.dumps(record.manifest.get("data_hash")) for record in of_dataset},
            "package versions": {json.dumps(record.manifest.get("versions")) for record in of_dataset},
            "number of threads": {str(record.threads) for record in of_dataset},
        }
        mixed = [what for what, values in seen.items() if len(values) > 1]
        notes += [f"{dataset}: these rows were not all made with the same {what}" for what in mixed]
    return notes


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return statistics.fmean(present) if present else None
