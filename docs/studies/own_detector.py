"""How the detector of our own was chosen, and how it fared: the records and tables of own-detector.md.

    python docs/studies/own_detector.py --dataset skab       # measures all candidates; its records are replaced
    python docs/studies/own_detector.py                      # makes the page's tables from the records

Candidates are measured on training rows alone (`planting.py`): no test recording is scored here, no label is read. What
the page says of test labels is made of the committed leaderboards, by `own_detector_look.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from own_detector_look import CHOSEN, SPLITS, VIEWS, look
from planting import ALL_KINDS, LONG_KINDS, faulty, folds
from study_files import Record, parser_of, read_records, write_page, write_records
from tried_views import make_available

from tsadbench.analysis.curves import average_precision
from tsadbench.base import Episode, FloatArray, Scored
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.plan import make_protocol
from tsadbench.registry import load_detector
from tsadbench.utils.markdown import number, table_lines
from tsadbench.utils.parameters import parse_arguments, parse_label
from tsadbench.utils.threads import limited_threads

PAGE = Path(__file__).with_name("own-detector.md")
RECORDS = Path(__file__).with_name("own-detector.jsonl")
DATASETS = tuple(SPLITS)
Q = 1e-3
# Of data sets with many entities, these many.
MOST_ENTITIES = 4
TOLERANCE = 0.005


# The first choice by prototypes; what was measured around it made 0.1 the default.
FIRST_SHAPE = 0.25


def variant(**changes: object) -> str:
    """Return the label of the first choice with some parameters changed."""
    parameters = {"least_shape": FIRST_SHAPE, **changes}
    order = [*changes, *(name for name in parameters if name not in changes)]
    return f"{CHOSEN}[{','.join(f'{name}={parameters[name]}' for name in order)}]"


def with_views(*names: str) -> str:
    """Return the label of the detector with other views."""
    return variant(views="+".join(names))


CANDIDATES: Mapping[str, Sequence[str]] = {
    "chosen": (CHOSEN,),
    "first choice": (variant(),),
    "one view alone": tuple(map(with_views, VIEWS)),
    "without one view": tuple(with_views(*(name for name in VIEWS if name != left_out)) for left_out in VIEWS),
    "one view more": tuple(with_views(*VIEWS, name) for name in ("distance", "neighbour", "dynamics")),
    "a view changed": (
        with_views("level-both-sides", *VIEWS[1:]),
        with_views("level", "range", "relation-mean", "forecast", "movement"),
        with_views("level", "range", "relation-largest", "forecast", "movement"),
    ),
    "combination of views": tuple(variant(truncation=one) for one in (1.0, 0.3, 0.03, 0.001)),
    "accumulation": tuple(variant(accumulation=one) for one in (1, 8, 64)),
    "tails": (variant(least_shape=0.0),),
    "blocks": tuple(variant(blocks=one) for one in (1, 3, 10)),
    "adaptive": (variant(adaptive=True),),
    "rows of the leaderboards": (
        "t2[mean=10]", "t2", "cva", "pca", "dynamic-pca", "mset", "t2-q", "ridge", "nearest-neighbour",
        "max-z[mean=10]", "l2-z[mean=10]", "l1-z[mean=10]", "sensor-range[mean=10]",
    ),
}  # fmt: skip


def measured(name: str) -> Iterator[Record]:
    """Yield a record of each candidate on a data set."""
    make_available()
    dataset = load_dataset(name)(DataOptions()).dataset
    strict, _ = make_protocol("strict", {})
    trained = [episode.train for episode in strict.episodes(dataset)]
    del dataset  # and with it test recordings; labels are not in it
    step = max(1, len(trained) // MOST_ENTITIES)
    parts = [fold for train in trained[::step][:MOST_ENTITIES] for fold in folds(train)]
    planted = [{kind: faulty(fold, kind) for kind in ALL_KINDS} for fold in parts]
    for group, labels in CANDIDATES.items():
        for label in labels:
            parsed = parse_label(label)
            constructed = load_detector(parsed.target)
            arguments = parse_arguments(constructed, parsed.arguments, parsed.target)
            start = time.process_time()
            values: dict[str, list[float]] = {kind: [] for kind in ALL_KINDS}
            n_rows = n_flagged = 0
            for fold, with_faults in zip(parts, planted, strict=True):
                detector = constructed(**arguments).fit(fold.train)
                for kind, (recordings, rows) in with_faults.items():
                    if rows.any():
                        scores = np.concatenate([detector.score(recording) for recording in recordings])
                        values[kind].append(average_precision(scores, rows) or 0.0)
                later = tuple(detector.score(recording) for recording in fold.later)
                threshold = strict.threshold(
                    Scored(
                        Episode("all", fold.train, fold.later, ()), tuple(detector.training_scores(fold.train)), later
                    )
                )
                rows_after = np.concatenate([one[strict.calibration_rows(len(one))] for one in later])
                n_rows += len(rows_after)
                n_flagged += int(np.count_nonzero(rows_after > threshold.value))
            yield {
                "dataset": name,
                "group": group,
                "candidate": label,
                "auprc": {kind: round(float(np.mean(found)), 5) for kind, found in values.items() if found},
                "later_rows": n_rows,
                "flagged": n_flagged,
                "cpu_seconds": round(time.process_time() - start, 1),
            }


def auprc(record: Record, kinds: Sequence[str] = ALL_KINDS) -> float:
    """Return the mean over kinds of fault."""
    return float(np.mean([record["auprc"][kind] for kind in kinds if kind in record["auprc"]]))


def distance(record: Record) -> float:
    """Return |log10((share + 1 / n) / q)| of the flagged rows."""
    return float(abs(np.log10((record["flagged"] + 1) / record["later_rows"] / Q)))


def summary(records: Sequence[Record]) -> FloatArray:
    """Return of one candidate's records: mean AUPRC, that of short and long kinds, and the mean distance from q."""
    short = [kind for kind in ALL_KINDS if kind not in LONG_KINDS]
    figures = [[auprc(one), auprc(one, short), auprc(one, LONG_KINDS), distance(one)] for one in records]
    return np.asarray(np.mean(figures, axis=0))


def candidates_table(records: Sequence[Record]) -> list[str]:
    """Return the lines of the table of all candidates."""
    header = ["candidate", *DATASETS, "mean", "short", "long", "distance from q", "CPU s"]
    rows = []
    for group, labels in CANDIDATES.items():
        for label in labels:
            own = {one["dataset"]: one for one in records if one["candidate"] == label}
            if not own:
                continue
            present = [own[name] for name in DATASETS if name in own]
            whole = len(present) == len(DATASETS)
            mean, short, long, away = summary(present)
            cells = [number(auprc(own[name]), 3) if name in own else "-" for name in DATASETS]
            figures = [number(mean, 4), number(short, 3), number(long, 3), number(away, 2)] if whole else ["-"] * 4
            seconds = sum(one["cpu_seconds"] for one in present)
            rows.append([f"{group}: `{label}`", *cells, *figures, f"{seconds:.0f}"])
    return table_lines(header, rows)


def kinds_table(records: Sequence[Record]) -> list[str]:
    """Return the lines of the table by kind of fault, of the chosen detector and the rows measured beside it."""
    labels = [CHOSEN, *CANDIDATES["one view alone"], *CANDIDATES["rows of the leaderboards"][:4]]
    rows = []
    for kind in ALL_KINDS:
        cells = []
        for label in labels:
            found = [one["auprc"][kind] for one in records if one["candidate"] == label and kind in one["auprc"]]
            cells.append(number(float(np.mean(found)), 3) if found else "-")
        rows.append([kind, *cells])
    return table_lines(["fault", *(f"`{label}`" for label in labels)], rows)


def alarms_table(records: Sequence[Record]) -> list[str]:
    """Return the lines of the table of flagged normal rows."""
    labels = [CHOSEN, variant(blocks=1), variant(adaptive=True), *CANDIDATES["rows of the leaderboards"]]
    rows = []
    for label in labels:
        own = {one["dataset"]: one for one in records if one["candidate"] == label}
        shares = [own[name]["flagged"] / own[name]["later_rows"] if name in own else None for name in DATASETS]
        rows.append([f"`{label}`", *("-" if one is None else number(one, 4) for one in shares)])
    return table_lines(["row", *DATASETS], rows)


def block(name: str) -> list[str]:
    """Return the lines of a generated block of the page."""
    records = read_records(RECORDS)
    tables = {"candidates": candidates_table, "kinds": kinds_table, "alarms": alarms_table}
    return tables[name](records) if name in tables else look(name)


def main() -> None:
    """Measure, or make the page's tables."""
    parser = parser_of(__doc__)
    parser.add_argument("--dataset", action="append", default=[], help="measure on this data set; repeat for several")
    for name in parser.parse_args().dataset:
        with limited_threads(1):
            records = []
            for record in measured(name):
                records.append(record)
                print(name, record["candidate"], round(auprc(record), 4), record["flagged"], flush=True)
        write_records(RECORDS, [*(one for one in read_records(RECORDS) if one["dataset"] != name), *records])
    write_page(PAGE, block)


if __name__ == "__main__":
    main()
