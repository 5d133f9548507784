"""Who gains if all scores are averaged alike? The records and tables of smoothing.md.

    python docs/studies/smoothing.py --store runs/strict --store runs/tep --store runs/pumploop
    python docs/studies/smoothing.py                          # makes the page's tables from the records

With ``--store`` every stored trial under `strict` is judged again after a causal mean of its scores, and the records in
smoothing.jsonl of its data set are replaced; no detector runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from study_files import Record, page_of, parser_of, read_records, write_page, write_records

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.cli.live import progress_bar
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.ranking import Row
from tsadbench.results.judging import judge_smoothed
from tsadbench.utils.grouping import grouped
from tsadbench.utils.markdown import number, optional_number, table_lines

PAGE = Path(__file__).with_suffix(".md")
RECORDS = PAGE.with_suffix(".jsonl")
PROTOCOL = "strict"
SPLITS = {"skab": "overall", "tep": "detectable", "pumploop": "overall"}
ROWS = (1, 10, 60)
METRICS = {"auprc": "AUPRC", "auroc": "AUROC", "mcc": "MCC"}
# Parameters that say over how many rows a detector averages by itself.
_OWN = ("mean", "smoothing", "horizon")
_NAMED = 5


def load(name: str) -> LabelledDataset:
    """Return a data set; changed files are noted by its trials."""
    return load_dataset(name)(DataOptions(allow_changed=True))


def judged(store: Store) -> Iterator[Record]:
    """Yield a line for each row and each mean, of the data sets of this study that a store has trials of.

    Raises
    ------
    UsageError
        If there is none.
    """
    trials = [one for one in store.records() if one.protocol == PROTOCOL and one.dataset in SPLITS]
    if not trials:
        raise UsageError(f"{store.path} holds no trial under {PROTOCOL} of {', '.join(SPLITS)}")
    for rows in ROWS:
        records, left_out = judge_smoothed(trials, store, load, rows)
        for row, reason in left_out.items():
            print(f"{store.path}: {row} cannot be judged again: {reason}", file=sys.stderr)
        kept = {(one.dataset, one.label) for one in records}
        for one in {(one.dataset, one.label): one for one in trials}.values():
            if (one.dataset, one.label) not in kept:
                row = Row(records=(replace(one, status="error"),), split=SPLITS[one.dataset], metrics={})
                yield line(row, rows) | {"status": "without scores"}
        for dataset, of_dataset in grouped(records, lambda one: one.dataset).items():
            for row in Leaderboard.from_records(of_dataset, [SPLITS[dataset]]).rows:
                yield line(row, rows)


def line(row: Row, rows: int) -> Record:
    """Return what is kept of one row of one table."""
    parameters = row.first.parameters
    own = [value for name in _OWN if isinstance(value := parameters.get(name, 1), int)]
    return {
        "dataset": row.dataset,
        "split": row.split,
        "rows": rows,
        "label": row.label,
        "floor": row.floor,
        "leaky": bool(row.leaky),
        "own": max(own, default=1),
        "seeds": len(row.seeds),
        "status": row.status,
        "metrics": {
            name: {"mean": summary.mean, "std": summary.std}
            for name in METRICS
            if (summary := row.metrics.get(name)) is not None
        },
    }


class Study:
    """The records of one data set.

    Parameters
    ----------
    lines
        Of all rows of its tables, by each mean.
    """

    def __init__(self, lines: Sequence[Record]) -> None:
        ranked = [one for one in lines if one["status"] == "ok" and not one["leaky"]]
        self.first = {str(one["label"]): one for one in ranked if one["rows"] == 1}
        self.absent = sorted({f"{one['label']} ({one['status']})" for one in lines if one["status"] != "ok"})
        self._lines = {(one["rows"], one["label"]): one for one in ranked}
        self.labels = sorted(self.first, key=lambda label: -(self.mean(label, 1) or 0.0))

    def mean(self, label: str, rows: int, metric: str = "auprc") -> float | None:
        """Return a row's mean over its seeds."""
        found = self._lines.get((rows, label), {}).get("metrics", {})
        return found[metric]["mean"] if metric in found else None

    def rank(self, label: str, rows: int) -> int | None:
        """Return a row's place by AUPRC among all rows, floors included."""
        own = self.mean(label, rows)
        others = [self.mean(other, rows) for other in self.labels]
        return None if own is None else 1 + sum(other is not None and other > own for other in others)

    def gain(self, label: str, rows: int) -> float:
        """Return what a mean over so many rows adds to a row's AUPRC."""
        return (self.mean(label, rows) or 0.0) - (self.mean(label, 1) or 0.0)

    def above_floors(self, rows: int) -> list[str]:
        """Return the detectors whose AUPRC is above every floor's, the highest first."""
        best = max((self.mean(one, rows) or 0.0 for one in self.labels if self.first[one]["floor"]), default=0.0)
        found = [one for one in self.labels if not self.first[one]["floor"] and (self.mean(one, rows) or 0.0) > best]
        return sorted(found, key=lambda one: -(self.mean(one, rows) or 0.0))

    def pairs(self, rows: int) -> list[tuple[str, str]]:
        """Return the pairs of rows that change places; the first was above the second."""
        return [
            (one, other)
            for one, other in combinations(self.labels, 2)
            if (self.mean(one, 1) or 0.0) > (self.mean(other, 1) or 0.0)
            and (self.mean(one, rows) or 0.0) < (self.mean(other, rows) or 0.0)
        ]


def table(study: Study) -> list[str]:
    """Return the lines of a data set's table."""
    header = ["row", "seeds", "averages over", "rank by AUPRC"]
    header += [f"{title}, {rows}" for title in METRICS.values() for rows in ROWS]
    lines = []
    for label in study.labels:
        first = study.first[label]
        own = f"{first['own']} rows" if first["own"] != 1 else "-"
        ranks = ", ".join(str(study.rank(label, rows) or "-") for rows in ROWS)
        cells = [optional_number(study.mean(label, rows, metric)) for metric in METRICS for rows in ROWS]
        lines.append([f"{label}{' (floor)' if first['floor'] else ''}", str(first["seeds"]), own, ranks, *cells])
    absent = ["", f"Not in the table: {', '.join(study.absent)}."] if study.absent else []
    return [*table_lines(header, lines), *absent]


def summary(study: Study) -> list[str]:
    """Return who gains, in sentences."""
    lines = []
    for rows in ROWS[1:]:
        order = sorted(study.labels, key=lambda one: -study.gain(one, rows))
        changes = {one: f"{one} {number(study.gain(one, rows), 4, signed=True)}" for one in order}
        top = ", ".join(changes[one] for one in order[:_NAMED])
        bottom = ", ".join(changes[one] for one in order[: -_NAMED - 1 : -1])
        counts = []
        for words, own in (("score single rows", False), ("average by themselves", True)):
            members = [one for one in study.labels if (study.first[one]["own"] != 1) == own]
            gaining = sum(study.gain(one, rows) > 0 for one in members)
            counts.append(f"of the {len(members)} rows that {words}, {gaining} gain")
        highest = max(study.labels, key=lambda one: study.mean(one, rows) or 0.0)
        above = study.above_floors(rows)
        lines += [
            f"* **A mean of {rows} rows.** Most gain {top}; most lose, or gain least, {bottom}. AUPRC: "
            f"{'; '.join(counts)}. {len(study.pairs(rows))} pairs of rows change places. Highest: {highest} with "
            f"{optional_number(study.mean(highest, rows))}. Above every floor: {', '.join(above) or 'no detector'}."
        ]
    above = study.above_floors(1)
    lines.insert(0, f"* **As scored.** Above every floor: {', '.join(above) or 'no detector'}.")
    return lines


def block(name: str) -> list[str]:
    """Return the lines of one of the page's blocks, "gains skab" or "table skab" for instance."""
    what, _, dataset = name.partition(" ")
    study = Study([one for one in read() if one["dataset"] == dataset])
    return {"gains": summary, "table": table}[what](study) if study.labels else ["No records yet."]


def read() -> list[Record]:
    """Return the committed records."""
    return read_records(RECORDS)


def page() -> str:
    """Return the page, its blocks made from the records."""
    return page_of(PAGE, block)


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge stored trials again if stores are given; then make the page's tables."""
    parser = parser_of(__doc__)
    parser.add_argument("--store", type=Path, action="append", default=[])
    lines = read()
    for path in parser.parse_args(arguments).store:
        with progress_bar(f"Judging {path}"):
            made = list(judged(Store.open(path)))
        replaced = {one["dataset"] for one in made}
        lines = [one for one in lines if one["dataset"] not in replaced] + made
    lines.sort(key=lambda one: (list(SPLITS).index(str(one["dataset"])), one["rows"], one["label"]))
    write_records(RECORDS, lines)
    write_page(PAGE, block)


if __name__ == "__main__":
    main()
