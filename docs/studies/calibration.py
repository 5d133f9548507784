"""Should a threshold come from training rows or from rows kept from training? The records and tables of calibration.md.

    python docs/studies/calibration.py --dataset skab          # measures; records in calibration.jsonl are replaced
    python docs/studies/calibration.py                         # makes the page's tables from the records

Normal rows alone are used, those that the protocol ``strict`` trains on. A stretch of a tenth of them is kept from all:
the last one, and, to see more of such rows, the three before it in turn, with what follows then left out:

    training:  | fitted, and sets the threshold         | gap | unseen tenth |
    held-out:  | fitted               | gap | threshold | gap | unseen tenth |

What `strict` would find on the unseen tenth, under each value of its parameter ``calibration``, is the share of its
rows (after their warm-up) above the threshold. Both gaps are 100 rows.

The criterion was written down before the first number was seen. A pair of arms is that of one data set, stretch and
detector (floors with a fixed threshold are left out); pairs count if held-out rows did set a threshold, because there
are enough of them. The arm whose median of |log10((observed + 1 / n) / q)| over all pairs is smaller becomes the
default of `strict`; if they are equal, "training" does, which trains on more rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from study_files import Record, parser_of, read_records, write_page, write_records

from tsadbench.analysis.calibration.clusters import FlaggedNormal, flagged_normal, run_of
from tsadbench.base import Episode, Protocol, Scored
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.plan import contender_from_label, make_protocol
from tsadbench.registry import floors
from tsadbench.utils.markdown import number, table_lines
from tsadbench.utils.threads import limited_threads
from tsadbench_protocols.held_out import GAP, between, held_out

PAGE = Path(__file__).with_suffix(".md")
RECORDS = PAGE.with_suffix(".jsonl")
ARMS = ("training", "held-out")
STRETCHES = (10, 9, 8, 7)  # the tenths that are kept from all, in turn
STATISTICS = ("t2", "t2-q", "mset", "isolation-forest")
NETWORKS = ("dprgm", "lstm-ae")  # with seed 0, on the last tenth alone: they take nearly all of the time
Q = 1e-3


def measured(name: str) -> Iterator[Record]:
    """Yield a record of each stretch, detector and arm of a data set."""
    dataset = load_dataset(name)(DataOptions()).dataset
    strict, _ = make_protocol("strict", {"calibration": "training"})
    (episode,) = strict.episodes(dataset)
    n_rows = sum(one.n_rows for one in episode.train)
    for tenth in STRETCHES:
        first, end = n_rows * (tenth - 1) // 10, n_rows * tenth // 10
        unseen = tuple(between(episode.train, first, end))
        normal = tuple(between(episode.train, 0, first - GAP))
        for label in (*floors(), *STATISTICS, *(NETWORKS if tenth == STRETCHES[0] else ())):
            contender = contender_from_label(label, dataset)
            if contender.traits.fixed_threshold is not None:
                continue
            records = []
            for arm in ARMS:
                protocol, _ = make_protocol("strict", {"calibration": arm})
                train, calibration = held_out(normal) if arm == "held-out" else (normal, ())
                if arm == "held-out" and not protocol.enough(calibration):  # strict itself takes the training rows then
                    records.append({**records[0], "calibration": arm})
                    continue
                start = time.process_time()
                detector = contender.seeded(0).construct().fit(train)
                scored = Scored(
                    Episode("all", train, unseen, calibration),
                    tuple(detector.training_scores(train)),
                    tuple(map(detector.score, unseen)),
                    calibration=tuple(map(detector.score, calibration)),
                )
                records.append(
                    {
                        "dataset": name,
                        "data_hash": dataset.content_hash,
                        "tenth": tenth,
                        "detector": label,
                        "floor": contender.floor,
                        "calibration": arm,
                        "held_out": bool(calibration),
                        **found(protocol, scored),
                        "cpu_seconds": round(time.process_time() - start, 2),
                    }
                )
            yield from records


def found(protocol: Protocol, scored: Scored) -> Record:
    """Return the threshold of one fit, and the unseen rows that it flags."""
    threshold = protocol.threshold(scored)
    setting = np.concatenate(protocol.calibration_scores(scored))
    unseen = np.concatenate([rows[protocol.calibration_rows(len(rows))] for rows in scored.test])
    flagged = flagged_normal(unseen > threshold.value, run_of(setting[~np.isnan(setting)], threshold))
    return {
        "trained_rows": sum(one.n_rows for one in scored.episode.train),
        "threshold": threshold.value,
        "status": threshold.status,
        "n": threshold.n,
        "excesses": threshold.excesses,
        "unseen_rows": flagged.n_rows,
        "clusters": flagged.sizes,
    }


def distance(record: Record) -> float:
    """Return |log10((observed + 1 / n) / q)|."""
    flagged = unseen_of([record])
    return float(abs(np.log10((flagged.share + 1 / flagged.n_rows) / Q)))


def unseen_of(records: list[Record]) -> FlaggedNormal:
    """Return the flagged rows of some unseen stretches together."""
    sizes = tuple(size for record in records for size in record["clusters"])
    return FlaggedNormal(sum(record["unseen_rows"] for record in records), sizes)


def counting(records: list[Record]) -> list[Record]:
    """Return the records of pairs that the criterion counts."""
    with_held_out = {key(record) for record in records if record["held_out"]}
    return [record for record in records if key(record) in with_held_out]


def key(record: Record) -> tuple[object, ...]:
    """Return what the two arms of a pair have in common."""
    return record["dataset"], record["tenth"], record["detector"]


def decision(records: list[Record]) -> list[str]:
    """Return the lines of the criterion's table, and what it decides."""
    counted = counting(records)
    groups = {"all": counted}
    groups |= {name: [one for one in counted if one["dataset"] == name] for name in names(counted, "dataset")}
    groups["floors"] = [one for one in counted if one["floor"]]
    groups["detectors"] = [one for one in counted if not one["floor"]]
    rows, medians = [], {}
    for name, members in ((name, members) for name, members in groups.items() if members):
        arms = [[distance(one) for one in members if one["calibration"] == arm] for arm in ARMS]
        medians[name] = [float(np.median(arm)) for arm in arms]
        nearer = [int(np.sum(np.less(*pair))) for pair in (arms, arms[::-1])]
        rows.append([name, str(len(arms[0])), *(number(one, 2) for one in medians[name]), *map(str, nearer)])
    header = ["pairs", "n", *(f"median, {arm}" for arm in ARMS), *(f"{arm} nearer" for arm in ARMS)]
    chosen = ARMS[1] if medians["all"][1] < medians["all"][0] else ARMS[0]
    return [*table_lines(header, rows), "", f"The default of `strict` is `calibration={chosen}`."]


def observed(records: list[Record], dataset: str) -> list[str]:
    """Return the lines of a data set's table: the unseen stretches of each detector and arm together."""
    of_dataset = [one for one in records if one["dataset"] == dataset]
    header = ["detector", *(column for arm in ARMS for column in (arm, "rows", "clusters", "90 %", "excesses"))]
    rows = []
    for detector in names(of_dataset, "detector"):
        cells = [str(detector)]
        for arm in ARMS:
            members = [one for one in of_dataset if (one["detector"], one["calibration"]) == (detector, arm)]
            together = unseen_of(members)
            low, high = together.interval
            cells += [
                number(together.share, 4),
                f"{together.n_flagged:,} of {together.n_rows:,}",
                str(len(together.sizes)),
                f"{number(low, 4)} to {number(high, 4)}",
                f"{min(one['excesses'] for one in members)}",
            ]
        rows.append(cells)
    return table_lines(header, rows)


def names(records: list[Record], field: str) -> list[object]:
    """Return the values of a field in the order of their first records."""
    return list(dict.fromkeys(record[field] for record in records))


def block(name: str) -> list[str]:
    """Return the lines of a generated block of the page."""
    records = read()
    if name == "decision":
        return decision(records)
    if name == "rows":
        rows = []
        for record in records:
            if record["detector"] == "t2" and record["tenth"] == STRETCHES[0]:
                source = "held out" if record["held_out"] else "training"
                cells = [record["trained_rows"], f"{record['n']} ({source})", record["unseen_rows"]]
                rows.append([str(record["dataset"]), str(record["calibration"]), *map(str, cells)])
        return table_lines(["data set", "arm", "trained on", "set the threshold", "unseen, evaluated"], rows)
    return observed(records, name)


def read() -> list[Record]:
    """Return the committed records."""
    return read_records(RECORDS)


def main() -> None:
    """Measure, or make the page's tables."""
    parser = parser_of(__doc__)
    parser.add_argument("--dataset", action="append", default=[], help="measure on this data set; repeat for several")
    for name in parser.parse_args().dataset:
        records = []
        with limited_threads(1):
            for record in measured(name):
                records.append(record)
                print(record["tenth"], record["detector"], record["calibration"], sum(record["clusters"]), flush=True)
        write_records(RECORDS, [*(one for one in read() if one["dataset"] != name), *records])
    write_page(PAGE, block)


if __name__ == "__main__":
    main()
