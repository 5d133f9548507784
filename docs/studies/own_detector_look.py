"""The look at test labels: what the detector of our own reaches under `strict`, once its choice was committed.

    python docs/studies/own_detector_look.py --store runs/own/skab --held-out runs/own-held-out/skab

reads an ablation, and thresholds that held-out normal rows set, from stores; their records are replaced.

The rows themselves are those of the committed leaderboards; this script only reads them. The ablation is what
`tsadbench compare` finds for the chosen detector and each variant that lacks a view, with sessions as units.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from planting import LONG_KINDS
from scipy.stats import spearmanr
from study_files import Record, parser_of, read_records, write_records

import tsadbench
from tsadbench.analysis.calibration import calibration_report
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.run_store import Store
from tsadbench.utils.markdown import number, table_lines

ROOT = Path(__file__).resolve().parents[2]
RECORDS = Path(__file__).with_name("own-detector-look.jsonl")
PLANTED = Path(__file__).with_name("own-detector.jsonl")
# The groups of candidates whose order on planted faults is held against their order on real ones.
BESIDE = ("chosen", "rows of the leaderboards")
SPLITS = dict.fromkeys(("skab", "tep", "pumploop", "cranfield", "gecco2018", "asd", "smd", "causrca"), "overall")
SPLITS["tep"] = "detectable"
CHOSEN, ADAPTIVE, GRAPH = "multiview", "multiview[adaptive=on]", "multiview-graph"
VIEWS = ("level", "range", "relation", "forecast", "movement")
BEST_RANKED = "t2[mean=10]"
NEAR = 0.03
# As the issue asks for them.
ASKED = {"skab": 0.80, "tep": 0.995}
ASKED_MCC = 0.25


def table(dataset: str, split: str) -> list[dict[str, str]]:
    """Return the rows of a committed table under `strict`."""
    with (ROOT / "leaderboards" / dataset / "strict" / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["status"] == "ok"]


def value(rows: Sequence[dict[str, str]], label: str, metric: str) -> float | None:
    """Return a row's metric; None if the table lacks the row."""
    found = [row[f"{metric}_mean"] for row in rows if row["detector"] == label]
    return float(found[0]) if found and found[0] else None


def best(rows: Sequence[dict[str, str]], metric: str, *, floors: bool) -> tuple[str, float]:
    """Return the best floor, or the best of all other detectors that are not this project's."""
    chosen = [
        (row["detector"], float(row[f"{metric}_mean"]))
        for row in rows
        if (row["family"] == "floor") == floors
        and not row["detector"].startswith("multiview")
        and row[f"{metric}_mean"]
    ]
    return max(chosen, key=lambda pair: pair[1])


def results_table() -> list[str]:
    """Return the lines of the table of results, one data set a row."""
    header = ["data set", "split", "AUPRC", "best floor", "beyond it", "best other row", "rank by AUPRC", "MCC",
              "best floor's MCC", "AUPRC, adaptive", "MCC, adaptive", "AUPRC, graph"]  # fmt: skip
    lines = []
    for name, split in SPLITS.items():
        rows = table(name, split)
        own = value(rows, CHOSEN, "auprc")
        if own is None:
            continue
        floor, other = best(rows, "auprc", floors=True), best(rows, "auprc", floors=False)
        of_others = [float(row["auprc_mean"]) for row in rows
                     if row["auprc_mean"] and not row["detector"].startswith("multiview")]  # fmt: skip
        rank = 1 + sum(one > own for one in of_others)
        further = [value(rows, ADAPTIVE, "auprc"), value(rows, ADAPTIVE, "mcc"), value(rows, GRAPH, "auprc")]
        lines.append(
            [
                name,
                split,
                number(own, 4),
                f"{floor[0]} {number(floor[1], 4)}",
                f"{own - floor[1]:+.4f}",
                f"{other[0]} {number(other[1], 4)}",
                f"{rank} of {len(of_others) + 1}",
                number(value(rows, CHOSEN, "mcc"), 3),
                number(best(rows, "mcc", floors=True)[1], 3),
                *("-" if one is None else number(one, 4) for one in further),
            ]
        )
    return table_lines(header, lines)


def ranked() -> list[dict[str, str]]:
    """Return the rows that have all data sets of the committed suite, the best mean rank first."""
    with (ROOT / "leaderboards" / "suites" / "all" / "rank.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["complete"] == "True"]


def ranks_table() -> list[str]:
    """Return the lines of the best mean ranks over all data sets, from the committed suite."""
    lines = [
        [
            row["detector"],
            number(float(row["rank"]), 2),
            f"{float(row['rank_low']):.2f} to {float(row['rank_high']):.2f}",
        ]
        for row in ranked()[:6]
    ]
    return table_lines(["row", "mean rank", "90 %"], lines)


def asked_lines() -> list[str]:
    """Return what the issue asked for, held against what was found."""
    found = {name: table(name, split) for name, split in SPLITS.items()}
    own = {name: value(rows, CHOSEN, "auprc") for name, rows in found.items()}
    beyond = {name: (own[name] or 0.0) - best(rows, "auprc", floors=True)[1] for name, rows in found.items()}
    n_above = sum(one > 0 for one in beyond.values())
    worst = min(beyond, key=lambda name: beyond[name])
    t2 = value(found["pumploop"], "t2", "auprc") or 0.0
    mcc = value(found["skab"], CHOSEN, "mcc") or 0.0
    first = ranked()[0]["detector"]
    checks = [
        ("mean rank over all data sets better than every other row's", first, first.startswith(CHOSEN)),
        ("AUPRC above the best floor on at least three quarters", f"{n_above} of {len(beyond)}", n_above >= 6),
        (f"nowhere more than {NEAR} below it", f"{worst} {beyond[worst]:+.4f}", beyond[worst] >= -NEAR),
        ("SKAB: AUPRC above .80", number(own["skab"], 4), (own["skab"] or 0) > ASKED["skab"]),
        ("SKAB: MCC above .25", number(mcc, 3), mcc > ASKED_MCC),
        ("TEP detectable: AUPRC at least .995", number(own["tep"], 4), (own["tep"] or 0) >= ASKED["tep"]),
        (f"pumploop: above t2 ({number(t2, 4)})", number(own["pumploop"], 4), (own["pumploop"] or 0) > t2),
    ]
    return table_lines(["asked for", "found", "reached"], [[a, b, "yes" if c else "no"] for a, b, c in checks])


def yardstick_table() -> list[str]:
    """Return how the order of rows on planted faults agrees with their order on real ones: Spearman's correlation."""
    planted = read_records(PLANTED)
    lines = []
    for name, split in SPLITS.items():
        rows = table(name, split)
        pairs = []
        for label in dict.fromkeys(one["candidate"] for one in planted if one["group"] in BESIDE):
            (record,) = (one for one in planted if (one["dataset"], one["candidate"]) == (name, label))
            real = value(rows, label, "auprc")
            if real is not None:
                kinds = record["auprc"]
                long = [kinds[kind] for kind in LONG_KINDS if kind in kinds]
                pairs.append((real, sum(kinds.values()) / len(kinds), sum(long) / len(long)))
        real, all_kinds, long_kinds = zip(*pairs, strict=True)
        rhos = (spearmanr(real, one).statistic for one in (all_kinds, long_kinds))
        lines.append([name, str(len(pairs)), *(number(float(rho), 2) for rho in rhos)])
    return table_lines(["data set", "rows", "all kinds", "long kinds"], lines)


def within_table() -> list[str]:
    """Return AUPRC over all rows pooled, and its mean over recordings, each by itself."""
    lines = []
    for name in SPLITS:
        rows = table(name, "overall")
        labels = (CHOSEN, ADAPTIVE, BEST_RANKED, best(rows, "auprc", floors=True)[0])
        cells = []
        for label in labels:
            pooled, alone = value(rows, label, "auprc"), _mean_of_recordings(name, label)
            shown = ("-" if one is None else number(one, 3) for one in (pooled, alone))
            cells.append(", ".join(shown))
        cells[-1] = f"{labels[-1]} {cells[-1]}"
        lines.append([name, *cells])
    return table_lines(["data set", *(f"`{label}`" for label in labels[:-1]), "best floor"], lines)


def _mean_of_recordings(dataset: str, label: str) -> float | None:
    """Return the mean over recordings of a row's AUPRC on each by itself, where it is defined; over seeds as well."""
    file = ROOT / "leaderboards" / dataset / "strict" / "recordings.jsonl"
    head, *trials = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    place, single = head["metrics"].index("auprc"), [len(unit["recordings"]) == 1 for unit in head["units"]]
    values = [
        of_unit[place]
        for trial in trials
        if trial["label"] == label
        for of_unit, alone in zip(trial["values"], single, strict=True)
        if alone and of_unit is not None and of_unit[place] is not None
    ]
    return sum(values) / len(values) if values else None


def ablation_table() -> list[str]:
    """Return the lines of the ablation: what AUPRC loses without each view, a data set a column."""
    records = [one for one in read_records(RECORDS) if "variant" in one]
    variants = list(dict.fromkeys(str(one["variant"]) for one in records))
    lines = []
    for variant in variants:
        cells = []
        for name in SPLITS:
            found = [one for one in records if (one["variant"], one["dataset"]) == (variant, name)]
            cells.append(_difference(found[0]) if found else "-")
        (missing,) = (view for view in VIEWS if view not in variant)
        lines.append([missing, *cells])
    return table_lines(["without", *SPLITS], lines)


def held_out_table() -> list[str]:
    """Return how often held-out normal rows exceed the threshold that other held-out rows set."""
    lines = []
    for name in SPLITS:
        for one in read_records(RECORDS):
            if one["dataset"] == name and "observed" in one:
                interval = "too few clusters" if one["low"] is None else f"{one['low']:.4f} to {one['high']:.4f}"
                lines.append(
                    [
                        name,
                        f"{one['rows']:,}",
                        one["calibration"],
                        f"{one['observed']:.4f}",
                        str(one["clusters"]),
                        interval,
                    ]
                )
    return table_lines(["data set", "rows", "which set the threshold", "share above", "clusters", "90 %"], lines)


def _difference(record: Record) -> str:
    interval = "" if record["low"] is None else f" ({record['low']:+.3f} to {record['high']:+.3f})"
    return f"{record['difference']:+.3f}{interval}, {record['n_units']}"


def look(name: str) -> list[str]:
    """Return the lines of a generated block of the page."""
    blocks = {
        "asked": asked_lines,
        "results": results_table,
        "ranks": ranks_table,
        "ablation": ablation_table,
        "yardstick": yardstick_table,
        "within": within_table,
        "held-out": held_out_table,
    }
    return blocks[name]()


def compared(store: Path) -> list[Record]:
    """Return a record for each variant in a store, compared with the chosen detector session by session."""
    board = tsadbench.load_board(store)
    frame = board.to_frame()
    name = str(frame["dataset"].iloc[0])
    variants = [label for label in dict.fromkeys(frame["detector"]) if label.startswith(f"{CHOSEN}[")]
    records: list[Record] = []
    for label in variants:
        (pair,) = board.compare(CHOSEN, label, metric="auprc", split=SPLITS[name]).inference.pairs
        interval = (None, None) if pair.interval is None else (pair.interval.low, pair.interval.high)
        records.append(
            {
                "dataset": name,
                "variant": label,
                "difference": round(pair.mean_difference, 5),
                "low": None if interval[0] is None else round(interval[0], 5),
                "high": None if interval[1] is None else round(interval[1], 5),
                "n_units": pair.n_units,
            }
        )
    return records


def held_out(store: Path) -> Record:
    """Return how often held-out normal rows of a store's data set exceed the threshold that the others of them set."""
    board = tsadbench.load_board(store)
    name = str(board.to_frame()["dataset"].iloc[0])
    (row,) = calibration_report(board, Store(store), lambda given: load_dataset(given)(DataOptions())).rows
    low, high = row.interval or (None, None)
    first = row.trials[0]
    return {
        "dataset": name,
        "rows": first.flagged.n_rows,
        "calibration": first.calibration,
        "observed": row.share,
        "clusters": round(row.clusters),
        "low": low,
        "high": high,
    }


def main() -> None:
    """Read stores and replace their records."""
    parser = parser_of(__doc__)
    parser.add_argument("--store", action="append", type=Path, default=[], help="a run store; repeat for several")
    parser.add_argument("--held-out", action="append", type=Path, default=[], help="with strict[calibration=held-out]")
    options = parser.parse_args()
    new = [record for store in options.store for record in compared(store)]
    new += [held_out(store) for store in options.held_out]
    replaced = {(record["dataset"], "variant" in record) for record in new}
    kept = (one for one in read_records(RECORDS) if (one["dataset"], "variant" in one) not in replaced)
    write_records(RECORDS, [*kept, *new])


if __name__ == "__main__":
    main()
